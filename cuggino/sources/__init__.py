"""The operating system as Observables.

`process_lines` runs a program and emits the lines it prints, `process_output` the whole output,
and `run_in_terminal` gives it the terminal; `interrupt_processes` ends several at the same time.
`state_of_paths` emits the content of chosen files.
`is_started_by_run` distinguishes agents and commands of runs from people.
`folder_changes` emits when the files of a folder change, `watch_file_count` emits their number.
"""

from cuggino.sources.bounded import run_bounded
from cuggino.sources.environment import current_environment
from cuggino.sources.file_count import count_files, watch_file_count
from cuggino.sources.folder import PollingStarted, folder_changes
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
    "Ended",
    "KeptProcesses",
    "OpenInput",
    "PathVersion",
    "PollingStarted",
    "Protection",
    "count_files",
    "current_environment",
    "files_of",
    "folder_changes",
    "interrupt_processes",
    "is_started_by_run",
    "orphans_gone",
    "process_batches",
    "process_lines",
    "process_output",
    "process_to_end",
    "run_bounded",
    "run_in_terminal",
    "state_of_paths",
    "watch_file_count",
]
