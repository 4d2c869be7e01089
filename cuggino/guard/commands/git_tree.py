"""Subcommands of git that change files, branches or history."""

from __future__ import annotations

import os
import re
from collections.abc import Callable

from cuggino.guard.commands.base import Call, first, plain_word
from cuggino.guard.commands.git_paths import WHOLE
from cuggino.guard.commands.options import Parsed
from cuggino.guard.shell.tree import Word

_MAGIC = re.compile(r"[*?\[]|^:")


def paths_of(sub: Call) -> tuple[Word, ...]:
    """Return the words after `--`."""
    for index, word in enumerate(sub.args):
        if word.value == "--":
            return sub.args[index + 1 :]
    return ()


def _destroys(sub: Call, what: str) -> str:
    if sub.site.is_destructive:
        return ""
    return (
        f"git {sub.name} {what} is not in the allowlist: it destroys what cannot be brought back,"
        " unless destructive commands are allowed"
    )


def _discards(sub: Call, what: str) -> str:
    if sub.site.is_destructive:
        return ""
    return (
        f"git {sub.name}{what} is not allowed: it discards work, which may be a person's; change"
        " the files that are wrong instead, and commit. allowDestructive allows it"
    )


def _is_whole(sub: Call, given: Parsed) -> bool:
    if any(word.value in WHOLE for word in (*given.operands, *paths_of(sub))):
        return True
    top = os.path.normpath(sub.site.policy.project)
    return any(word.value and os.path.normpath(word.value) == top for word in given.operands)


def _shortened(given: Parsed, *names: str) -> bool:
    """Return whether one of the options is given, perhaps abbreviated."""
    return any(
        name == option.name or (len(option.name) > 3 and name.startswith(option.name))
        for option in given.options
        for name in names
    )


_IGNORED = "git clean must not remove ignored files: leave -x and -X out"


def _reset(sub: Call, given: Parsed) -> str:
    return _discards(sub, " --hard") if _shortened(given, "--hard", "--merge") else ""


def _restore(sub: Call, given: Parsed) -> str:
    """Judge `restore` of all files; restoring the index alone is free."""
    staged = _shortened(given, "--staged") or given.has("-S")
    in_tree = _shortened(given, "--worktree") or given.has("-W")
    is_all = _is_whole(sub, given) and (in_tree or not staged)
    return _discards(sub, " of all files") if is_all else ""


def _switch(sub: Call, given: Parsed) -> str:
    forced = _shortened(given, "--force", "--discard-changes") or given.has("-f")
    return _discards(sub, " --force") if forced else ""


def _checkout(sub: Call, given: Parsed) -> str:
    if _shortened(given, "--force") or given.has("-f"):
        return _discards(sub, " --force")
    return _discards(sub, " of all files") if _is_whole(sub, given) else ""


def _clean(sub: Call, given: Parsed) -> str:
    if given.has("-n", "--dry-run"):
        return ""
    if given.has("-x", "-X"):
        return _IGNORED
    return _discards(sub, "") if given.has("-f", "--force") else ""


def _stash(sub: Call, given: Parsed) -> str:
    verb = given.operands[0].value if given.operands else "push"
    return _discards(sub, f" {verb}") if verb in ("clear", "drop") else ""


def _push(sub: Call, given: Parsed) -> str:
    sends = sub.name not in _WITH_PUSH or any(
        word.value in ("push", "dcommit", "submit") for word in given.operands
    )
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


def _branch(sub: Call, given: Parsed) -> str:
    """Judge deleting unmerged branches."""
    forced = given.has("-f", "--force") and not given.has("-m", "-M") and given.operands
    return _discards(sub, " -D") if given.has("-D") or forced else ""


def _reflog(sub: Call, given: Parsed) -> str:
    verb = given.operands[0].value if given.operands else ""
    return _discards(sub, f" {verb}") if verb in ("expire", "delete", "drop") else ""


def _gc(sub: Call, given: Parsed) -> str:
    return _discards(sub, "") if given.values("--prune") or sub.name == "prune" else ""


def _update_ref(sub: Call, given: Parsed) -> str:
    return _discards(sub, " -d") if given.has("-d", "--delete") else ""


def _rewrite(sub: Call, _given: Parsed) -> str:
    return _discards(sub, "")


_WITH_PUSH = ("subtree", "lfs", "svn", "p4")
_DISCARDING: dict[str, Callable[[Call, Parsed], str]] = {
    "reset": _reset,
    "restore": _restore,
    "switch": _switch,
    "checkout": _checkout,
    "clean": _clean,
    "stash": _stash,
    "branch": _branch,
    "reflog": _reflog,
    "gc": _gc,
    "prune": _gc,
    "update-ref": _update_ref,
    "filter-branch": _rewrite,
    "filter-repo": _rewrite,
    **dict.fromkeys(("push", "send-pack", "http-push", "send-email", *_WITH_PUSH), _push),
}


def discarding(sub: Call, given: Parsed) -> str:
    """Return why the subcommand is denied for discarding work or leaving the machine, or ""."""
    judge = _DISCARDING.get(sub.name)
    return judge(sub, given) if judge is not None and not given.has("--help") else ""


