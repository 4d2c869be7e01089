"""The rules of level `full` by program; a call imports only the modules that it needs."""

from __future__ import annotations

import importlib
from types import MappingProxyType

from cuggino.guard.commands.base import Judge
from cuggino.guard.commands.files import PROGRAMS, files_reason
from cuggino.guard.commands.wordlist import words

MODULES: dict[str, tuple[str, ...]] = {
    "git": ("git",),
    "find": words("find gfind"),
    "text": words(
        "jq rg sed gsed sqlite3 tar gtar bsdtar rsync zip unzip 7z wget install split strip date"
        " awk gawk mawk nawk fd fdfind"
    ),
    "processes": words("chmod pkill kill"),
    "containers": words("docker docker-compose podman"),
    "shells": words(
        "sh bash dash zsh ksh mksh fish ash rbash csh tcsh yash pwsh eval source . trap watch"
    ),
    "builtins": words(
        "read mapfile readarray printf unset getopts wait jobs set shopt hash test [ declare"
        " typeset local export readonly alias enable compgen complete compopt bind fc coproc"
        " zmodload emulate zargs setopt autoload noglob nocorrect"
    ),
    "wrappers": words(
        "timeout gtimeout nohup time nice ionice chrt taskset stdbuf setsid caffeinate unbuffer"
        " strace ltrace xvfb-run dbus-run-session cross-env dotenv flock sudo doas busybox toybox"
        " su runuser chroot unshare nsenter systemd-run script expect parallel pkexec setpriv capsh"
        " start-stop-daemon batch at crontab env genv command builtin exec xargs gxargs valgrind"
        " eatmydata fakeroot faketime rlwrap ccache sccache distcc bear"
    ),
    "runners": words(
        "npx bunx uvx pnpx uv poetry pdm hatch bundle bundler conda composer yarn pnpm npm tox rye"
        " pipenv mise symfony yarnpkg bun pipx rustup go"
    ),
    "inline": (
        *words("python python2 python3 node bun deno ruby php perl irb"),
        *(f"python3.{minor}" for minor in range(6, 20)),
    ),
}
"""Programs by module; two modules of one program both apply."""

_MODULES_OF: dict[str, tuple[str, ...]] = {}
for _module, _programs in MODULES.items():
    for _program in _programs:
        _MODULES_OF[_program] = (*_MODULES_OF.get(_program, ()), _module)
KNOWN = MappingProxyType(_MODULES_OF)
"""By program."""

TOOLS = frozenset(("runners", "inline"))
"""Modules of programs that the rules for any tool of a language apply to, too."""


def judges_of(name: str) -> list[Judge]:
    """Return the rules for the program's arguments."""
    found: list[Judge] = [files_reason] if name in PROGRAMS else []
    for module in KNOWN.get(name, ()):
        judges = importlib.import_module(f"cuggino.guard.commands.{module}").JUDGES
        found.append(judges[name])
    return found


def is_tool(name: str) -> bool:
    """Return whether the rules for any tool of a language apply, as without a module."""
    return not TOOLS.isdisjoint(KNOWN[name]) if name in KNOWN else name not in PROGRAMS
