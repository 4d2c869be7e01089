"""The rooms of the package: who may import whom, what stays lazy, what the library never does."""

from __future__ import annotations

import ast
import importlib
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

import cuggino

ROOT = Path(cuggino.__file__).parent
CLI = ROOT.parent / "cuggino_cli"
TESTS = Path(__file__).parent
HEAVY = ("reactivex", "git", "watchdog", "prompt_toolkit", "pydantic", "psutil")


class Room(NamedTuple):
    """What a room may import: rooms below it, and libraries besides the standard one."""

    rooms: frozenset[str]
    libraries: frozenset[str]


def _room(rooms: str = "", libraries: str = "") -> Room:
    return Room(frozenset(rooms.split()), frozenset(libraries.split()))


ROOMS = MappingProxyType(
    {
        "_version": _room(),
        "events": _room("", "pydantic pydantic_core typing_extensions"),
        "errors": _room(),
        "security": _room("errors"),
        "config": _room("events errors security", "pydantic"),
        "domain": _room("events errors"),
        "prompts": _room("errors"),
        "operators": _room("events errors domain", "reactivex"),
        "sources": _room("errors", "reactivex watchdog git psutil"),
        "storage": _room("events errors domain", "pydantic filelock uuid6"),
        "agents": _room(
            "_version events errors security config domain sources operators",
            "pydantic pydantic_core reactivex mcp anyio copilot claude_agent_sdk",
        ),
        "stages": _room(
            "events errors security domain agents.protocol prompts operators sources storage",
            "reactivex",
        ),
        "loops": _room(
            "events errors security config domain prompts operators storage agents.protocol stages",
            "pydantic reactivex",
        ),
        "edges": _room("operators", "reactivex"),
        "report": _room("events errors domain storage", "pydantic plotly"),
        "notify": _room("events errors config operators", "reactivex apprise"),
        "preflight": _room(
            "errors config operators sources storage agents stages", "pydantic reactivex"
        ),
        "runtime": _room(
            "events errors security config domain prompts operators sources storage agents stages "
            "loops notify preflight",
            "reactivex pydantic",
        ),
        "testing": _room(
            "events errors security config domain prompts operators sources storage agents stages "
            "loops edges notify runtime",
            "reactivex psutil pytest",
        ),
    }
)
"""The rooms from the bottom up. A dotted name allows that one module of a room."""

CLI_MAY = _room(
    "_version config errors events domain security prompts agents loops.roles sources.git "
    "storage notify report",
    "click prompt_toolkit wcwidth reactivex pydantic git",
)
"""The command line sees `cuggino` itself and these; it is a subscriber like any other."""

PROGRAMS = (
    "agents/codex/hook.py",
    "agents/gemini/hook.py",
    "agents/opencode/judge.py",
    "agents/scripted/process.py",
    "security/hook.py",
    "sources/guardian.py",
)
"""Files that run as processes of their own, with arguments and standard streams."""

AT_HOME = ("agents/gemini/home.py", "agents/opencode/config.py", "agents/opencode/guard.py")


class Import(NamedTuple):
    module: str
    line: int
    typing_only: bool


def imports_of(path: Path) -> Iterator[Import]:
    """Every import of the file, those inside of functions too."""
    yield from _imports(ast.parse(path.read_text(encoding="utf-8")), typing_only=False)


def _imports(node: ast.AST, *, typing_only: bool) -> Iterator[Import]:
    for child in ast.iter_child_nodes(node):
        match child:
            case ast.Import(names=names):
                for alias in names:
                    yield Import(alias.name, child.lineno, typing_only)
            case ast.ImportFrom(module=module, level=level, names=names):
                assert level == 0, f"line {child.lineno}: a relative import"
                for alias in names:
                    # `from cuggino.sources import git` names a module.
                    below = f"{module}.{alias.name}"
                    is_module = (ROOT.parent / below.replace(".", "/")).with_suffix(".py").exists()
                    yield Import(below if is_module else str(module), child.lineno, typing_only)
            case ast.If(test=ast.Name(id="TYPE_CHECKING"), body=body, orelse=orelse):
                for statement in body:
                    yield from _imports(ast.Module([statement], []), typing_only=True)
                for statement in orelse:
                    yield from _imports(ast.Module([statement], []), typing_only=typing_only)
            case _:
                yield from _imports(child, typing_only=typing_only)


def files_of(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "demo/project" not in p.as_posix())


def room_of(path: Path) -> str:
    """`agents/claude.py` is in the room `agents`, `edges.py` is the room `edges`."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


def allowed(module: str, room: Room, own: str) -> bool:
    """Whether a file of the room `own` may import the module."""
    top, _, rest = module.partition(".")
    if top in sys.stdlib_module_names or top == "__future__":
        return True
    if top != "cuggino":
        return top in room.libraries
    return rest.partition(".")[0] == own or any(
        rest == name or rest.startswith(f"{name}.") for name in room.rooms
    )


LIBRARY_FILES = [p for p in files_of(ROOT) if p != ROOT / "__init__.py"]


@pytest.mark.parametrize("path", LIBRARY_FILES, ids=lambda p: p.relative_to(ROOT).as_posix())
def test_imports_go_downward(path: Path) -> None:
    """A file imports its own room, the rooms that its room may see, and its room's libraries."""
    own = room_of(path)
    assert own in ROOMS, f"the room {own} is not in the table"
    wrong = [i for i in imports_of(path) if not allowed(i.module, ROOMS[own], own)]
    assert wrong == []


