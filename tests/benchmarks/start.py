"""The CPU until a command does its work, compared with importing the packages that it uses."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.measuring import Figure, Took, run, took_in_turns
from tests.benchmarks.project import Project, iterations, project

_WITHIN = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()) + "\\n")
from cuggino_cli.main import entry
entry(sys.argv[2:])
"""
"""`cuggino` for an agent that kills it, by the process id in a file."""


def program(*, rounds: int = 15) -> Iterator[Figure]:
    """Measure `--version` and `--help` beside the import of click, and that of cuggino."""
    python = [sys.executable, "-c"]
    acts = {
        "click": [*python, "import click"],
        "version": [sys.executable, "-m", "cuggino_cli", "--version"],
        "help": [sys.executable, "-m", "cuggino_cli", "--help"],
        "bare": [*python, "pass"],
        "import": [*python, "import cuggino"],
    }
    taken = took_in_turns(rounds, *(partial(run, argv) for argv in acts.values()))
    cpu = {name: each.cpu * 1e3 for name, each in zip(acts, taken, strict=True)}
    yield _figure("version", "cuggino --version", cpu["version"], cpu["click"], "import click")
    yield _figure("help", "cuggino --help", cpu["help"], cpu["click"], "import click")
    yield _figure("import", "import cuggino", cpu["import"], cpu["bare"], "an idle interpreter")


def commands(*, rounds: int = 9) -> Iterator[Figure]:
    """Measure `run` until its first agent starts, `runs` and `backlog list`."""
    with project() as here:
        pid = here.folder.parent / "pid"
        killing = f"read -r pid <'{pid}'\nkill -9 $pid\n"
        arguments = {
            "run": ("cuggino run to its first agent", ["run", "--focus", "x"]),
            "runs": ("cuggino runs", ["runs"]),
            "backlog": ("cuggino backlog list", ["backlog", "list"]),
        }
        for key, (name, words) in arguments.items():
            here.restore()
            here.plays(*iterations(1))
            if key != "run":
                _fill(here)
            here.plays(killing)
            argv = [sys.executable, "-c", _WITHIN, str(pid), *words]
            packages = [sys.executable, "-c", _imports(_third_party(here, argv))]

            def act(argv: Sequence[str]) -> Took:
                return run(argv, cwd=here.folder, env=here.env, codes=(0, -9))

            least, taken = took_in_turns(rounds, partial(act, packages), partial(act, argv))
            floor = "importing its third-party packages"
            yield _figure(key, name, taken.cpu * 1e3, least.cpu * 1e3, floor)


def _figure(key: str, name: str, value: float, floor: float, floor_name: str) -> Figure:
    return Figure(
        key=f"start.{key}",
        name=f"{name}, CPU",
        value=value,
        unit="ms",
        floor=floor,
        floor_name=floor_name,
    )


def _fill(here: Project) -> None:
    """Add three runs to the project, and three items to its backlog."""
    cuggino = [sys.executable, "-m", "cuggino_cli"]
    for number in range(3):
        here.plays(*iterations(1))
        run([*cuggino, "run", "--focus", "x"], cwd=here.folder, env=here.env)
        add = [*cuggino, "backlog", "add", f"Item {number}", "--text", "Do it."]
        run(add, cwd=here.folder, env=here.env)


def _third_party(here: Project, argv: list[str]) -> list[str]:
    """Return the modules of other packages that the command imports until it ends."""
    # `-X importtime` leaves out what `importlib.import_module` imports; `-v` ends with the stream.
    verbose = [argv[0], "-v", "-X", "importtime", *argv[1:]]
    done = subprocess.run(
        verbose, cwd=here.folder, env=here.env, capture_output=True, text=True, check=False
    )
    lines = done.stderr.splitlines()
    told = [line.split("'")[1] for line in lines if line.startswith("import '")]
    timed = (line for line in lines if line.startswith("import time:"))
    names = [*dict.fromkeys([*told, *(line.rpartition("|")[2].strip() for line in timed)])]
    others = {name for name in {name.partition(".")[0] for name in names} if _is_other(name)}
    return [name for name in names if name.partition(".")[0] in others]


def _is_other(package: str) -> bool:
    """Return whether a package is neither cuggino's nor part of Python."""
    if package in sys.stdlib_module_names or package.startswith("cuggino"):
        return False
    try:
        found = find_spec(package)
    except (ImportError, ValueError):
        return False
    return found is not None and "site-packages" in Path(found.origin or "").parts


def _imports(modules: Sequence[str]) -> str:
    return "\n".join(f"try: import {name}\nexcept ImportError: pass" for name in modules)
