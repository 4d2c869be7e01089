"""Programs as Observables.

`process_lines` runs a program and emits the lines it prints, `process_output` the whole output,
and `run_in_terminal` gives it the terminal; `interrupt_processes` ends several at the same time.
`is_started_by_run` distinguishes agents and commands of runs from people.
"""

from cuggino.processes.bounded import run_bounded
from cuggino.processes.environment import current_environment
from cuggino.processes.guardian_client import GUARDIAN
from cuggino.processes.kept import KeptProcesses
from cuggino.processes.orphans import orphans_gone
from cuggino.processes.process import (
    interrupt_processes,
    process_batches,
    process_lines,
    process_output,
)
from cuggino.processes.process_tree import is_started_by_run
from cuggino.processes.program_input import OpenInput
from cuggino.processes.terminal import run_in_terminal
from cuggino.processes.to_end import Ended, process_to_end

__all__ = [
    "GUARDIAN",
    "Ended",
    "KeptProcesses",
    "OpenInput",
    "current_environment",
    "interrupt_processes",
    "is_started_by_run",
    "orphans_gone",
    "process_batches",
    "process_lines",
    "process_output",
    "process_to_end",
    "run_bounded",
    "run_in_terminal",
]
