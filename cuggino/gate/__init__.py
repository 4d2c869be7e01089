"""The gate: what a check means, and what an approval depends on.

`judge_check` compares a check with the one before the first agent, `deciding_files` names the files
that may weaken it, and `GitWork` runs it with their versions of the start and finds what the
current commit lacks of the work. `failures_in` tells failing tests apart, `why_it_cannot_fail`
finds commands that always pass, `objections` what contradicts an approval, and `Flakes` counts
tests that fail now and then.
"""

from cuggino.gate.answers import is_answered
from cuggino.gate.cannot_fail import why_it_cannot_fail
from cuggino.gate.decisive import deciding_files, ran_nothing
from cuggino.gate.failures import Failures, failures_in, new_since, same
from cuggino.gate.flakes import Flake, Flakes, add_flake, read_flakes, write_flakes
from cuggino.gate.last_word import LastWord, has_findings, objections, question, requested_changes
from cuggino.gate.verdict import CheckResult, Repeats, hidden_failures, judge_check
from cuggino.gate.work import GitWork, NoWork, Shell, Standing, State, Work

__all__ = [
    "CheckResult",
    "Failures",
    "Flake",
    "Flakes",
    "GitWork",
    "LastWord",
    "NoWork",
    "Repeats",
    "Shell",
    "Standing",
    "State",
    "Work",
    "add_flake",
    "deciding_files",
    "failures_in",
    "has_findings",
    "hidden_failures",
    "is_answered",
    "judge_check",
    "new_since",
    "objections",
    "question",
    "ran_nothing",
    "read_flakes",
    "requested_changes",
    "same",
    "why_it_cannot_fail",
    "write_flakes",
]
