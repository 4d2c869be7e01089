"""Public names of `cuggino.forge`; written by `python -m tests.stubs`."""

from cuggino.forge.answering import (
    answered,
)
from cuggino.forge.api import (
    PROGRAMS,
    Api,
    Response,
)
from cuggino.forge.claiming import (
    claim_with,
    reclaimed,
)
from cuggino.forge.command_sources import (
    command_source,
)
from cuggino.forge.describing import (
    Describe,
    Description,
    describing,
)
from cuggino.forge.desk import (
    Desk,
    Tracker,
)
from cuggino.forge.finding import (
    forge_of,
    place_of,
    remote_url,
)
from cuggino.forge.github import (
    GitHub,
)
from cuggino.forge.gitlab import (
    GitLab,
)
from cuggino.forge.hooks import (
    HookCall,
    RunHook,
    hooked,
    hooks_of,
)
from cuggino.forge.importing import (
    import_once,
    imported,
)
from cuggino.forge.issue_sources import (
    issue_source,
)
from cuggino.forge.landing import (
    landing_of,
)
from cuggino.forge.model import (
    CheckState,
    Comment,
    Forge,
    Issue,
    Job,
    PullRequest,
    Remark,
)
from cuggino.forge.patience import (
    patiently,
)
from cuggino.forge.programs import (
    OLDEST,
    check_program,
    has_login,
    program_version,
)
from cuggino.forge.proposing import (
    PullRequests,
    pull_requests,
)
from cuggino.forge.redaction import (
    Redaction,
    foreign,
    inline,
    outgoing,
    redacting,
    shortened,
)
from cuggino.forge.reporting import (
    reported,
)
from cuggino.forge.source import (
    Look,
    Source,
    SourceItem,
    source_of,
)
from cuggino.forge.watching import (
    Beside,
    beside_watch,
    sources_of,
)

__all__ = [
    "OLDEST",
    "PROGRAMS",
    "Api",
    "Beside",
    "CheckState",
    "Comment",
    "Describe",
    "Description",
    "Desk",
    "Forge",
    "GitHub",
    "GitLab",
    "HookCall",
    "Issue",
    "Job",
    "Look",
    "PullRequest",
    "PullRequests",
    "Redaction",
    "Remark",
    "Response",
    "RunHook",
    "Source",
    "SourceItem",
    "Tracker",
    "answered",
    "beside_watch",
    "check_program",
    "claim_with",
    "command_source",
    "describing",
    "foreign",
    "forge_of",
    "has_login",
    "hooked",
    "hooks_of",
    "import_once",
    "imported",
    "inline",
    "issue_source",
    "landing_of",
    "outgoing",
    "patiently",
    "place_of",
    "program_version",
    "pull_requests",
    "reclaimed",
    "redacting",
    "remote_url",
    "reported",
    "shortened",
    "source_of",
    "sources_of",
]
