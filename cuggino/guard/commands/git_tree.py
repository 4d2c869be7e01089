"""Subcommands of git that discard work, rewrite history, leave the machine or make folders."""

from __future__ import annotations

import os
import re

from cuggino.guard.commands.base import Call, first, plain_word
from cuggino.guard.commands.git_paths import WHOLE
from cuggino.guard.commands.options import Parsed
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

_DISCARDS: dict[str, tuple[str, ...]] = {
    "reset": words("--hard --merge"),
    "switch": words("--force --discard-changes -f"),
    "checkout": words("--force -f"),
    "clean": words("--force -f"),
    "stash": words("clear drop"),
    "branch": words("-D --force -f"),
    "reflog": words("expire delete drop"),
    "gc": ("--prune",),
    "update-ref": words("-d --delete"),
    **dict.fromkeys(("prune", "filter-branch", "filter-repo"), ("",)),
}
"""Options and verbs with which a subcommand discards work; the empty one stands for any."""
_UNLESS = {"clean": ("-n", "--dry-run"), "branch": ("-m", "-M")}
_PUSHES = frozenset(words("push send-pack http-push send-email"))
_WITH_PUSH = frozenset(words("subtree lfs svn p4"))
_SENDS = frozenset(words("push dcommit submit"))
_IGNORED = "git {0} must not take ignored files away: leave {1} out"


def paths_of(sub: Call) -> tuple[Word, ...]:
    """Return the words after `--`."""
    marks = [at for at, word in enumerate(sub.args) if word.value == "--"]
    return sub.args[marks[0] + 1 :] if marks else ()


def discarding(sub: Call, given: Parsed) -> str:
    """Return why the subcommand is denied for discarding work or leaving the machine, or ""."""
    if given.has("--help") or given.has(*_UNLESS.get(sub.name, ())):
        return ""
    if sub.name in _PUSHES | _WITH_PUSH:
        return _pushed(sub, given)
    if sub.name == "clean" and given.has("-x", "-X"):
        return _IGNORED.format("clean", "-x and -X")
    verb = given.operands[0].value if given.operands else None
    options = {option.name for option in given.options if option.value or sub.name != "gc"}
    found = next(
        (name for name in _DISCARDS.get(sub.name, ()) if name in options or name in ("", verb)),
        None,
    )
    if found in ("-f", "--force") and sub.name == "branch" and not given.operands:
        found = None
    if found is None and _takes_all(sub, given):
        found = "of all files"
    if found is None or sub.site.is_destructive:
        return ""
    return (
        f"git {sub.name} {found}".rstrip() + " is not allowed: it discards work, possibly the"
        " user's; change the files that are wrong instead, and commit. allowDestructive allows it"
    )


def _takes_all(sub: Call, given: Parsed) -> bool:
    """Return whether all files are restored; restoring the index alone is free."""
    staged = given.has("--staged", "-S") and not given.has("--worktree", "-W")
    if sub.name != "checkout" and (sub.name != "restore" or staged):
        return False
    top = os.path.normpath(sub.site.policy.project)
    return any(
        word.value in WHOLE or os.path.normpath(word.value or ".") == top
        for word in (*given.operands, *paths_of(sub))
    )


def _pushed(sub: Call, given: Parsed) -> str:
    sends = sub.name in _PUSHES or any(word.value in _SENDS for word in given.operands)
    if not sends or given.has("-n", "--dry-run"):
        return ""
    if sub.site.policy.apart:
        return f"git {sub.name} is not allowed: what is done in a slot lands through cuggino's gate"
    if sub.site.is_destructive:
        return ""
    return (
        f"git {sub.name} is not allowed: pushing is left to the user, or to"
        ' cuggino\'s "push" setting. allowDestructive allows it'
    )


def listed_reason(sub: Call, given: Parsed) -> str:
    """Return why level `full` denies the subcommand, besides what every level does."""
    operands, site = given.operands, sub.site
    verb = operands[0].value if operands else ""
    match sub.name:
        case "rm":
            is_fine = site.is_open and (given.has("--cached") or not given.has("-f", "--force"))
            plain = (word for word in operands if not re.search(r"[*?\[]|^:", word.value or "*"))
            return ("" if is_fine else _destroys(sub, "")) or first(map(site.remove, plain))
        case "mv":
            return first((*map(site.remove, operands[:-1]), *map(site.write, operands[-1:])))
        case "clean" if given.has("-x", "-X"):
            return _IGNORED.format("clean", "-x and -X")
        case "checkout" | "restore":
            named = (word.value for word in (*operands, *paths_of(sub)) if word.value)
            return first(site.paths.guards(path, site.known) for path in named)
        case "clean" | "apply" | "am" if given.has("-i", "--interactive"):
            return f"git {sub.name} must not be interactive: leave -i out"
        case "apply" | "am":
            return first(map(site.write, given.values("--directory", "--build-fake-ancestor")))
        case "stash" if given.has("-a", "--all"):
            return _IGNORED.format("stash", "--all")
        case "update-ref":
            return _destroys(sub, "")
        case "symbolic-ref" if len(operands) > 1 or given.has("-d", "--delete"):
            return _destroys(sub, "")
        case "clone":
            source = (operands[0].value or "clone") if operands else "clone"
            name = os.path.basename(source.rstrip("/").removesuffix(".git")) or "clone"  # noqa: PTH119
            return site.write(operands[1] if len(operands) > 1 else plain_word(name))
        case "init":
            return first(map(site.write, operands or (plain_word("."),)))
        case "worktree" if verb in ("add", "move", "remove"):
            forced = verb == "remove" and given.has("-f", "--force")
            reason = _destroys(sub, "remove --force") if forced else ""
            gone = operands[1 : {"add": 1, "move": 2}.get(verb)]
            made = operands[1:2] if verb == "add" else operands[2:] if verb == "move" else ()
            return reason or first((*map(site.remove, gone), *map(site.write, made)))
        case "submodule" if verb == "foreach":
            return "git submodule foreach runs a text in each of them: use git -C for one"
        case "submodule" if verb == "deinit" and given.has("-f", "--force", "--all"):
            return _destroys(sub, "deinit")
        case "submodule" if verb == "add":
            return first(map(site.write, operands[2:3]))
        case "bisect" if verb == "run":
            return site.judge(sub.args[1:], site) if sub.args[1:] else ""
        case "bisect" if verb in ("view", "visualize"):
            return "git bisect must not open a window: use git bisect log"
        case _:
            return ""


def _destroys(sub: Call, what: str) -> str:
    if sub.site.is_destructive:
        return ""
    return (
        f"git {sub.name} {what} is not in the allowlist: it destroys what cannot be brought back,"
        " unless destructive commands are allowed"
    )
