"""Named tuples with shared functions, instead of code compiled at import."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Generic, Self

if TYPE_CHECKING:
    from inspect import Signature


class _NamedTuples(type):
    """The metaclass of `NamedTuple`, but not of the named tuples."""

    def __new__(cls, name: str, bases: tuple[type, ...], namespace: dict[str, Any]) -> Any:
        fields = tuple(namespace.get("__annotations__", ()))
        defaults = {field: namespace.pop(field) for field in fields if field in namespace}
        if tuple(defaults) != fields[len(fields) - len(defaults) :]:
            raise TypeError(f"{name}: a field without a default follows one with a default")
        if None is namespace.get("__doc__"):
            namespace["__doc__"] = f"{name}({', '.join(fields)})"
        if Generic in bases:  # instead of that of tuples
            namespace["__class_getitem__"] = classmethod(_with_parameters)
        for index, field in enumerate(fields):
            namespace[field] = property(itemgetter(index))
        namespace |= {
            "__slots__": (),
            "__match_args__": fields,
            "_fields": fields,
            "_field_defaults": defaults,
        }
        made = (_Tuple if isinstance(base, _NamedTuples) else base for base in bases)
        return type(name, tuple(made), namespace)


def _with_parameters(cls: type, parameters: object) -> Any:
    own: Any = vars(Generic)["__class_getitem__"]
    return own.__get__(None, cls)(parameters)


class _TupleSignature:
    """The signature of a named tuple, built when it is asked for."""

    def __get__(self, instance: object, owner: type[_Tuple]) -> Signature:
        import inspect

        kinds = inspect.Parameter
        declared = next(base for base in owner.__mro__ if "_fields" in vars(base))
        return inspect.Signature(
            [
                kinds(
                    field,
                    kinds.POSITIONAL_OR_KEYWORD,
                    default=owner._field_defaults.get(field, kinds.empty),
                    annotation=declared.__annotations__[field],
                )
                for field in owner._fields
            ]
        )


class _Tuple(tuple[Any, ...]):
    """The methods of named tuples."""

    __slots__ = ()
    __signature__ = _TupleSignature()
    if TYPE_CHECKING:  # an annotation would count as a field
        _fields: tuple[str, ...]
        _field_defaults: Mapping[str, Any]

    def __new__(cls, /, *args: Any, **kwargs: Any) -> Self:
        fields = cls._fields
        if len(args) == len(fields) and not kwargs:
            return tuple.__new__(cls, args)
        values = {**cls._field_defaults, **dict(zip(fields, args, strict=False)), **kwargs}
        if (
            len(args) > len(fields)
            or values.keys() != {*fields}
            or not kwargs.keys().isdisjoint(fields[: len(args)])
        ):
            cls.__signature__.bind(*args, **kwargs)
        return tuple.__new__(cls, [values[field] for field in fields])

    @classmethod
    def _make(cls, iterable: Iterable[Any]) -> Self:
        made = tuple.__new__(cls, iterable)
        if len(made) != len(cls._fields):
            raise TypeError(f"Expected {len(cls._fields)} arguments, got {len(made)}")
        return made

    def _replace(self, /, **changes: Any) -> Self:
        made = self._make(map(changes.pop, self._fields, self))
        if changes:
            wrong = TypeError if sys.version_info >= (3, 13) else ValueError
            raise wrong(f"Got unexpected field names: {list(changes)!r}")
        return made

    __replace__ = _replace

    def _asdict(self) -> dict[str, Any]:
        return dict(zip(self._fields, self, strict=True))

    def __repr__(self) -> str:
        values = ", ".join(f"{name}={value!r}" for name, value in self._asdict().items())
        return f"{type(self).__name__}({values})"

    def __getnewargs__(self) -> tuple[Any, ...]:
        return tuple(self)


if TYPE_CHECKING or sys.version_info >= (3, 14):  # which compiles annotations as functions
    from typing import NamedTuple as NamedTuple
else:
    NamedTuple = type.__new__(_NamedTuples, "NamedTuple", (), {})
    """The base class of named tuples, which works like that of `typing`.

    For classes that are imported often: defining one takes about a tenth of the time.
    """
