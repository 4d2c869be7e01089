"""Dataclasses whose methods are shared functions, instead of code compiled at import."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dataclasses import dataclass as dataclass
else:

    def dataclass(
        *, eq: bool = True, frozen: bool = False, slots: bool = False, kw_only: bool = False
    ) -> Callable[[type], type]:
        """Return a decorator that makes a dataclass without compiling methods.

        For classes that are imported often and instantiated rarely: one takes about a tenth of the
        time to define, and twice as long to instantiate. The functions of `dataclasses`, such as
        `replace` and `fields`, accept it. A class that is instantiated often can have an
        `__init__` of its own.
        """
        return lambda cls: _made(cls, eq, frozen, slots, kw_only)


def _made(cls: type, eq: bool, frozen: bool, slots: bool, kw_only: bool) -> Any:
    if cls.__doc__ is None:
        cls.__doc__ = cls.__name__  # instead of the signature, which takes long to build
    make = dataclasses.dataclass(init=False, repr=False, eq=False, slots=slots, kw_only=kw_only)
    made: Any = make(cls)
    fields = dataclasses.fields(made)
    own = cls.__dict__
    if "__init__" not in own:
        made.__init__ = _init(fields, hasattr(made, "__post_init__"))
        made.__signature__ = _Signature()
    if "__repr__" not in own:
        made.__repr__ = _repr(tuple(field.name for field in fields if field.repr))
    if eq and "__eq__" not in own:
        made.__eq__, made.__hash__ = _eq(tuple(field.name for field in fields if field.compare))
        if not frozen:
            made.__hash__ = None
    if frozen:
        made.__setattr__ = _refuse
        made.__delattr__ = _refuse
        if slots:
            made.__setstate__ = _restore
    return made


def _init(fields: tuple[Any, ...], has_post_init: bool) -> Callable[..., None]:
    names = {field.name for field in fields}
    accepted = {field.name for field in fields if field.init}
    positional = [field.name for field in fields if field.init and not field.kw_only]
    defaults: Mapping[str, Any] = {
        field.name: field.default for field in fields if field.default is not dataclasses.MISSING
    }
    factories = [
        (field.name, field.default_factory)
        for field in fields
        if field.default_factory is not dataclasses.MISSING
    ]
    all_accepted = accepted == names
    write = object.__setattr__

    def initialize(self: Any, /, *args: Any, **kwargs: Any) -> None:
        given = {**dict(zip(positional, args, strict=False)), **kwargs} if args else kwargs
        values = {**defaults, **given}
        for name, factory in factories:
            if name not in values:
                values[name] = factory()
        if (
            values.keys() != names
            or (args and len(given) != len(args) + len(kwargs))  # too many, or twice the same
            or not (all_accepted or given.keys() <= accepted)
        ):
            inspect.signature(type(self)).bind(*args, **kwargs)
        for name, value in values.items():
            write(self, name, value)
        if has_post_init:
            self.__post_init__()

    return initialize


def _repr(shown: tuple[str, ...]) -> Callable[[Any], str]:
    def show(self: Any) -> str:
        values = ", ".join(f"{name}={getattr(self, name)!r}" for name in shown)
        return f"{type(self).__qualname__}({values})"

    return show


def _eq(
    compared: tuple[str, ...],
) -> tuple[Callable[[Any, object], Any], Callable[[Any], int]]:
    values: Callable[[Any], Any] = attrgetter(*compared) if compared else lambda _value: ()

    def equals(self: Any, other: object) -> Any:
        return values(self) == values(other) if type(other) is type(self) else NotImplemented

    def hashed(self: Any) -> int:
        return hash(values(self))

    return equals, hashed


def _refuse(self: object, name: str, *_: object) -> None:
    raise dataclasses.FrozenInstanceError(f"cannot assign to or delete field {name!r}")


def _restore(self: object, state: tuple[None, Mapping[str, Any]]) -> None:
    """Set the slots of a frozen value that is copied or unpickled."""
    for name, value in state[1].items():
        object.__setattr__(self, name, value)


class _Signature:
    """The signature of a class, built when it is asked for."""

    def __get__(self, instance: object, owner: type) -> inspect.Signature:
        kinds = inspect.Parameter
        return inspect.Signature(
            [
                kinds(
                    field.name,
                    kinds.KEYWORD_ONLY if field.kw_only else kinds.POSITIONAL_OR_KEYWORD,
                    default=_shown_default(field),
                    annotation=field.type,
                )
                for field in sorted(
                    dataclasses.fields(owner), key=lambda field: field.kw_only is True
                )
                if field.init
            ],
            return_annotation=None,
        )


def _shown_default(field: Any) -> Any:
    if field.default is not dataclasses.MISSING:
        return field.default
    if field.default_factory is not dataclasses.MISSING:
        return field.default_factory
    return inspect.Parameter.empty
