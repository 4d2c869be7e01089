"""The cluster that a watch places its attempts on: the setting `cluster`."""

import re
from collections.abc import Mapping
from typing import Annotated, Self, TypeAlias

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    field_validator,
    model_validator,
)
from pydantic.functional_serializers import model_serializer

RESOURCE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""The name of a resource or label of workers."""


class ClusterSettings(BaseModel):
    """The object form of `cluster`; a text is its `address`."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, defer_build=True)

    address: str | None = Field(default=None, pattern=r"^\S+$")
    """The scheduler: `tls://HOST:PORT`, or `local` for that of `cuggino cluster up`. Without one,
    only `--cluster` places items on the cluster."""
    ca: str | None = Field(default=None, pattern=r"\S")
    """The PEM file of the certificate authority that signed all certificates of the cluster."""
    cert: str | None = Field(default=None, pattern=r"\S")
    """The PEM file with this machine's certificate."""
    key: str | None = Field(default=None, pattern=r"\S")
    """The PEM file with the private key of that certificate."""
    insecure: bool = False
    """Allow an address beyond this machine without TLS: whoever reaches it can run programs as
    you, on every worker and here."""
    detach: bool = False
    """Let attempts continue on the cluster when `watch` ends; the next one takes them over."""
    remote: str = Field(default="origin", pattern=r"^[^\s-]\S*$")
    """The git remote that this machine and all workers reach: its name here, or a URL."""
    needs: dict[str, float] = Field(default={})
    """Resources that every item takes on its worker, such as `{"gpu": 1}`, besides its agents and
    its own `needs`."""

    @model_validator(mode="before")
    @classmethod
    def _from_address(cls, value: object) -> object:
        if isinstance(value, str):
            return {"address": value}
        if not isinstance(value, Mapping | BaseModel):
            raise ValueError('must be an address such as "tls://HOST:8786", or an object')
        return value

    @field_validator("needs", mode="after")
    @classmethod
    def _amounts(cls, value: dict[str, float]) -> dict[str, float]:
        for name, amount in value.items():
            if not RESOURCE.fullmatch(name):
                raise ValueError(f'"{name}" is no name of a resource, such as "gpu"')
            if not 0 < amount < float("inf"):
                raise ValueError(f'"{name}" must be an amount above 0')
        return value

    @model_validator(mode="after")
    def _whole_tls(self) -> Self:
        files = {"ca": self.ca, "cert": self.cert, "key": self.key}
        missing = [name for name, path in files.items() if path is None]
        if 0 < len(missing) < len(files):
            raise ValueError(f"TLS needs ca, cert and key: {' and '.join(missing)} missing")
        return self

    @model_serializer(mode="wrap")
    def _as_written(self, handler: SerializerFunctionWrapHandler) -> object:
        fields = type(self).model_fields
        return {key: value for key, value in handler(self).items() if value != fields[key].default}


def _known_cluster(value: object) -> object:
    if value is None or isinstance(value, ClusterSettings):
        return value
    try:
        settings = ClusterSettings.model_validate(value)
    except ValidationError as error:
        first = error.errors()[0]
        place = ".".join(map(str, first["loc"])) if isinstance(value, dict) else ""
        message = first["msg"].removeprefix("Value error, ")
        if first["type"] == "extra_forbidden":
            message = f"unknown key; it has {', '.join(ClusterSettings.model_fields)}"
        raise ValueError(f"{place}: {message}" if place else message) from None
    return value if isinstance(value, str) else settings


Cluster: TypeAlias = Annotated[str | ClusterSettings | None, BeforeValidator(_known_cluster)]
