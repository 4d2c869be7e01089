"""Public names of `cuggino.stages`; written by `python -m tests.stubs`."""

from cuggino.sources import (
    KeptProcesses,
    PollingStarted,
    count_files,
    folder_changes,
    interrupt_processes,
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
    command_lines,
    command_stage,
    enclosed_shell,
    keeping_shell,
    must_succeed,
    shell_input,
    shell_lines,
    shell_with,
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
from cuggino.stages.merging import (
    Merge,
    go_on_merging,
    merge_under_way,
)
from cuggino.stages.repository import (
    ChangedTests,
    Commit,
    CommitEvent,
    Commits,
    GitRepository,
    KnowsAncestors,
    LeavesDirty,
    Merges,
    Moves,
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
from cuggino.stages.slots import (
    SlotFolder,
    SlotListing,
    SlotRef,
    SlotsCleaned,
    clean_slots,
    list_slots,
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
    "Merge",
    "Merges",
    "Moves",
    "NoSnapshots",
    "PollingStarted",
    "Recovers",
    "Repository",
    "Sessions",
    "Shell",
    "SlotFolder",
    "SlotListing",
    "SlotRef",
    "SlotsCleaned",
    "Snapshot",
    "Snapshots",
    "Supervision",
    "UndoPlan",
    "Undone",
    "act",
    "agent_stage",
    "changed_tests",
    "clean_slots",
    "clock",
    "command_lines",
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
    "go_on_merging",
    "holds_commands",
    "interrupt_processes",
    "keeping_shell",
    "lane",
    "list_slots",
    "merge_under_way",
    "must_commit",
    "must_succeed",
    "no_enclosure",
    "orphans_gone",
    "push_stage",
    "shell_input",
    "shell_lines",
    "shell_with",
    "snapshot_stage",
    "state_of_paths",
    "undo_plan",
    "undo_stage",
    "verified",
    "verified_commit",
    "watch_file_count",
]
