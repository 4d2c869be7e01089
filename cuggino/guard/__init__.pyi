"""Public names of `cuggino.guard`; written by `python -m tests.stubs`."""

from cuggino.guard.extensions import (
    AllowedCommands,
    allowed_commands,
)
from cuggino.guard.policy import (
    Level,
    Mode,
    Policy,
)
from cuggino.guard.roles import (
    PERMISSION_SETS,
    PermissionSet,
    Role,
)
from cuggino.guard.sandbox import (
    NO_SANDBOX,
    SandboxMode,
    sandbox_mode,
    start_warnings,
)
from cuggino.guard.shell.shfmt import (
    find_shfmt,
)
from cuggino.guard.tools import (
    judge,
)
from cuggino.guard.verdict import (
    Part,
    Verdict,
)

__all__ = [
    "NO_SANDBOX",
    "PERMISSION_SETS",
    "AllowedCommands",
    "Level",
    "Mode",
    "Part",
    "PermissionSet",
    "Policy",
    "Role",
    "SandboxMode",
    "Verdict",
    "allowed_commands",
    "find_shfmt",
    "judge",
    "sandbox_mode",
    "start_warnings",
]
