"""Rules for `git`: what its subcommands write, discard, start or fetch."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import UNKNOWN, Call, Site, first, plain_word
from cuggino.guard.commands.git_paths import Taken, protected_reason, taken_away
from cuggino.guard.commands.git_settings import address_reason, config, overridden
from cuggino.guard.commands.git_slot import elsewhere
from cuggino.guard.commands.git_syntax import dangerous, parse
from cuggino.guard.commands.git_tree import discarding, listed_reason, paths_of
from cuggino.guard.commands.options import Parsed, Syntax, parse_options
from cuggino.guard.commands.wordlist import words

_GLOBAL = Syntax(
    short="Cc",
    long=("git-dir", "work-tree", "namespace", "config-env", "super-prefix", "attr-source"),
    flags=("exec-path", "paginate", "no-pager", "no-replace-objects", "no-lazy-fetch", "bare",
           "no-optional-locks", "no-advice", "literal-pathspecs", "glob-pathspecs", "version",
           "noglob-pathspecs", "icase-pathspecs", "help", "html-path", "man-path", "info-path",
           "list-cmds"),
    permutes=False,
)  # fmt: skip
READING = frozenset(
    words(
        "annotate blame cat-file check-attr check-ignore check-mailmap check-ref-format"
        " cherry count-objects describe diff diff-files diff-index diff-tree fetch"
        " for-each-ref fsck get-tar-commit-id grep help log ls-files ls-remote ls-tree"
        " merge-base merge-tree name-rev patch-id range-diff rev-list rev-parse shortlog show"
        " show-branch show-index show-ref status stripspace var verify-commit verify-pack"
        " verify-tag version whatchanged column"
    )
)
"""Subcommands that change neither the tree nor the branches."""
CHANGING = frozenset(
    words(
        "add am apply archive bisect branch bundle checkout cherry-pick clean clone commit"
        " commit-graph commit-tree config gc hash-object init interpret-trailers merge"
        " merge-file mktree mv notes format-patch pack-refs prune pull push rebase reflog"
        " remote repack rerere reset restore revert rm sparse-checkout stash submodule switch"
        " symbolic-ref tag update-index update-ref worktree write-tree multi-pack-index"
        " replace"
    )
)
_NEVER = frozenset(
    words(
        "filter-branch fast-import send-email instaweb daemon credential credential-cache"
        " credential-store shell svn p4 cvsimport cvsserver cvsexportcommit archimport"
        " quiltimport difftool mergetool gui citool gitk http-backend upload-pack receive-pack"
        " upload-archive web--browse maintenance for-each-repo hook imap-send fetch-pack"
        " send-pack http-fetch http-push remote-ext remote-fd sh-setup checkout-index"
        " read-tree unpack-objects scalar filter-repo mergetool--lib submodule--helper"
        " merge-one-file merge-index bugreport diagnose mailinfo mailsplit index-pack pack-objects"
    )
)
_SWAPS = frozenset(
    words(
        "checkout switch pull merge rebase reset restore stash am apply cherry-pick revert"
        " clone worktree submodule bisect sparse-checkout"
    )
)
_FREE_WHEN_LIMITED = {
    "branch": frozenset(words(
    "-a -r -v -vv -l --list --all --remotes --show-current --contains --merged"
    " --no-merged --format --sort --points-at --verbose --no-color --column"
)),
    "tag": frozenset(words(
    "-l --list -n --contains --sort --format --points-at --merged --no-merged"
)),
}  # fmt: skip
_LISTS = {
    "stash": ("list", "show"),
    "worktree": ("list",),
    "remote": ("show", "get-url"),
    "notes": ("show", "list"),
    "bisect": ("log", "view"),
    "submodule": ("status", "summary"),
    "reflog": ("show", "exists"),
    "bundle": ("verify", "list-heads"),
    "sparse-checkout": ("list",),
    "rerere": ("status", "diff"),
}


def git(call: Call) -> str:
    """Judge the options before the subcommand, then the subcommand (AUT-212).

    Level `roles` denies what discards work or leaves the machine, and for roles that may not
    change the project every change of it.
    """
    given = parse_options(call.args, _GLOBAL)
    if not call.site.is_full:
        return _act(call, given)
    if given.unclear and not given.operands:
        return f"Cannot tell what '{given.unclear[0].text}' means to git: write it literally"
    if reason := overridden(given):
        return reason
    if given.has("--git-dir", "--work-tree", "--namespace"):
        return "git must work in the repository where it runs: use git -C with a folder"
    if given.has("-p", "--paginate"):
        return "git must not start a pager: leave -p out"
    if not given.operands:
        return ""
    site = _moved(call.site, given)
    name = given.operands[0]
    if name.value is None or name.has_glob:
        return f"Cannot tell which git command '{name.text}' is: write it literally"
    return _command(Call(name.value, given.operands[1:], site), given)


def taken(call: Call) -> Taken:
    """Return which protected paths a command line of git would take away."""
    given = parse_options(call.args, _GLOBAL)
    if not given.operands or given.operands[0].value is None:
        return Taken()
    sub = Call(given.operands[0].value, given.operands[1:], _moved(call.site, given))
    return taken_away(sub, parse(sub), given)


def _act(call: Call, given: Parsed) -> str:
    settings = (option.value for option in given.options if option.name == "-c")
    if any((value.value or "").lower().startswith("alias.") for value in settings if value):
        return "git must not be given an alias: write the command itself"
    if not given.operands:
        return ""
    name = given.operands[0].value
    if name is None:
        return f"Cannot tell which git command '{given.operands[0].text}' is: write it literally"
    sub = Call(name, given.operands[1:], call.site)
    inside = sub._replace(site=_moved(call.site, given))
    parsed = parse(sub)
    changes = call.site.policy.apart and (name in ("config", "fetch") or _limited(sub))
    if changes and (reason := elsewhere(inside, parsed, given)):
        return reason
    if call.site.is_limited and (reason := _limited(sub)):
        return reason
    return discarding(sub, parsed) or protected_reason(inside, parsed, given)


def _moved(site: Site, given: Parsed) -> Site:
    """Return the site in the folder of `-C`."""
    for folder in (option.value for option in given.options if option.name == "-C"):
        cwds: frozenset[str] = frozenset()
        if folder is not None and folder.value is not None:
            cwds = site.paths.enter(folder.value, site.known)
        site = site._replace(cwds=cwds or frozenset({UNKNOWN}))
    return site


def _is_foreign(site: Site) -> bool:
    """Return whether it runs outside the project, where settings may start programs."""
    return site.is_full and any(not site.paths.is_inside(cwd, "/") for cwd in site.known)


def _command(sub: Call, before: Parsed) -> str:
    name, site = sub.name, sub.site
    if _is_foreign(site) and name not in ("clone", "version", "help"):
        return "git must not run in a folder outside the project: its settings may start programs"
    if name in _NEVER:
        return (
            f"git {name} is not allowed: it starts other programs, or rewrites what must stay;"
            " use git's everyday commands"
        )
    if name not in READING | CHANGING and not (name == "lfs" and site.is_open):
        return (
            f"git {name} is not allowed: it is not a known git command, or is an alias; use the"
            " command itself"
        )
    if site.is_limited and (reason := _limited(sub)):
        return reason
    given = parse(sub)
    if reason := dangerous(sub, given):
        return reason
    if reason := first(
        (
            address_reason((*given.operands, *given.values("--remote", "--repo"))),
            _output(sub, given),
        )
    ):
        return reason
    if given.has("--help"):
        return ""
    if name == "config":
        return config(sub)
    reason = (
        discarding(sub, given) or listed_reason(sub, given) or protected_reason(sub, given, before)
    )
    if name in _SWAPS and not reason:
        _note(sub, given)
    return reason


def _note(sub: Call, given: Parsed) -> None:
    if sub.name in ("checkout", "switch") and given.has("-b", "-c", "--create"):
        return
    if sub.name in _LISTS and given.operands and given.operands[0].value in _LISTS[sub.name]:
        return
    if paths_of(sub):
        return
    sub.site.trail.is_swapped = True


def _limited(sub: Call) -> str:
    """Return why a role that may not change the tree may not run the subcommand."""
    name = sub.name
    if name in READING or _is_record(sub):
        return ""
    words = [word.value or word.text for word in sub.args]
    if name in _LISTS and (not words and name in ("remote", "reflog", "notes")):
        return ""
    if name in _LISTS and words and words[0] in (*_LISTS[name], "-v"):
        return ""
    if name in _FREE_WHEN_LIMITED:
        options = [word.partition("=")[0] for word in words if word.startswith("-")]
        if not words or (options and all(_is_free(name, option) for option in options)):
            return ""
    if name == "config":
        return config(sub)
    if name in ("archive", "format-patch", "bundle", "hash-object", "interpret-trailers"):
        return ""
    if name == "apply" and {"--check", "--stat", "--numstat", "--summary"} & set(words):
        return ""
    role = f"the {sub.site.policy.role} agent" if sub.site.policy.role else "this session"
    return (
        f"git {name} is not allowed: {role} must not change the repository or its files; look at"
        " them with git status, log, diff and show"
    )


def _is_record(sub: Call) -> bool:
    """Return whether the subcommand only records the note of a verifying session.

    Such a session can write nothing but its note, so it cannot commit anything else (AUT-223).
    """
    if sub.site.policy.mode != "sync":
        return False
    if sub.name == "reset":
        # git understands the beginning of --hard, --keep and --merge too.
        plain = (word.value or "--?" for word in sub.args)
        return not any(word.startswith(("--h", "--k", "--me", "--?")) for word in plain)
    return sub.name not in _SWAPS and sub.name not in ("rm", "mv", "clean", "read-tree")


def _is_free(name: str, option: str) -> bool:
    return option in _FREE_WHEN_LIMITED[name] or bool(re.fullmatch(r"-n\d*|-[alrv]+", option))


def _output(sub: Call, given: Parsed) -> str:
    """Judge the files that `--output`, `-o` and similar options write."""
    written = given.values("--output", "--output-directory", "--separate-git-dir")
    if sub.name in ("archive", "format-patch"):
        written += given.values("-o")
    if sub.name == "format-patch" and not written and not given.has("--stdout"):
        written.append(plain_word("0001.patch"))
    if sub.name == "bundle" and given.operands and given.operands[0].value == "create":
        written += given.operands[1:2]
    if sub.name == "merge-file" and not given.has("-p", "--stdout", "--object-id"):
        written += given.operands[:1]
    if sub.name == "interpret-trailers" and given.has("--in-place"):
        written += given.operands
    written += given.values("--export-marks")
    return first(map(sub.site.write, written))
