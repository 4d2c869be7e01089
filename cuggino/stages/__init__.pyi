"""Public names of `cuggino.stages`; written by `python -m tests.stubs`."""

from cuggino.sources import (
    KeptProcesses,
    PollingStarted,
    count_files,
    folder_changes,
    orphans_gone,
    state_of_paths,
    watch_file_count,
)
from cuggino.stages.acts import (
    act,
    clock,
    lane,
)
from cuggino.stages.agent import (
    LINGER,
    agent_stage,
)
from cuggino.stages.command import (
    Shell,
    command_stage,
    enclosed_shell,
    keeping_shell,
    must_succeed,
    shell_lines,
)
from cuggino.stages.control import (
    control_commands,
)
from cuggino.stages.enclosing import (
    Enclose,
    commands_enclosure,
    enclose_commands,
    holds_commands,
    no_enclosure,
)
from cuggino.stages.fingerprint import (
    fingerprint_stage,
)
from cuggino.stages.repository import (
    ChangedTests,
    Commit,
    CommitEvent,
    Commits,
    GitRepository,
    KnowsAncestors,
    LeavesDirty,
    Recovers,
    Repository,
    changed_tests,
    commit_message,
    commit_stage,
    commits_since,
    must_commit,
    push_stage,
)
from cuggino.stages.sessions import (
    Sessions,
)
from cuggino.stages.snapshot import (
    GitSnapshots,
    NoSnapshots,
    Snapshot,
    Snapshots,
    snapshot_stage,
)
from cuggino.stages.supervision import (
    Earlier,
    Supervision,
)
from cuggino.stages.undo import (
    Change,
    Undone,
    UndoPlan,
    find_snapshot,
    undo_plan,
    undo_stage,
)
from cuggino.stages.verification import (
    KEPT,
    verified,
    verified_commit,
)

__all__ = [
    "KEPT",
    "LINGER",
    "Change",
    "ChangedTests",
    "Commit",
    "CommitEvent",
    "Commits",
    "Earlier",
    "Enclose",
    "GitRepository",
    "GitSnapshots",
    "KeptProcesses",
    "KnowsAncestors",
    "LeavesDirty",
    "NoSnapshots",
    "PollingStarted",
    "Recovers",
    "Repository",
    "Sessions",
    "Shell",
    "Snapshot",
    "Snapshots",
    "Supervision",
    "UndoPlan",
    "Undone",
    "act",
    "agent_stage",
    "changed_tests",
    "clock",
    "command_stage",
    "commands_enclosure",
    "commit_message",
    "commit_stage",
    "commits_since",
    "control_commands",
    "count_files",
    "enclose_commands",
    "enclosed_shell",
    "find_snapshot",
    "fingerprint_stage",
    "folder_changes",
    "holds_commands",
    "keeping_shell",
    "lane",
    "must_commit",
    "must_succeed",
    "no_enclosure",
    "orphans_gone",
    "push_stage",
    "shell_lines",
    "snapshot_stage",
    "state_of_paths",
    "undo_plan",
    "undo_stage",
    "verified",
    "verified_commit",
    "watch_file_count",
]
