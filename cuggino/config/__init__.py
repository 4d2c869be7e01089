"""`.cuggino.json`: what it may hold, and how it is read and written.

Unlike the original, a file that cannot be used is an error with its place and a proposal, never a
silent default: a run with other settings than the user believes costs a night.
"""

from cuggino.config.agents import FallbackAgent, RoleAgent
from cuggino.config.file import (
    CONFIG_FILE,
    changed_config,
    config_path,
    load_config,
    parse_config,
    save_config,
)
from cuggino.config.guarding import configured_policy, configured_sandbox
from cuggino.config.model import Config, LoopSettings

__all__ = [
    "CONFIG_FILE",
    "Config",
    "FallbackAgent",
    "LoopSettings",
    "RoleAgent",
    "changed_config",
    "config_path",
    "configured_policy",
    "configured_sandbox",
    "load_config",
    "parse_config",
    "save_config",
]
