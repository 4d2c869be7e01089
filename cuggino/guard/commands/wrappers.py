"""Programs that start another one, which is judged in their place (AUT-212)."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import UNKNOWN, Call, Site
from cuggino.guard.commands.options import Syntax, parse_options, row_of
from cuggino.guard.commands.variables import assignment_reason
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_NAME = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


_TABLE = """
timeout gtimeout: ks|kill-after signal|foreground preserve-status|1
nohup unbuffer eatmydata:
time: fo|format output|append portability verbose quiet||-o --output
nice: n|adjustment
ionice: cnpPu|class classdata pid|ignore
chrt: TPDp|sched-runtime sched-period sched-deadline||1
taskset: ||cpu-list all-tasks pid|1
stdbuf: ioe|input output error
setsid: ||ctty fork wait
caffeinate: tw
strace: aeEoOpsSuxXIbP|output trace user attach|||-o --output
ltrace: aeDFlnopsuwx|output where|||-o --output
xvfb-run: efnps|error-file auth-file server-num server-args|||-e -f --error-file --auth-file
dbus-run-session: |config-file dbus-daemon||||--dbus-daemon
cross-env: ||||||sets
dotenv: efvc
flock: wEc|timeout wait conflict-exit-code command||1||-c --command
sudo: ugpCDhrRtTU|user group prompt chdir chroot host role type|login shell edit preserve-env|||
  -s -i -e -R -D --shell --login --edit --chroot --chdir|sets
doas: uC|||||-s
valgrind sccache distcc busybox toybox: ||||||alone
fakeroot: lsibf|lib faked|||-s||alone
faketime: p|date-prog|exclude-monotonic|1
rlwrap: bCDfgHlOPqsStwzeM||||-H -l||alone
ccache: dFkMoxX||||||alone
bear: oc|output config|append verbose||-o --output||alone
"""
"""By wrapper: letters with a value, long options with one, long ones without, the number of its
operands before the command, options whose value is written, options with which it may not be used,
and whether it `sets` variables before the command or is fine `alone`."""


def wrapped(call: Call) -> str:
    """Judge the command after a wrapper's own options."""
    short, long, flags, skips, written, refuses, marks, *_ = row_of(_TABLE, call.name) or [""] * 7
    given = parse_options(call.args, Syntax(short, words(long), words(flags), permutes=False))
    if given.has(*words(refuses)):
        return f"{call.name} must only start a command that stands in words of its own behind it"
    for word in given.values(*words(written)):
        if (word.value or "").startswith(("|", "!")):
            return f"{call.name} must write into a file: leave '{word.text}' out"
        if reason := call.site.write(word):
            return reason
    operands = given.operands
    lock = operands[0].value if call.name == "flock" and operands else None
    if lock and (reason := call.site.paths.guards(lock, call.site.known)):
        return reason
    if not operands and given.has("--version", "--help"):
        return ""
    count = int(skips or 0)
    own = (*operands[:count], *given.values(*(option.name for option in given.options)))
    if any((word.value is None and "$(" in word.text) or is_many(word) for word in own):
        return f"Cannot tell which command {call.name} starts: write its arguments literally"
    return _start(call, operands[count:], marks)


def _start(call: Call, words: tuple[Word, ...], marks: str) -> str:
    while marks == "sets" and words and _NAME.match(words[0].value or words[0].prefix):
        if reason := variable(words[0], call.site):
            return reason
        words = words[1:]
    if call.name == "flock" and words and words[0].value in ("-c", "--command"):
        text = words[1].value if len(words) > 1 else None
        return call.site.judge_text(text, call.site) if text else "Cannot tell what flock runs"
    if not words:
        return "" if marks == "alone" else f"{call.name} needs a command that it starts"
    return call.site.judge(words, call.site)


def is_many(word: Word) -> bool:
    """Return whether the word may become several, so that those after it move."""
    return word.value is None and not (word.text.startswith('"') and word.text.endswith('"'))


def variable(word: Word, site: Site) -> str:
    """Return why `NAME=value` as an argument is denied."""
    text = word.value if word.value is not None else word.prefix
    name, _, value = text.partition("=")
    known = value if word.value is not None else None
    return assignment_reason(name.rstrip("+"), known, site.policy, appends=name.endswith("+"))


def env(call: Call) -> str:
    """Judge the variables and the command of `env`."""
    given = parse_options(
        call.args,
        Syntax("uCSP", ("unset", "chdir", "split-string"), ("ignore-environment", "null", "debug",
               "block-signal", "default-signal", "ignore-signal"), permutes=False),
    )  # fmt: skip
    if given.has("-S", "--split-string", "-P"):
        return "env must not split text into a command: write the command literally after env"
    site = call.site
    for folder in given.values("-C", "--chdir"):
        if folder.value is None:
            site = site._replace(cwds=frozenset({UNKNOWN}))
        else:
            cwds = site.paths.enter(folder.value, site.known)
            site = site._replace(cwds=cwds or frozenset({UNKNOWN}))
    words = given.operands
    if words and words[0].value == "-":  # it stands for -i
        words = words[1:]
    # Any word with `=` sets a variable for env, whatever its name looks like to a shell.
    while words and "=" in (words[0].value or words[0].prefix):
        if reason := variable(words[0], site):
            return reason
        words = words[1:]
    if site.is_open and words and words[0].value is None and not words[0].prefix:
        words = words[1:]  # assignments, such as those of `env $(cat .env) npm start`
    if words and words[0].value is None:
        return "Cannot tell which command env starts: write it literally"
    return site.judge(words, site) if words else ""


def command(call: Call) -> str:
    """Judge the command after `command`, `builtin` or `exec`; `command -v` only looks."""
    syntax = Syntax("a", permutes=False) if call.name == "exec" else Syntax(permutes=False)
    given = parse_options(call.args, syntax)
    if call.name == "command" and given.has("-v", "-V"):
        return ""
    if not given.operands:
        return "" if not call.args else f"{call.name} needs a command that it starts"
    return call.site.judge(given.operands, call.site)


def xargs(call: Call) -> str:
    """Judge the command of `xargs`, which gets further unknown words."""
    given = parse_options(
        call.args,
        Syntax("IEdLnPsaJRS", ("arg-file", "delimiter", "max-lines", "max-args", "max-procs",
               "max-chars", "process-slot-var"), ("null", "no-run-if-empty", "verbose", "exit",
               "interactive", "open-tty", "show-limits", "eof", "replace"), permutes=False,
               attached="iel"),
    )  # fmt: skip
    words = given.operands
    if not words:
        return "" if call.site.is_open else "xargs needs a command to run"
    marks = [option for option in given.options if option.name in ("-I", "-i", "--replace", "-J")]
    if not marks:
        added = Word("xargs{}", None, is_quoted=True)
        return call.site.judge((*words, added), call.site._replace(is_fed=True))
    value = marks[-1].value
    if value is not None and value.value is None:
        return "Cannot tell what xargs replaces: write the placeholder literally"
    mark = (value.value if value is not None else "") or "{}"
    replaced = tuple(
        Word("{}", None, word.value.partition(mark)[0])
        if word.value is not None and mark in word.value
        else word
        for word in words
    )
    return call.site.judge(replaced, call.site._replace(is_fed=True))


def opaque(call: Call) -> str:
    """Deny programs that start others in ways that cannot be judged."""
    return f"{call.name} starts programs in a way that cannot be judged: start them directly"