def _pathspecs(sub: Call, words: tuple[Word, ...], *, removes: bool = False) -> str:
    """Return why git may not write, or remove, the files that the pathspecs match."""
    for word in words:
        text = word.value
        if text is not None and _MAGIC.search(text):
            fixed = text.split("/")[0]
            if text.startswith(":") or _MAGIC.search(fixed) or ".." in text:
                return (
                    f"'{word.text}' may name protected files, as git reads it: write the files out"
                )
            word = plain_word(fixed)
        if text is None and not word.prefix and not removes:
            continue
        check = sub.site.remove if removes else sub.site.write
        if reason := check(word):
            return reason
    return ""


def checkout_files(sub: Call, given: Parsed) -> str:
    """Judge the files named after a tree: they are written like any others."""
    if _is_whole(sub, given):
        return ""
    named = tuple(
        word
        for word in given.operands
        if word.value is None or not re.match(r"[\w./@{}~^-]*@\{|.*[~^]|-$", word.value)
    )
    return _pathspecs(sub, named)


def rm(sub: Call, given: Parsed) -> str:
    """Judge it like `rm`; with `extended`, committed files may go, as they can be restored."""
    is_fine = sub.site.is_open and (given.has("--cached") or not given.has("-f", "--force"))
    if not is_fine and (reason := _destroys(sub, "")):
        return reason
    return _pathspecs(sub, given.operands, removes=True)


def mv(sub: Call, given: Parsed) -> str:
    """Judge `mv`: it removes its sources and writes its target."""
    if len(given.operands) < 2:
        return ""
    target = given.operands[-1]
    sources = given.operands[:-1]
    inside = tuple(
        plain_word(f"{(target.value or '').rstrip('/')}/{os.path.basename(word.value or '')}")  # noqa: PTH119
        for word in (sources if target.value is not None or not sub.site.is_open else ())
    )
    return first((_pathspecs(sub, sources, removes=True), *map(sub.site.write, (target, *inside))))


def clean(sub: Call, given: Parsed) -> str:
    """Deny questions, and the loss of ignored or protected files."""
    if given.has("-x", "-X"):
        return _IGNORED
    if given.has("-i", "--interactive"):
        return "git clean must not ask: name what should go"
    if given.has("-n", "--dry-run") or not given.has("-f", "--force"):
        return ""
    return _pathspecs(sub, given.operands, removes=True)


def stash(sub: Call, given: Parsed) -> str:
    """Deny stashing ignored files."""
    return "git stash must not take ignored files away: leave --all out" * given.has("-a", "--all")


def update_ref(sub: Call, given: Parsed) -> str:
    """Judge moving a ref by hand."""
    return _destroys(sub, "")


def symbolic_ref(sub: Call, given: Parsed) -> str:
    """Judge setting a symbolic ref; reading is allowed."""
    return _destroys(sub, "") if len(given.operands) > 1 or given.has("-d", "--delete") else ""


def clone(sub: Call, given: Parsed) -> str:
    """Judge the folder that it makes."""
    if len(given.operands) > 1:
        return sub.site.write(given.operands[1])
    source = (given.operands[0].value or "clone") if given.operands else "clone"
    name = os.path.basename(source.rstrip("/").removesuffix(".git")) or "clone"  # noqa: PTH119
    return sub.site.write(plain_word(name))


def init(sub: Call, given: Parsed) -> str:
    """Judge the folder that it makes."""
    return first(map(sub.site.write, given.operands or (plain_word("."),)))


def worktree(sub: Call, given: Parsed) -> str:
    """Judge the folders of other worktrees."""
    verb = given.operands[0].value if given.operands else "list"
    rest = given.operands[1:]
    if verb == "add":
        return sub.site.write(rest[0]) if rest else ""
    if verb == "move":
        return first((*map(sub.site.remove, rest[:1]), *map(sub.site.write, rest[1:])))
    if verb == "remove":
        if given.has("-f", "--force") and (reason := _destroys(sub, "remove --force")):
            return reason
        return first(map(sub.site.remove, rest))
    return ""


def submodule(sub: Call, given: Parsed) -> str:
    """Deny `foreach`; judge the folder of a new submodule."""
    verb = given.operands[0].value if given.operands else "status"
    if verb == "foreach":
        return "git submodule foreach runs a text in each of them: use git -C for one"
    if verb == "deinit" and (given.has("-f", "--force", "--all")):
        return _destroys(sub, "deinit")
    if verb == "add" and len(given.operands) > 2:
        return sub.site.write(given.operands[2])
    return ""


def bisect(sub: Call, given: Parsed) -> str:
    """Judge the command that `bisect run` starts."""
    words = [word.value for word in sub.args]
    if words[:1] == ["run"]:
        return sub.site.judge(sub.args[1:], sub.site) if sub.args[1:] else ""
    if words[:1] in (["view"], ["visualize"]):
        return "git bisect must not open a window: use git bisect log"
    return ""


def apply(sub: Call, given: Parsed) -> str:
    """Judge the folder that patches are applied in."""
    if given.has("-i", "--interactive"):
        return f"git {sub.name} must not ask: leave -i out"
    fake = given.values("--build-fake-ancestor")
    return first(map(sub.site.write, (*given.values("--directory"), *fake)))


TREE: dict[str, Callable[[Call, Parsed], str]] = {
    "checkout": checkout_files,
    "restore": checkout_files,
    "rm": rm,
    "mv": mv,
    "clean": clean,
    "stash": stash,
    "update-ref": update_ref,
    "symbolic-ref": symbolic_ref,
    "clone": clone,
    "init": init,
    "worktree": worktree,
    "submodule": submodule,
    "bisect": bisect,
    "apply": apply,
    "am": apply,
}
"""Further rules of level `full`."""
