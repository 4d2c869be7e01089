"""The operating system as Observables.

`process_lines` runs a program and emits the lines it prints, `process_output` the whole output,
and `run_in_terminal` gives it the terminal; `interrupt_processes` ends several at the same time;
`git_lines` and `git_output` do so with git, and `repository_state` reads the state of a repository,
`commit_of` its current commit,
`commit_obstacles` what keeps it from commits, `program_settings` what of it starts programs,
`state_of_paths` the content of chosen files.
`is_started_by_run` distinguishes agents and commands of runs from people.
`folder_changes` emits when the files of a folder change, `watch_file_count` emits their number.
"""

from cuggino.sources.bounded import run_bounded
from cuggino.sources.environment import current_environment
from cuggino.sources.file_count import count_files, watch_file_count
from cuggino.sources.folder import PollingStarted, folder_changes
from cuggino.sources.git import git_environment, git_lines, git_output, has_own_ssh
from cuggino.sources.git_head import commit_at_head, commit_of
from cuggino.sources.git_locks import remove_stale_locks
from cuggino.sources.git_obstacles import (
    CommitObstacle,
    commit_obstacles,
    git_failure,
    git_refusal,
    has_work_tree,
)
from cuggino.sources.git_settings import (
    GitSetting,
    git_folder,
    looking_environment,
    ordinary_repository,
    program_settings,
)
from cuggino.sources.git_state import RepositoryState, repository_state
from cuggino.sources.guardian_client import GUARDIAN
from cuggino.sources.kept import KeptProcesses
from cuggino.sources.orphans import orphans_gone
from cuggino.sources.path_state import state_of_paths
from cuggino.sources.process import (
    interrupt_processes,
    process_batches,
    process_lines,
    process_output,
)
from cuggino.sources.process_tree import is_started_by_run
from cuggino.sources.program_input import OpenInput
from cuggino.sources.protection import PathVersion, Protection, files_of
from cuggino.sources.terminal import run_in_terminal
from cuggino.sources.to_end import Ended, process_to_end

__all__ = [
    "GUARDIAN",
    "CommitObstacle",
    "Ended",
    "GitSetting",
    "KeptProcesses",
    "OpenInput",
    "PathVersion",
    "PollingStarted",
    "Protection",
    "RepositoryState",
    "commit_at_head",
    "commit_obstacles",
    "commit_of",
    "count_files",
    "current_environment",
    "files_of",
    "folder_changes",
    "git_environment",
    "git_failure",
    "git_folder",
    "git_lines",
    "git_output",
    "git_refusal",
    "has_own_ssh",
    "has_work_tree",
    "interrupt_processes",
    "is_started_by_run",
    "looking_environment",
    "ordinary_repository",
    "orphans_gone",
    "process_batches",
    "process_lines",
    "process_output",
    "process_to_end",
    "program_settings",
    "remove_stale_locks",
    "repository_state",
    "run_bounded",
    "run_in_terminal",
    "state_of_paths",
    "watch_file_count",
]
