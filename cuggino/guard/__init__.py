"""The guard: decides whether a tool call may run, and if not, why.

It needs only the standard library, because an agent's hook runs it in a separate process.
"""

from cuggino._lazy import lazy

NAMES = {
    "extensions": "AllowedCommands UnknownProfile allowed_commands chosen_profiles",
    "patches": "patched_files",
    "paths": "NOTE",
    "policy": "Level Mode Policy",
    "roles": "PERMISSIONS PERMISSION_SETS PermissionSet ROLES Role role_policy",
    "rules": "with_rules",
    "sandbox": "CACHES NO_SANDBOX Sandbox SandboxMode sandbox_for sandbox_mode start_warnings",
    "shell.shfmt": "find_shfmt",
    "tools": "FILE_TOOLS READERS SHELLS judge",
    "verdict": "Part Verdict denied",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
