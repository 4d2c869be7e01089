"""Stages: one action each, as an Observable whose last event is its outcome.

What a loop observes of the operating system (folders, files, orphans) is exported here too.
"""

from cuggino._lazy import lazy

NAMES = {
    "acts": "act clock lane",
    "agent": "LINGER agent_stage agent_story",
    "command": (
        "Shell command_lines command_stage enclosed_shell keeping_shell must_succeed shell_input "
        "shell_lines shell_with"
    ),
    "control": "control_commands",
    "enclosing": "Enclose commands_enclosure enclose_commands holds_commands no_enclosure",
    "fingerprint": "fingerprint_stage",
    "merging": "Merge go_on_merging merge_under_way",
    "repository": (
        "ChangedTests Commit CommitEvent Commits GitRepository KnowsAncestors LeavesDirty Moves "
        "Merges Recovers Repository changed_tests commit_message commit_stage commits_since "
        "must_commit push_stage"
    ),
    "sessions": "Sessions",
    "slots": "SlotFolder SlotListing SlotRef SlotsCleaned clean_slots list_slots",
    "snapshot": "GitSnapshots NoSnapshots Snapshot Snapshots snapshot_stage",
    "supervision": "Earlier Supervision",
    "undo": "Change UndoPlan Undone find_snapshot undo_plan undo_stage",
    "verification": "KEPT verified verified_commit",
    "cuggino.sources": (
        "KeptProcesses PollingStarted count_files folder_changes interrupt_processes orphans_gone "
        "state_of_paths watch_file_count"
    ),
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
