"""Programs as Observables.

`process_lines` runs a program and emits the lines it prints, `process_output` the whole output,
`run_bounded` waits for a short answer, and `run_in_terminal` gives the program the terminal;
`interrupt_processes` ends several at the same time.
`is_started_by_run` distinguishes agents and commands of runs from people. `process_started` and
`ancestors` identify a process that is waited for.
"""

from cuggino.processes.command import Confinement
from cuggino.processes.guardian_client import GUARDIAN, KeptProcesses
from cuggino.processes.orphans import orphans_gone
from cuggino.processes.process import (
    Said,
    interrupt_processes,
    process_batches,
    process_lines,
    process_output,
    run_bounded,
)
from cuggino.processes.process_tree import ancestors, is_started_by_run, process_started
from cuggino.processes.program_input import OpenInput
from cuggino.processes.terminal import run_in_terminal

__all__ = [
    "GUARDIAN",
    "Confinement",
    "KeptProcesses",
    "OpenInput",
    "Said",
    "ancestors",
    "interrupt_processes",
    "is_started_by_run",
    "orphans_gone",
    "process_batches",
    "process_lines",
    "process_output",
    "process_started",
    "run_bounded",
    "run_in_terminal",
]
