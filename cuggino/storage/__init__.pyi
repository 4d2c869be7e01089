"""Public names of `cuggino.storage`; written by `python -m tests.stubs`."""

from cuggino.storage.backlog import (
    Backlog,
    Survey,
)
from cuggino.storage.branch import (
    BranchRefused,
    current_branch,
    protected_branch,
)
from cuggino.storage.deliverables import (
    SPEC_FILE,
    STATUS_FILE,
    DeliverableStore,
    LoadedDeliverables,
    VerifiedFile,
)
from cuggino.storage.focus import (
    check_specs,
    check_specs_not_empty,
    read_focus,
    read_text_file,
)
from cuggino.storage.jobs import (
    DONE_FILE,
    JOBS_FILE,
    PLAN_FILE,
    REQUIREMENTS_FOLDER,
    SPECIFICATION_FILE,
    JobStore,
    LoadedJobs,
    UnverifiedJobs,
    check_requirement,
    is_done,
    remove_done,
    research_file,
    write_done,
)
from cuggino.storage.journal import (
    Entry,
    FinishedStage,
    Journal,
    JournalFile,
    decode_outcome,
    encode_outcome,
    find_run,
    finished_stages,
    has_ended,
    iter_entries,
    list_journals,
    prune,
    read_journal,
    run_totals,
    started_of,
)
from cuggino.storage.lock import (
    LockOwner,
)
from cuggino.storage.session import (
    Session,
)
from cuggino.storage.workspace import (
    WORKSPACE_FOLDER,
    Issue,
    Workspace,
    new_run_id,
)

__all__ = [
    "DONE_FILE",
    "JOBS_FILE",
    "PLAN_FILE",
    "REQUIREMENTS_FOLDER",
    "SPECIFICATION_FILE",
    "SPEC_FILE",
    "STATUS_FILE",
    "WORKSPACE_FOLDER",
    "Backlog",
    "BranchRefused",
    "DeliverableStore",
    "Entry",
    "FinishedStage",
    "Issue",
    "JobStore",
    "Journal",
    "JournalFile",
    "LoadedDeliverables",
    "LoadedJobs",
    "LockOwner",
    "Session",
    "Survey",
    "UnverifiedJobs",
    "VerifiedFile",
    "Workspace",
    "check_requirement",
    "check_specs",
    "check_specs_not_empty",
    "current_branch",
    "decode_outcome",
    "encode_outcome",
    "find_run",
    "finished_stages",
    "has_ended",
    "is_done",
    "iter_entries",
    "list_journals",
    "new_run_id",
    "protected_branch",
    "prune",
    "read_focus",
    "read_journal",
    "read_text_file",
    "remove_done",
    "research_file",
    "run_totals",
    "started_of",
    "write_done",
]
