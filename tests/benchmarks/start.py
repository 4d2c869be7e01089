"""The CPU until a command does its work, compared with importing the packages that it uses."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from tests.benchmarks.measuring import Figure, Took, run, took_in_turns
from tests.benchmarks.project import HERE, Project, Tree, iterations, project

_WITHIN = """
import os, sys
open(sys.argv[1], "w").write(str(os.getpid()) + "\\n")
from cuggino_cli.main import entry
entry(sys.argv[2:])
"""
"""`cuggino` for an agent that kills it, by the process id in a file."""


def program(*, rounds: int = 15, trees: Sequence[Tree] = (HERE,)) -> Iterator[Figure]:
    """Measure `--version` and `--help` beside the import of click, and that of cuggino."""
    click, bare = [sys.executable, "-c", "import click"], [sys.executable, "-c", "pass"]
    cases = [
        (tree.key(key), tree.named(name), [tree.python, *words], floor)
        for key, name, words, floor in (
            ("version", "cuggino --version", ("-m", "cuggino_cli", "--version"), "import click"),
            ("help", "cuggino --help", ("-m", "cuggino_cli", "--help"), "import click"),
            ("import", "import cuggino", ("-c", "import cuggino"), "an idle interpreter"),
        )
        for tree in trees
    ]
    with tempfile.TemporaryDirectory() as nowhere:  # Python looks for modules in the folder, too
        argvs = [click, bare, *(argv for _, _, argv, _ in cases)]
        acts = (partial(run, argv, cwd=Path(nowhere)) for argv in argvs)
        click_cpu, bare_cpu, *taken = (each.cpu * 1e3 for each in took_in_turns(rounds, *acts))
    for (key, name, _, floor), cpu in zip(cases, taken, strict=True):
        least = click_cpu if floor == "import click" else bare_cpu
        yield _figure(key, name, cpu, least, floor)


def commands(*, rounds: int = 9, trees: Sequence[Tree] = (HERE,)) -> Iterator[Figure]:
    """Measure `run` until its first agent starts, `runs`, `status` and `backlog list`."""
    with project() as here:
        pid = here.folder.parent / "pid"
        killing = f"read -r pid <'{pid}'\nkill -9 $pid\n"
        arguments = {
            "run": ("cuggino run to its first agent", ["run", "--focus", "x"]),
            "runs": ("cuggino runs", ["runs"]),
            "status": ("cuggino status", ["status"]),
            "backlog": ("cuggino backlog list", ["backlog", "list"]),
        }
        for key, (name, words) in arguments.items():
            if key == "runs":
                _fill(here)
            here.plays(killing)
            argvs = [[tree.python, "-c", _WITHIN, str(pid), *words] for tree in trees]
            packages = [sys.executable, "-c", _imports(_third_party(here, argvs[0]))]

            def act(argv: Sequence[str]) -> Took:
                return run(argv, cwd=here.folder, env=here.env, codes=(0, 3, -9))

            least, *taken = took_in_turns(
                rounds, *(partial(act, argv) for argv in (packages, *argvs))
            )
            floor = "importing its third-party packages"
            for tree, used in zip(trees, taken, strict=True):
                yield _figure(
                    tree.key(key), tree.named(name), used.cpu * 1e3, least.cpu * 1e3, floor
                )


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
    """Leave three runs in the project, and three items in its backlog."""
    here.restore()
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
