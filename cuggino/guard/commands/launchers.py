"""Programs whose sub-commands or options start another one: that one is judged."""

from __future__ import annotations

from cuggino.guard.commands.base import Call, Judge, first
from cuggino.guard.commands.options import Syntax, parse_options

_EXECUTES: dict[str, tuple[tuple[str, ...], int]] = {
    "pyenv": (("exec",), 0),
    "rbenv": (("exec",), 0),
    "asdf": (("exec",), 0),
    "direnv": (("exec",), 1),
    "volta": (("run",), 0),
    "perf": (("stat", "record", "trace"), 0),
}
"""Sub-commands that start what stands behind them, and the operands of their own before it."""
_PERF = Syntax("eopctFCGrIxDm", ("output", "event", "pid", "call-graph", "repeat"),
               permutes=False)  # fmt: skip
_EXECUTE = Syntax("", ("node", "npm", "pnpm", "yarn", "env"), permutes=False)


def executes(call: Call) -> str:
    """The command behind the sub-command and its options."""
    verbs, skips = _EXECUTES[call.name]
    if not call.args or call.args[0].value not in verbs:
        return ""
    given = parse_options(call.args[1:], _PERF if call.name == "perf" else _EXECUTE)
    if reason := first(map(call.site.write, given.values("-o", "--output"))):
        return reason
    inner = given.operands[skips:]
    return call.site.judge(inner, call.site) if inner else ""


def debugger(call: Call) -> str:
    """What stands behind `--args`."""
    for index, word in enumerate(call.args):
        if word.value in ("--args", "-args"):
            return call.site.judge(call.args[index + 1 :], call.site)
    return ""


def benchmark(call: Call) -> str:
    """Each of its operands, and some of its options, is a text for a shell."""
    given = parse_options(
        call.args,
        Syntax("wmMrspcSnPDLu",
               ("warmup", "min-runs", "max-runs", "runs", "setup", "prepare", "cleanup", "conclude",
                "shell", "style", "parameter-scan", "parameter-step-size", "parameter-list",
                "command-name", "time-unit", "export-json", "export-markdown", "export-csv",
                "export-asciidoc", "export-orgmode", "output", "input", "reference")),
    )  # fmt: skip
    written = (option.name for option in given.options if option.name.startswith("--export-"))
    if reason := first(map(call.site.write, given.values(*written))):
        return reason
    texts = given.values("-s", "--setup", "-p", "--prepare", "-c", "--cleanup", "--conclude",
                         "--reference")  # fmt: skip
    for text in (*given.operands, *texts):
        if text.value is None:
            return f"It cannot be told what {call.name} runs: write the command out"
        if reason := call.site.judge_text(text.value, call.site):
            return reason
    return ""


JUDGES: dict[str, Judge] = {
    **dict.fromkeys(_EXECUTES, executes),
    "gdb": debugger,
    "hyperfine": benchmark,
}
