"""The guard: may this tool call run, and if not, why.

It needs only the standard library, because an agent's hook runs it in a process of its own.
"""

from cuggino._lazy import lazy

NAMES = {
    "extensions": "AllowedCommands allowed_commands",
    "policy": "Level Mode Policy",
    "roles": "PERMISSION_SETS PermissionSet Role",
    "sandbox": "NO_SANDBOX SandboxMode sandbox_mode start_warnings",
    "shell.shfmt": "find_shfmt",
    "tools": "judge",
    "verdict": "Part Verdict",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
