"""Issues and pull requests: where a backlog comes from, and where its work is proposed.

Only cuggino talks to a forge, through its own program (`gh`, `glab`), which brings the login.
Agents get neither. What others write there is untrusted text.
"""

from cuggino._lazy import lazy

NAMES = {
    "answering": "answered",
    "api": "Api PROGRAMS Response",
    "claiming": "claim_with reclaimed",
    "command_sources": "command_source",
    "desk": "Desk Tracker",
    "finding": "forge_of place_of remote_url",
    "github": "GitHub",
    "gitlab": "GitLab",
    "importing": "import_once imported",
    "hooks": "HookCall RunHook hooked hooks_of",
    "issue_sources": "issue_source",
    "landing": "landing_of",
    "model": "CheckState Comment Forge Issue Job PullRequest Remark",
    "describing": "Describe Description describing",
    "patience": "patiently",
    "programs": "OLDEST check_program has_login program_version",
    "proposing": "PullRequests pull_requests",
    "redaction": "Redaction foreign inline outgoing redacting shortened",
    "reporting": "reported",
    "source": "Look Source SourceItem source_of",
    "watching": "Beside beside_watch sources_of",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
