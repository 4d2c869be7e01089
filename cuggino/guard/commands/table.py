"""The rules of level `full` by program; a call imports only the modules that it needs."""

from __future__ import annotations

import importlib

from cuggino.guard.commands.base import Judge
from cuggino.guard.commands.files import PROGRAMS, files_reason

_TABLE = """
git.git: git
find.find: find gfind
text.pattern: jq rg sed gsed sqlite3 tar gtar bsdtar rsync zip unzip 7z wget install split strip
text.date: date
text.awk: awk gawk mawk nawk
text.fd: fd fdfind
processes.chmod: chmod
processes.pkill: pkill
processes.kill: kill
containers.docker: docker docker-compose podman
shells.shell: csh ksh mksh ash yash tcsh sh bash dash zsh rbash pwsh fish
shells.evaluate: eval
shells.source: source .
shells.trap: trap
shells.watch: watch
builtins.builtin: read mapfile readarray unset wait jobs hash shopt
builtins.getopts: getopts
builtins.printf: printf
builtins.set_: set
builtins.test: test [
builtins.declare: declare typeset local export readonly
builtins.never: alias enable compgen complete compopt bind fc coproc zmodload emulate zargs setopt
  autoload noglob nocorrect
wrappers.wrapped: timeout gtimeout nohup unbuffer eatmydata time nice ionice chrt taskset stdbuf
  setsid caffeinate strace ltrace xvfb-run dbus-run-session cross-env dotenv flock sudo doas
  valgrind sccache distcc busybox toybox fakeroot faketime rlwrap ccache bear
wrappers.opaque: parallel systemd-run crontab capsh setpriv expect su script runuser chroot batch
  at unshare pkexec start-stop-daemon nsenter
wrappers.env: env genv
wrappers.command: command builtin exec
wrappers.xargs: xargs gxargs
runners.npx: npx bunx uvx pnpx
runners.manager: uv poetry pdm hatch rye pipenv symfony bundle bundler yarnpkg conda composer yarn
  pnpm npm bun pipx tox mise
runners.rustup: rustup
runners.go: go
inline.interpreter: python python2 python3 python3.6 python3.7 python3.8 python3.9 python3.10
  python3.11 python3.12 python3.13 python3.14 python3.15 python3.16 python3.17 python3.18
  python3.19 node bun deno ruby php perl irb
"""
"""Programs by the function that judges them; two functions of one program both apply."""

KNOWN: dict[str, tuple[str, ...]] = {}
"""The functions by program."""
for _row in _TABLE.replace("\n  ", " ").strip().split("\n"):
    _function, _, _programs = _row.partition(": ")
    for _program in _programs.split():
        KNOWN[_program] = (*KNOWN.get(_program, ()), _function)

_TOOLS = ("runners.", "inline.")
"""Modules of programs that the rules for any tool of a language apply to, too."""


def judges_of(name: str) -> list[Judge]:
    """Return the rules for the program's arguments."""
    found: list[Judge] = [files_reason] if name in PROGRAMS else []
    for row in KNOWN.get(name, ()):
        module, _, function = row.partition(".")
        found.append(getattr(importlib.import_module(f"cuggino.guard.commands.{module}"), function))
    return found


def is_tool(name: str) -> bool:
    """Return whether the rules for any tool of a language apply, as without a module."""
    rows = KNOWN.get(name, ())
    return any(row.startswith(_TOOLS) for row in rows) or not (rows or name in PROGRAMS)


def programs_of(*modules: str) -> frozenset[str]:
    """Return the programs that the functions of these modules judge."""
    starts = tuple(f"{module}." for module in modules)
    return frozenset(
        name for name, rows in KNOWN.items() if any(r.startswith(starts) for r in rows)
    )
