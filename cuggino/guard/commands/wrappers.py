"""Programs that start another one, which is judged in their place (AUT-212)."""

from __future__ import annotations

import re
from typing import NamedTuple

from cuggino.guard.commands.assignments import assignment_reason
from cuggino.guard.commands.base import UNKNOWN, Call, Judge, Site
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_NAME = re.compile(r"[A-Za-z_]\w*\+?=", re.ASCII)


class Wrapper(NamedTuple):
    """The syntax of a wrapper."""

    short: str = ""
    long: tuple[str, ...] = ()
    flags: tuple[str, ...] = ()
    skips: int = 0
    """Number of the wrapper's operands before the command."""
    attached: str = ""
    takes_assignments: bool = False
    refuses: tuple[str, ...] = ()
    """Options with which it may not be used."""
    written: tuple[str, ...] = ()
    """Options whose value is written."""
    alone: str = "denied"
    """Without a command: `denied`, or `fine`."""


_WRAPPERS: dict[str, Wrapper] = {
    "timeout": Wrapper("ks", ("kill-after", "signal"), ("foreground", "preserve-status"), 1),
    "nohup": Wrapper(),
    "time": Wrapper("fo", ("format", "output"), ("append", "portability", "verbose", "quiet"),
                    written=("-o", "--output")),
    "nice": Wrapper("n", ("adjustment",)),
    "ionice": Wrapper("cnpPu", ("class", "classdata", "pid"), ("ignore",)),
    "chrt": Wrapper("TPDp", ("sched-runtime", "sched-period", "sched-deadline"), (), 1),
    "taskset": Wrapper("", (), ("cpu-list", "all-tasks", "pid"), 1),
    "stdbuf": Wrapper("ioe", ("input", "output", "error")),
    "setsid": Wrapper("", (), ("ctty", "fork", "wait")),
    "caffeinate": Wrapper("tw"),
    "unbuffer": Wrapper(),
    "strace": Wrapper("aeEoOpsSuxXIbP", ("output", "trace", "user", "attach"),
                      written=("-o", "--output")),
    "ltrace": Wrapper("aeDFlnopsuwx", ("output", "where"), written=("-o", "--output")),
    "xvfb-run": Wrapper("efnps", ("error-file", "auth-file", "server-num", "server-args"),
                        written=("-e", "-f", "--error-file", "--auth-file")),
    "dbus-run-session": Wrapper("", ("config-file", "dbus-daemon"), refuses=("--dbus-daemon",)),
    "cross-env": Wrapper(takes_assignments=True),
    "dotenv": Wrapper("efvc", ()),
    "flock": Wrapper("wEc", ("timeout", "wait", "conflict-exit-code", "command"), (), 1,
                     refuses=("-c", "--command")),
    "sudo": Wrapper("ugpCDhrRtTU", ("user", "group", "prompt", "chdir", "chroot", "host", "role",
                    "type"), ("login", "shell", "edit", "preserve-env"), takes_assignments=True,
                    refuses=("-s", "-i", "-e", "-R", "-D", "--shell", "--login", "--edit",
                             "--chroot", "--chdir")),
    "doas": Wrapper("uC", refuses=("-s",)),
    "valgrind": Wrapper(alone="fine"),
    "eatmydata": Wrapper(),
    "fakeroot": Wrapper("lsibf", ("lib", "faked"), written=("-s",), alone="fine"),
    "faketime": Wrapper("p", ("date-prog",), ("exclude-monotonic",), 1),
    "rlwrap": Wrapper("bCDfgHlOPqsStwzeM", written=("-H", "-l"), alone="fine"),
    "ccache": Wrapper("dFkMoxX", alone="fine"),
    "sccache": Wrapper(alone="fine"),
    "distcc": Wrapper(alone="fine"),
    "bear": Wrapper("oc", ("output", "config"), ("append", "verbose"),
                    written=("-o", "--output"), alone="fine"),
    "busybox": Wrapper(alone="fine"),
    "toybox": Wrapper(alone="fine"),
}  # fmt: skip
_OPAQUE = frozenset(
    words(
        "su runuser chroot unshare nsenter systemd-run script expect parallel pkexec setpriv"
        " capsh start-stop-daemon batch at crontab"
    )
)


def wrapped(call: Call) -> str:
    """Judge the command after a wrapper's own options."""
    wrapper = _WRAPPERS[call.name.removeprefix("g") if call.name == "gtimeout" else call.name]
    given = parse_options(
        call.args,
        Syntax(
            wrapper.short, wrapper.long, wrapper.flags, permutes=False, attached=wrapper.attached
        ),
    )
    if given.has(*wrapper.refuses):
        return f"{call.name} must only start a command that stands in words of its own behind it"
    for written in given.values(*wrapper.written):
        if (written.value or "").startswith(("|", "!")):
            return f"{call.name} must write into a file: leave '{written.text}' out"
        if reason := call.site.write(written):
            return reason
    words = given.operands
    lock = words[0].value if call.name == "flock" and words else None
    if lock and (reason := call.site.paths.guards(lock, call.site.known)):
        return reason
    if not words and given.has("--version", "--help"):
        return ""
    own = (*words[: wrapper.skips], *given.values(*(option.name for option in given.options)))
    if any(word.value is None and "$(" in word.text for word in own) or any(
        is_many(word) for word in own
    ):
        return f"It cannot be told which command {call.name} starts: write its arguments out"
    return _start(call, words[wrapper.skips :], wrapper)


def _start(call: Call, words: tuple[Word, ...], wrapper: Wrapper) -> str:
    while wrapper.takes_assignments and words and _NAME.match(words[0].value or words[0].prefix):
        if reason := variable(words[0], call.site):
            return reason
        words = words[1:]
    if call.name == "flock" and words and words[0].value in ("-c", "--command"):
        text = words[1].value if len(words) > 1 else None
        return call.site.judge_text(text, call.site) if text else "It is not known what flock runs"
    if not words:
        return "" if wrapper.alone == "fine" else f"{call.name} needs a command that it starts"
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
        return "env must not split a text into a command: write the command out behind env"
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
        return "It cannot be told which command env starts: write it out"
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
        return "" if call.site.is_open else "xargs needs a command that it starts: write it out"
    marks = [option for option in given.options if option.name in ("-I", "-i", "--replace", "-J")]
    if not marks:
        added = Word("xargs{}", None, is_quoted=True)
        return call.site.judge((*words, added), call.site._replace(is_fed=True))
    value = marks[-1].value
    if value is not None and value.value is None:
        return "It cannot be told what xargs replaces: write the mark out"
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


JUDGES: dict[str, Judge] = {
    **dict.fromkeys((*_WRAPPERS, "gtimeout"), wrapped),
    **dict.fromkeys(_OPAQUE, opaque),
    "env": env,
    "genv": env,
    "command": command,
    "builtin": command,
    "exec": command,
    "xargs": xargs,
    "gxargs": xargs,
}
