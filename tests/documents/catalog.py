"""The public operators with their signatures and documentation, for help pages."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import NamedTuple


class OperatorHelp(NamedTuple):
    """One operator as `cuggino help operators` shows it."""

    name: str
    signature: str
    documentation: str
    """The docstring, with its marble diagrams."""

    @property
    def summary(self) -> str:
        """The first sentence of the documentation."""
        return self.documentation.partition("\n\n")[0].replace("\n", " ")


def operator_help() -> Iterator[OperatorHelp]:
    """Yield the public functions of `cuggino.operators` that have a marble diagram, by name."""
    from cuggino import operators

    for name in sorted(operators.__all__):
        function = getattr(operators, name)
        documentation = inspect.getdoc(function) or ""
        if inspect.isfunction(function) and "::\n" in documentation:
            yield OperatorHelp(name, _signature(function), documentation)


def _signature(function: object) -> str:
    """Return the parameters without their types, which the documentation explains."""
    assert callable(function)
    parameters = [
        parameter.replace(annotation=inspect.Parameter.empty)
        for parameter in inspect.signature(function).parameters.values()
    ]
    shown = []
    for parameter in parameters:
        default = parameter.default
        if default is inspect.Parameter.empty or isinstance(default, bool | int | float | None):
            shown.append(parameter)
        else:  # a function or an object: its repr is no help
            shown.append(parameter.replace(default=_Ellipsis()))
    return str(inspect.Signature(shown))


class _Ellipsis:
    def __repr__(self) -> str:
        return "..."
