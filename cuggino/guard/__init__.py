"""The guard: decides whether a tool call may run, and if not, why.

It needs only the standard library, because an agent's hook runs it in a separate process.
"""

from cuggino.guard.extensions import (
    AllowedCommands,
    UnknownProfile,
    allowed_commands,
    chosen_profiles,
)
from cuggino.guard.patches import patched_files
from cuggino.guard.paths import NOTE
from cuggino.guard.policy import Level, Mode, Policy
from cuggino.guard.roles import (
    PERMISSION_SETS,
    PERMISSIONS,
    ROLES,
    PermissionSet,
    Role,
    role_policy,
)
from cuggino.guard.rules import with_rules
from cuggino.guard.sandbox import (
    CACHES,
    NO_SANDBOX,
    Sandbox,
    SandboxMode,
    sandbox_for,
    sandbox_mode,
    start_warnings,
)
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import FILE_TOOLS, READERS, SHELLS, judge
from cuggino.guard.verdict import Part, Verdict, denied

__all__ = [
    "CACHES",
    "FILE_TOOLS",
    "NOTE",
    "NO_SANDBOX",
    "PERMISSIONS",
    "PERMISSION_SETS",
    "READERS",
    "ROLES",
    "SHELLS",
    "AllowedCommands",
    "Level",
    "Mode",
    "Part",
    "PermissionSet",
    "Policy",
    "Role",
    "Sandbox",
    "SandboxMode",
    "UnknownProfile",
    "Verdict",
    "allowed_commands",
    "chosen_profiles",
    "denied",
    "find_shfmt",
    "judge",
    "patched_files",
    "role_policy",
    "sandbox_for",
    "sandbox_mode",
    "start_warnings",
    "with_rules",
]
