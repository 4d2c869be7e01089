"""Stages: one action each, as an Observable whose last event is its outcome.

Compose a loop of your own from them with `flow` (`cuggino help library`). A `Workplace` has what
they share; `Runtime.workplace` makes one.

What a loop observes of the operating system (folders, files, orphans) is exported here too.
"""

from cuggino.folders import (
    PollingStarted,
    count_files,
    folder_changes,
    state_of_paths,
    watch_file_count,
)
from cuggino.processes import KeptProcesses, interrupt_processes, orphans_gone
from cuggino.stages.acts import act, clock, lane
from cuggino.stages.agent import LINGER, Evidence, agent_stage, agent_story
from cuggino.stages.audit import AUDIT_VARIABLES, audit_stage
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
from cuggino.stages.control import control_commands
from cuggino.stages.fingerprint import fingerprint_stage, trace_stage
from cuggino.stages.flakes import flake_stage
from cuggino.stages.handover import handover, work_left
from cuggino.stages.instructions import with_first_instructions
from cuggino.stages.merging import Merge, go_on_merging, merge_under_way
from cuggino.stages.metering import unpriceable
from cuggino.stages.options import StageOptions
from cuggino.stages.project import (
    check_stage,
    commit_stage,
    copy_check_stage,
    push_stage,
    setup_stage,
    snapshot_stage,
)
from cuggino.stages.repository import (
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
    commit_message,
    commit_to,
    commits_since,
    must_commit,
    push_to,
)
from cuggino.stages.roles import (
    CONFLICT,
    CONFLICT_VARIABLES,
    JUDGE,
    JUDGE_VARIABLES,
    ROLE_VARIABLES,
    Turn,
    check_prompts,
    chosen_attempt,
    implementing_stage,
    judging_stage,
    planning_stage,
    resolving_stage,
    reviewing_stage,
    role_markers,
)
from cuggino.stages.services import Changes, Services
from cuggino.stages.sessions import Resumes, Sessions
from cuggino.stages.slots import (
    SlotFolder,
    SlotListing,
    SlotRef,
    SlotsCleaned,
    check_folder,
    clean_check_stage,
    clean_slots,
    list_slots,
    missing_ignored,
)
from cuggino.stages.snapshot import GitSnapshots, NoSnapshots, Snapshot, Snapshots
from cuggino.stages.spawning import (
    boundary_for,
    choose_sandbox,
    commands_shell,
    protected_from_commands,
    spawn_options,
)
from cuggino.stages.supervision import Earlier, Supervision, budget_of, supervision_of
from cuggino.stages.undo import Change, Undone, UndoPlan, find_snapshot, undo_plan, undo_stage
from cuggino.stages.verification import KEPT, verified, verified_commit
from cuggino.stages.waited import WAITING_SECTION, Waited, resumed_session, waiting_in
from cuggino.stages.waiting import Ci, NoCi, WaitingPlace, waiting, waiting_asked
from cuggino.stages.workplace import Workplace

__all__ = [
    "AUDIT_VARIABLES",
    "CONFLICT",
    "CONFLICT_VARIABLES",
    "JUDGE",
    "JUDGE_VARIABLES",
    "KEPT",
    "LINGER",
    "ROLE_VARIABLES",
    "WAITING_SECTION",
    "Change",
    "Changes",
    "Ci",
    "Commit",
    "CommitEvent",
    "Commits",
    "Earlier",
    "Evidence",
    "GitRepository",
    "GitSnapshots",
    "KeptProcesses",
    "KnowsAncestors",
    "LeavesDirty",
    "Merge",
    "Merges",
    "Moves",
    "NoCi",
    "NoSnapshots",
    "PollingStarted",
    "Recovers",
    "Repository",
    "Resumes",
    "Services",
    "Sessions",
    "Shell",
    "SlotFolder",
    "SlotListing",
    "SlotRef",
    "SlotsCleaned",
    "Snapshot",
    "Snapshots",
    "StageOptions",
    "Supervision",
    "Turn",
    "UndoPlan",
    "Undone",
    "Waited",
    "WaitingPlace",
    "Workplace",
    "act",
    "agent_stage",
    "agent_story",
    "audit_stage",
    "boundary_for",
    "budget_of",
    "check_folder",
    "check_prompts",
    "check_stage",
    "choose_sandbox",
    "chosen_attempt",
    "clean_check_stage",
    "clean_slots",
    "clock",
    "command_lines",
    "command_stage",
    "commands_shell",
    "commit_message",
    "commit_stage",
    "commit_to",
    "commits_since",
    "control_commands",
    "copy_check_stage",
    "count_files",
    "enclosed_shell",
    "find_snapshot",
    "fingerprint_stage",
    "flake_stage",
    "folder_changes",
    "go_on_merging",
    "handover",
    "implementing_stage",
    "interrupt_processes",
    "judging_stage",
    "keeping_shell",
    "lane",
    "list_slots",
    "merge_under_way",
    "missing_ignored",
    "must_commit",
    "must_succeed",
    "orphans_gone",
    "planning_stage",
    "protected_from_commands",
    "push_stage",
    "push_to",
    "resolving_stage",
    "resumed_session",
    "reviewing_stage",
    "role_markers",
    "setup_stage",
    "shell_input",
    "shell_lines",
    "shell_with",
    "snapshot_stage",
    "spawn_options",
    "state_of_paths",
    "supervision_of",
    "trace_stage",
    "undo_plan",
    "undo_stage",
    "unpriceable",
    "verified",
    "verified_commit",
    "waiting",
    "waiting_asked",
    "waiting_in",
    "watch_file_count",
    "with_first_instructions",
    "work_left",
]