def test_the_table_itself_goes_downward() -> None:
    """No room may see one that stands above it in the table, so there is no circle."""
    order = list(ROOMS)
    upward = [
        (name, below)
        for name, room in ROOMS.items()
        for below in room.rooms
        if order.index(below.partition(".")[0]) >= order.index(name)
    ]
    assert upward == []


@pytest.mark.parametrize("path", files_of(CLI), ids=lambda p: p.relative_to(CLI).as_posix())
def test_the_command_line_uses_public_names(path: Path) -> None:
    """The command line imports `cuggino`, its public rooms, and its own libraries."""
    wrong = [
        found
        for found in imports_of(path)
        if found.module != "cuggino"
        and found.module.partition(".")[0] != "cuggino_cli"
        and not allowed(found.module, CLI_MAY, "-")
    ]
    assert wrong == []


@pytest.mark.parametrize("path", files_of(ROOT), ids=lambda p: p.relative_to(ROOT).as_posix())
def test_the_library_is_silent_and_homeless(path: Path) -> None:
    """No file of the library prints, asks, reads `sys.argv` or looks for the home directory."""
    text, place = path.read_text(encoding="utf-8"), path.relative_to(ROOT).as_posix()
    if place in PROGRAMS:
        assert "__main__" in text
        return
    found: list[tuple[int, str]] = []
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "breakpoint" as name)):
                found.append((node.lineno, name))
            case ast.Attribute(value=ast.Name(id="sys"), attr="argv" | "stdout" | "stdin" as name):
                found.append((node.lineno, f"sys.{name}"))
            case ast.Attribute(attr="home" | "expanduser" as name) if place not in AT_HOME:
                found.append((node.lineno, name))
            case ast.Constant(value="HOME" | "USERPROFILE" as name) if place not in AT_HOME:
                found.append((node.lineno, name))
            case _:
                pass
    assert found == []


@pytest.mark.parametrize(
    "path",
    [*files_of(ROOT), *files_of(CLI), *files_of(TESTS)],
    ids=lambda p: p.relative_to(ROOT.parent).as_posix(),
)
def test_files_stay_small(path: Path) -> None:
    """Every file has fewer than 300 lines and says in its first line what it is."""
    text = path.read_text(encoding="utf-8")
    assert text.count("\n") < 300
    assert not text.strip() or ast.get_docstring(ast.parse(text))


def loaded_by(*arguments: str) -> set[str]:
    """The heavy libraries that a Python with these arguments has imported at its end."""
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", *arguments],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
        timeout=60,
    )
    modules = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert "cuggino" in modules or "cuggino._version" in modules
    return modules & set(HEAVY)


def test_import_is_light() -> None:
    """`import cuggino` imports none of the libraries it is made of."""
    assert set() == loaded_by("-c", "import cuggino")


@pytest.mark.parametrize("option", ["--version", "--help"])
def test_the_version_is_quick(option: str) -> None:
    """`cuggino --version` and `--help` import none of the libraries but click."""
    assert set() == loaded_by("-m", "cuggino_cli", option)


@pytest.mark.parametrize(
    ("module", "missing"),
    [
        ("cuggino.errors", set(HEAVY)),
        ("cuggino.security.hook", set(HEAVY)),
        ("cuggino.security.tools", set(HEAVY)),
        ("cuggino.prompts", set(HEAVY)),
        ("cuggino.events", set(HEAVY) - {"pydantic"}),
        ("cuggino.config", set(HEAVY) - {"pydantic"}),
        ("cuggino.storage", set(HEAVY) - {"pydantic"}),
        ("cuggino.domain.run_summary", set(HEAVY) - {"pydantic"}),
        ("cuggino.runtime", {"git", "watchdog", "prompt_toolkit"}),
    ],
)
def test_rooms_are_light(module: str, missing: set[str]) -> None:
    """A room loads no library that its table row does not name; git comes with its first use."""
    assert set() == loaded_by("-c", f"import {module}") & missing


def test_the_public_names_are_sorted() -> None:
    """`cuggino.__all__` and `dir(cuggino)` are sorted, without a name twice."""
    assert sorted(set(cuggino.__all__)) == cuggino.__all__
    assert cuggino.__all__ == dir(cuggino)


@pytest.mark.parametrize("name", sorted(cuggino.__all__))
def test_a_public_name_resolves(name: str) -> None:
    """Every public name is the object of its home module."""
    home = cuggino._HOME.get(name, "_version")
    assert getattr(importlib.import_module(f"cuggino.{home}"), name) is getattr(cuggino, name)


def test_an_unknown_name_is_an_attribute_error() -> None:
    """A name that is not public gives the usual error of a module."""
    with pytest.raises(AttributeError, match="module 'cuggino' has no attribute 'nothing'"):
        _ = cuggino.nothing


def test_the_type_checker_sees_the_same_names() -> None:
    """The imports for the type checker and the lazy table name the same homes, and `__all__`."""
    typed: dict[str, str] = {}
    for node in ast.walk(ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))):
        if isinstance(node, ast.If) and ast.unparse(node.test) == "TYPE_CHECKING":
            for statement in node.body:
                assert isinstance(statement, ast.ImportFrom)
                home = str(statement.module).removeprefix("cuggino.")
                typed |= {alias.asname or alias.name: home for alias in statement.names}
    assert typed == cuggino._HOME
    assert {*typed, "__version__"} == set(cuggino.__all__)
