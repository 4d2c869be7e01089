"""The cluster for items of a watch, tasks of several hands, and attempts: `cluster`."""

import re
from typing import Annotated, Self, TypeAlias

from pydantic import Field, SerializerFunctionWrapHandler, model_validator
from pydantic.functional_serializers import model_serializer

from cuggino.edited_files import Section, matching

RESOURCE = re.compile(r"[A-Za-z_][A-Za-z0-9_.-]*")
"""The name of a resource or label of workers."""

Address: TypeAlias = Annotated[
    str, matching(r"\S+", 'must be an address such as "tls://HOST:8786", without spaces')
]
_Resource: TypeAlias = Annotated[
    str, matching(RESOURCE.pattern, 'must be the name of a resource, such as "gpu"')
]
_Remote: TypeAlias = Annotated[
    str, matching(r"[^\s-]\S*", 'must be a remote such as "origin", or a URL')
]
_Amount: TypeAlias = Annotated[float, Field(gt=0, allow_inf_nan=False)]


class ClusterSettings(Section):
    """The object form of `cluster`; a text is its `address`."""

    address: Address | None = None
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
    """Let attempts continue on the cluster when `watch` or `run` ends; the next `watch`, or
    `--resume`, takes them over."""
    remote: _Remote = "origin"
    """The git remote that this machine and all workers reach: its name here, or a URL."""
    needs: dict[_Resource, _Amount] = Field(default={})
    """Resources that every item takes on its worker, such as `{"gpu": 1}`, besides its agents and
    its own `needs`."""

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


Cluster: TypeAlias = Address | ClusterSettings | None
