"""Rules for `git` in a slot: it changes no other repository, and pushes nothing."""

from __future__ import annotations

from cuggino.guard.commands.base import Call, Site, first
from cuggino.guard.commands.options import Parsed

_MAKING = {"clone": 1, "init": 0, "worktree": 1}
"""Subcommands that make a folder, with the number of operands before its name."""

_SETTINGS = frozenset(("--global", "--system", "--file", "-f"))
VARIABLES = frozenset(("GIT_DIR", "GIT_WORK_TREE", "GIT_COMMON_DIR", "GIT_OBJECT_DIRECTORY"))
"""Variables that have git work elsewhere."""


def elsewhere(sub: Call, given: Parsed, before: Parsed) -> str:
    """Return why the subcommand must not run, as it would change something outside the slot, or "".

    `before` are git's own options; `sub.site` has the folder that results from them.
    """
    site = sub.site
    if sub.name == "config" and given.has("--get", "--get-all", "--get-regexp", "--list", "-l"):
        return ""
    if before.has("--git-dir", "--work-tree"):
        return f"git {sub.name} must work in the repository of this slot: leave the option out"
    if any(not site.paths.is_own_repository(place) for place in site.known):
        return (
            f"git {sub.name} is not allowed there: the folder is not part of this slot, and what is"
            " in it belongs to someone else; work in the slot alone"
        )
    if sub.name == "config" and given.has(*_SETTINGS):
        return "git config is not allowed outside of the repository: leave the option out"
    skips = _MAKING.get(sub.name)
    if skips is None:
        return ""
    targets = [word.value for word in given.operands[skips:] if word.value]
    return first(site.paths.write(target, site.known) for target in targets)


def variable_reason(names: tuple[str, ...], site: Site) -> str:
    """Return why a variable must not have git work elsewhere, or ""."""
    wrong = VARIABLES & set(names) if site.policy.apart else ()
    if not wrong:
        return ""
    return f"{min(wrong)} must not be set: git works in the repository of this slot alone"
