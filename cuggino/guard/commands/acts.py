"""Level `roles`: actions that no file sandbox sees, and writes where no sandbox prevents them.

Programs that start others are searched for these actions; other programs are not judged. An action
that is hidden on purpose, such as in a script, is not found.
"""

from __future__ import annotations

import re
from itertools import pairwise

from cuggino.guard.commands.base import WRITING, Call, Rules, Site, first, plain_word
from cuggino.guard.commands.files import PROGRAMS, files_reason
from cuggino.guard.commands.git_slot import variable_reason
from cuggino.guard.commands.outputs import QUIET, outputs_reason
from cuggino.guard.commands.processes import ENDERS, ending_reason
from cuggino.guard.commands.publishing import SENDERS, sending_reason
from cuggino.guard.commands.shells import SHELLS
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Command, Redirect, Word

STARTERS = frozenset(
    words(
        "env genv timeout gtimeout nohup time nice ionice chrt taskset stdbuf setsid caffeinate"
        " unbuffer strace ltrace xvfb-run dbus-run-session cross-env dotenv flock sudo doas busybox"
        " toybox su runuser chroot unshare nsenter systemd-run script expect parallel setpriv"
        " command builtin exec xargs gxargs watch valgrind fakeroot rlwrap find gfind fd fdfind npx"
        " bunx uvx pnpx uv poetry pdm hatch bundle bundler conda mise rye pipenv tox direnv entr"
    )
)
"""Programs that start other programs named in their arguments."""

_WATCHED = SHELLS | SENDERS | PROGRAMS.keys() | ENDERS | {"git", "eval", "python", "python3"}
_JOINED = frozenset(("eval", "alias", "trap"))
_WITH_TEXT = frozenset(words("su runuser script flock npx mise"))
_PRINTS = re.compile(r"\s*(echo|printf|cat\s*<<)")
_VARIABLE = re.compile(r"\"?\$\{?([A-Za-z_]\w*)\}?\"?")
_FINDERS = frozenset(words("find gfind fd fdfind"))
_EXECUTES = frozenset(words("-exec -execdir -ok -okdir -x -X --exec --exec-batch"))


def act_reason(words: tuple[Word, ...], site: Site) -> str:
    """Return why the command is denied at level `roles`, or ""."""
    if not words:
        return ""
    head, args = words[0].value, words[1:]
    if head is None:
        return _assigned(words, site) or _started(args, site)
    name = head.rpartition("/")[2]
    if name.startswith("git-"):
        name, args = "git", (words[0]._replace(value=name[4:]), *args)
    call = Call(name, args, site)
    if name == "git":
        from cuggino.guard.commands.git import git

        return git(call)
    if name in SHELLS:
        return _texts(args, site) or _document(call)
    if name in _JOINED:
        return _joined(call)
    if name in ENDERS:
        return ending_reason(call)
    set_to = tuple((word.value or "").partition("=")[0] for word in args if "=" in word.text)
    if reason := variable_reason(set_to, site):
        return reason
    if reason := sending_reason(call):
        return reason
    if name in STARTERS:
        reason = _texts(args, site) if name in _WITH_TEXT else ""
        reason = reason or _started(_after_exec(args) if name in _FINDERS else args, site)
        if reason or name in _FINDERS:
            return reason
    if name.startswith("python"):
        module = next((at for at, word in enumerate(args) if word.value == "-m"), len(args))
        return act_reason(args[module + 1 :], site)
    if site.paths.is_idle or name in QUIET:
        return ""
    return files_reason(call) if name in PROGRAMS else outputs_reason(call)


def _assigned(words: tuple[Word, ...], site: Site) -> str:
    """Judge a program that the same input assigned to a variable."""
    found = _VARIABLE.fullmatch(words[0].text)
    values = site.trail.values.get(found[1], ()) if found else ()
    return first(
        act_reason((*map(plain_word, value.split()), *words[1:]), site) for value in values if value
    )


def _after_exec(args: tuple[Word, ...]) -> tuple[Word, ...]:
    """Return the commands that `find` starts, without the names of files before them."""
    begin = next((at for at, word in enumerate(args) if word.value in _EXECUTES), len(args))
    return tuple(word for word in args[begin:] if word.value != ";")


def _started(args: tuple[Word, ...], site: Site) -> str:
    """Judge the words from each watched program's name on as a command."""
    return first(
        act_reason(args[at:], site)
        for at, word in enumerate(args)
        if word.value is not None and _is_watched(word.value.rpartition("/")[2])
    )


def _is_watched(name: str) -> bool:
    return name in _WATCHED or name.startswith("git-")


def _texts(args: tuple[Word, ...], site: Site) -> str:
    """Judge the scripts that options such as `-c` and `-lc` pass to a shell."""
    texts = (after.value for word, after in pairwise(args) if _is_text_option(word.value or ""))
    return first(site.judge_text(text, site) for text in texts if text)


def _is_text_option(text: str) -> bool:
    return text == "--command" or (text[:1] == "-" and text[1:].isalpha() and text.endswith("c"))


def _document(call: Call) -> str:
    """Judge a here-document that a shell runs."""
    if any(word.value is None or not word.value.startswith("-") for word in call.args):
        return ""
    if call.site.document is None:
        is_text = call.site.is_fed and _PRINTS.match(call.site.feed)
        return (
            f"Write the commands literally instead of piping them to {call.name}" if is_text else ""
        )
    return call.site.judge_text(call.site.document, call.site)


def _joined(call: Call) -> str:
    """Judge the words of `eval`, the values of `alias` and the command of `trap`."""
    texts = [word.value for word in call.args if word.value != "--"]
    if call.name == "trap":
        return call.site.judge_text(texts[0], call.site) if texts and texts[0] else ""
    if call.name == "alias":
        values = (text.partition("=")[2] for text in texts if text)
        return first(call.site.judge_text(value, call.site) for value in values if value)
    if not texts or None in texts:
        return ""
    return call.site.judge_text(" ".join(text for text in texts if text), call.site)


def _remember(node: Command, site: Site) -> str:
    """Record what variables are set to: `g=git; $g push`. In a slot, judge git's own."""
    if reason := variable_reason(tuple(one.name for one in node.assignments), site):
        return reason
    for assignment in node.assignments:
        known = [word.value for word in assignment.values if word.value is not None]
        site.trail.values.setdefault(assignment.name, []).extend(known)
    return ""


def _allow(_what: object, _site: Site) -> str:
    return ""


def _redirect(redirect: Redirect, site: Site) -> str:
    target = redirect.target
    text = target.value or ""
    if redirect.operator not in WRITING or target.value == "":
        return ""
    if (redirect.operator == ">&" and text.rstrip("-").isdigit()) or text == "-":
        return ""
    return site.write(target)


RULES = Rules(act_reason, _remember, _redirect, _allow, _allow, _allow)
