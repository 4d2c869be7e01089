"""Issues and pull requests: the source of a backlog, and the target of its work.

Only cuggino calls a forge, through the forge's own CLI (`gh`, `glab`), which supplies the login.
Agents get neither. Text that others write there is untrusted.
"""

from cuggino._lazy import lazy

NAMES = {
    "api": "Api PROGRAMS Response",
    "command_sources": "command_source",
    "finding": "forge_of remote_url",
    "github": "GitHub",
    "gitlab": "GitLab",
    "importing": "import_once imported",
    "hooks": "HookCall RunHook hooked",
    "landing": "landing_of",
    "model": "CheckState Comment Forge Issue Job PullRequest Remark",
    "programs": "OLDEST check_program has_login program_version",
    "proposing": "PullRequests pull_requests",
    "redaction": "Redaction redacting",
    "source": "Look Source SourceItem",
    "watching": "Beside beside_watch sources_of",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
