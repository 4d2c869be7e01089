"""The tokens of a session."""

from pydantic import BaseModel, ConfigDict


class Usage(BaseModel):
    """Tokens of a session, as counted by the provider. A value, not an event."""

    model_config = ConfigDict(frozen=True, extra="ignore", defer_build=True)

    input_tokens: int = 0
    output_tokens: int = 0
    cache_read_tokens: int = 0
    cache_creation_tokens: int = 0
