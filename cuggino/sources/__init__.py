"""The operating system as Observables.

`process_lines` runs a program and emits the lines it prints, `process_output` the whole output,
and `run_in_terminal` gives it the terminal; `interrupt_processes` ends several at the same time;
`git_lines` and `git_output` do so with git, and `repository_state` reads the state of a repository,
`commit_of` its current commit,
`commit_obstacles` what keeps it from commits, `program_settings` what of it starts programs,
`state_of_paths` the content of chosen files.
`is_started_by_run` distinguishes agents and commands of runs from people.
`folder_changes` emits when the files of a folder change, `watch_file_count` emits their number.
Names are resolved on first use: the guardian of `process_lines` imports
`cuggino.sources.process_tree` and must not wait for reactivex.
"""

from cuggino._lazy import lazy

NAMES = {
    "bounded": "run_bounded",
    "environment": "current_environment",
    "file_count": "count_files watch_file_count",
    "folder": "PollingStarted folder_changes",
    "git": "git_environment git_lines git_output has_own_ssh",
    "git_head": "commit_at_head commit_of",
    "git_locks": "remove_stale_locks",
    "git_obstacles": "CommitObstacle commit_obstacles git_failure git_refusal has_work_tree",
    "git_settings": (
        "GitSetting git_folder looking_environment ordinary_repository program_settings"
    ),
    "git_state": "RepositoryState repository_state",
    "guardian_client": "GUARDIAN",
    "kept": "KeptProcesses",
    "orphans": "orphans_gone",
    "path_state": "state_of_paths",
    "protection": "PathVersion Protection files_of",
    "process_tree": "is_started_by_run",
    "process": (
        "InputPipe OpenInput interrupt_processes process_batches process_duplex process_lines "
        "process_output"
    ),
    "reader_threads": "IDLE_READER",
    "terminal": "run_in_terminal",
    "to_end": "Ended process_to_end",
}
"""The public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
