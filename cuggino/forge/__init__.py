"""Issues and pull requests: the source of a backlog, and the target of its work.

Only cuggino calls a forge, through the forge's own CLI (`gh`, `glab`), which supplies the login.
Agents get neither. Text that others write there is untrusted.
"""

from cuggino.forge.api import PROGRAMS, Api, Response
from cuggino.forge.ci import Ci, ci_of
from cuggino.forge.command_sources import command_source
from cuggino.forge.finding import forge_of, remote_url
from cuggino.forge.github import GitHub
from cuggino.forge.gitlab import GitLab
from cuggino.forge.hooks import HookCall, RunHook, hooked
from cuggino.forge.importing import import_once, imported
from cuggino.forge.landing import landing_of
from cuggino.forge.model import (
    CheckState,
    Comment,
    Forge,
    Issue,
    Job,
    JobState,
    PullRequest,
    Remark,
    ci_state,
)
from cuggino.forge.programs import OLDEST, check_program, has_login, program_version
from cuggino.forge.project_ci import ProjectCi
from cuggino.forge.proposing import PullRequests, pull_requests
from cuggino.forge.redaction import Redaction, redacting
from cuggino.forge.source import Look, Source, SourceItem
from cuggino.forge.watching import Beside, beside_watch, sources_of

__all__ = [
    "OLDEST",
    "PROGRAMS",
    "Api",
    "Beside",
    "CheckState",
    "Ci",
    "Comment",
    "Forge",
    "GitHub",
    "GitLab",
    "HookCall",
    "Issue",
    "Job",
    "JobState",
    "Look",
    "ProjectCi",
    "PullRequest",
    "PullRequests",
    "Redaction",
    "Remark",
    "Response",
    "RunHook",
    "Source",
    "SourceItem",
    "beside_watch",
    "check_program",
    "ci_of",
    "ci_state",
    "command_source",
    "forge_of",
    "has_login",
    "hooked",
    "import_once",
    "imported",
    "landing_of",
    "program_version",
    "pull_requests",
    "redacting",
    "remote_url",
    "sources_of",
]
