"""Issues and pull requests: where a backlog comes from, and where its work is proposed.

Only cuggino talks to a forge, through its own program (`gh`, `glab`), which brings the login.
Agents get neither. What others write there is untrusted text.
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
