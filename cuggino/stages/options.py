"""The options of a single stage, which the options of every loop extend."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from pydantic import Field

from cuggino.config import RunSettings


class StageOptions(RunSettings):
    """The options that all stages share."""

    cwd: Path
    """The project."""
    env: Mapping[str, str] = Field(default_factory=dict, exclude=True)
    """Variables for the agents, the setup command and the check command, besides those of this
    process. They are not journaled."""
    limits_network: bool = False
    """Limit the hosts that agents connect to, where an agent's own sandbox can: for imported text,
    and for a watch that imports some."""
    retry_pause: float = Field(default=5.0, ge=0)
    """Seconds before the first retry after a transient failure; each further pause doubles."""
    quota_margin: float = Field(default=60.0, ge=0)
    """Seconds to wait beyond the time a usage limit is lifted, as clocks differ."""
