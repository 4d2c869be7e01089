"""Types of settings that few projects have, imported when one has them."""

from __future__ import annotations

import functools
import importlib
from typing import TYPE_CHECKING, Any, cast

from pydantic_core import core_schema

if TYPE_CHECKING:
    from pydantic import GetCoreSchemaHandler, GetJsonSchemaHandler, TypeAdapter
    from pydantic.json_schema import JsonSchemaValue


class OnUse:
    """An annotation for a type in another module of this package, imported with the first value.

    The default of a field is not validated, and imports nothing.
    """

    def __init__(self, module: str, name: str) -> None:
        self._module = f"{__package__}.{module}"
        self._name = name

    @functools.cached_property
    def type(self) -> Any:
        """The type."""
        return getattr(importlib.import_module(self._module), self._name)

    @functools.cached_property
    def _adapter(self) -> TypeAdapter[Any]:
        from pydantic import ConfigDict, TypeAdapter

        # A model has its own configuration.
        config = None if isinstance(self.type, type) else ConfigDict(strict=True)
        return TypeAdapter(self.type, config=config)

    def _validate(self, value: object) -> Any:
        return self._adapter.validate_python(value)

    def _serialize(self, value: object, info: core_schema.SerializationInfo) -> Any:
        return self._adapter.dump_python(
            value,
            mode="json" if info.mode_is_json() else "python",
            include=cast("Any", info.include),
            exclude=cast("Any", info.exclude),
            by_alias=info.by_alias,
            exclude_unset=info.exclude_unset,
            exclude_defaults=info.exclude_defaults,
            exclude_none=info.exclude_none,
        )

    def __get_pydantic_core_schema__(
        self, _source: object, _handler: GetCoreSchemaHandler
    ) -> core_schema.CoreSchema:
        written = core_schema.plain_serializer_function_ser_schema(self._serialize, info_arg=True)
        return core_schema.no_info_plain_validator_function(self._validate, serialization=written)

    def __get_pydantic_json_schema__(
        self, _schema: core_schema.CoreSchema, handler: GetJsonSchemaHandler
    ) -> JsonSchemaValue:
        # Wrapped, so that a model is referred to instead of repeated.
        return handler(core_schema.definitions_schema(self._adapter.core_schema, []))
