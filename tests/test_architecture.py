"""The structure of the packages: imports, lazy loading, and what the library never does."""

from __future__ import annotations

import ast
import functools
import importlib
import re
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from graphlib import CycleError, TopologicalSorter
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

import pytest

import cuggino
from cuggino import programs
from tests.limits import LIMIT

ROOT = Path(cuggino.__file__).parent
CLI = ROOT.parent / "cuggino_cli"
STANDARD = sys.stdlib_module_names
HEAVY = frozenset(
    {"reactivex", "git", "watchdog", "prompt_toolkit", "pydantic", "psutil", "wcwidth"}
)


class Room(NamedTuple):
    """The rooms and the third-party libraries that a room may import."""

    rooms: frozenset[str]
    libraries: frozenset[str]


def _room(rooms: str = "", libraries: str = "") -> Room:
    return Room(frozenset(rooms.split()), frozenset(libraries.split()))


ROOMS: Mapping[str, Room] = MappingProxyType(
    {
        "_version": _room(),
        "events": _room("", "pydantic pydantic_core typing_extensions"),
        "errors": _room(),
        "inert": _room(),
        "protection": _room(),
        "files": _room("errors protection"),
        "edited_files": _room("errors files protection", "pydantic"),
        "kept_files": _room("errors files edited_files", "pydantic"),
        "system_calls": _room(),
        "programs": _room("errors files system_calls"),
        "guard": _room("errors"),
        "domain": _room("events errors", "genai_prices cronsim"),
        "config": _room("events errors files edited_files guard domain", "pydantic pydantic_core"),
        "prompts": _room("errors files"),
        "operators": _room("events errors domain", "reactivex"),
        "processes": _room("programs errors files operators", "reactivex psutil"),
        "sandbox": _room("programs errors files guard processes"),
        "folders": _room("errors operators", "reactivex watchdog psutil"),
        "sources": _room("folders processes"),
        "git": _room("errors files sandbox operators processes", "reactivex git psutil"),
        "trust": _room("errors files config prompts processes git"),
        "storage": _room(
            "events errors protection files edited_files kept_files domain", "pydantic filelock"
        ),
        "runs": _room("events errors files domain operators folders storage", "pydantic reactivex"),
        "agents": _room(
            "programs _version events errors protection files guard sandbox config domain "
            "processes operators git",
            "pydantic pydantic_core reactivex copilot acp",
        ),
        "gate": _room(
            "errors events files kept_files guard sandbox domain agents.base operators processes "
            "git",
            "pydantic reactivex",
        ),
        "stages": _room(
            "events errors protection files guard sandbox config domain agents.base gate prompts "
            "operators folders processes git storage",
            "pydantic reactivex",
        ),
        "loops": _room(
            "programs events errors files guard sandbox config domain prompts "
            "operators git storage runs agents.base gate stages",
            "pydantic reactivex",
        ),
        "edges": _room("operators", "reactivex"),
        "report": _room(
            "events errors inert domain git storage edges runs",
            "pydantic reactivex jinja2 markupsafe markdown_it",
        ),
        "notify": _room(
            "events errors sandbox config domain operators processes runs", "reactivex apprise"
        ),
        "telemetry": _room(
            "_version events errors domain storage agents.cassettes runs",
            "pydantic reactivex opentelemetry",
        ),
        "web": _room(
            "events errors files config domain folders git storage edges runs report",
            "anyio jinja2 markdown_it pydantic reactivex starlette uvicorn",
        ),
        "forge": _room(
            "events errors files sandbox config domain operators processes git storage "
            "agents.cassettes stages loops",
            "reactivex pydantic",
        ),
        "chat": _room(
            "events errors files sandbox config domain operators folders storage notify stages",
            "reactivex pydantic httpx",
        ),
        "logins": _room("errors operators processes agents", "reactivex"),
        "wakefulness": _room("events operators", "reactivex wakepy"),
        "preflight": _room(
            "errors events edited_files sandbox config domain operators git storage agents stages",
            "pydantic reactivex",
        ),
        "control": _room("errors events files processes storage"),
        "doctor": _room(
            "errors events operators processes edges guard sandbox config domain git storage "
            "agents gate stages logins wakefulness notify runs forge chat",
            "pydantic reactivex",
        ),
        "guard_audit": _room(
            "events errors edited_files guard config storage", "pydantic reactivex"
        ),
        "mcp_server": _room("errors domain", "mcp"),
        "project_manager": _room(
            "programs events errors sandbox config prompts operators storage agents chat",
            "reactivex",
        ),
        "runtime": _room(
            "events errors files guard sandbox config domain prompts operators "
            "storage agents gate stages loops notify telemetry logins wakefulness control "
            "preflight runs doctor guard_audit project_manager forge chat",
            "reactivex pydantic",
        ),
        "placement": _room(
            "_version events errors files sandbox config domain operators processes "
            "git storage runs agents stages loops logins doctor runtime",
            "pydantic reactivex distributed filelock",
        ),
        "testing": _room(
            "events errors files guard sandbox config domain prompts operators processes "
            "git storage agents stages loops edges notify forge runtime",
            "reactivex psutil pytest",
        ),
        "simulation": _room(
            "errors events config domain gate preflight storage runs agents.base stages loops "
            "testing",
            "pydantic reactivex",
        ),
        "pytest_plugin": _room("agents.base config testing", "pytest"),
    }
)
"""The rooms from the bottom up. A dotted name allows one package of a room."""

CLI_LIBRARIES = frozenset({"click", "prompt_toolkit", "wcwidth", "reactivex", "pydantic"})
"""Third-party libraries that the command line may import."""

PROGRAMS = frozenset(
    {
        "agents/base/hook.py",
        "agents/scripted/process.py",
        "doctor/agent_process.py",
        "mcp_server.py",
        "sandbox/loader.py",
        "processes/guardian.py",
    }
)
"""Files that run as separate processes, with arguments and standard streams."""

READS_HOME = frozenset(
    {
        *("agents/gemini/config.py", "agents/opencode/config.py", "agents/opencode/guard.py"),
        *("sandbox/home.py", "files.py"),
    }
)
"""Files that prepare a home folder for an agent's program, or find the state folder of cuggino."""

LOADS_NONE_OF: Mapping[str, frozenset[str]] = MappingProxyType(
    {
        "-c import cuggino": HEAVY,
        "-m cuggino_cli --version": HEAVY,
        "-m cuggino_cli --help": HEAVY,
        "-c import cuggino.errors": HEAVY,
        "-c import cuggino.guard.tools": HEAVY,
        "-c import cuggino.prompts": HEAVY,
        "-c import cuggino.events": HEAVY - {"pydantic"},
        "-c import cuggino.config": HEAVY - {"pydantic"},
        "-c import cuggino.storage": HEAVY - {"pydantic"},
        "-c import cuggino.domain": HEAVY - {"pydantic"},
        "-c import cuggino.runtime": frozenset({"git", "prompt_toolkit"}),
    }
)
"""Arguments of Python, and the libraries that it must not have imported at the end."""


EXTRAS = frozenset({"apprise", "copilot", "distributed", "httpx", "mcp", "opentelemetry"})
"""Libraries that only extras of cuggino install."""

HOOK = re.compile(r"cuggino/(guard/.*|agents/base/(calls|hook)|agents/\w+/hook)\.py")
"""The guard's hook, which starts before each tool call and loads only what a call needs."""

LATE: Mapping[str, str] = MappingProxyType(
    {
        "cuggino/domain/prices.py": "50 ms for prices that most commands do not need; a loop loads "
        "them before its first agent starts",
        "cuggino/git/state.py": "GitPython starts git when it is imported, and must know which",
        "cuggino/processes/guardian.py": "a program that finds the package by its arguments",
        "cuggino/pytest_plugin.py": "pytest loads it for the tests of every project",
        "cuggino_cli/__init__.py": "the door of the package that all commands are in",
        "cuggino_cli/console_scripts.py": "signals are handled before anything else is imported",
        "cuggino_cli/follow/serving.py": "200 ms for a page that most runs do not serve",
        "cuggino_cli/main.py": "`cuggino.files` cannot be imported on Windows, `--version` works",
    }
)
"""Files with imports inside functions for a reason of their own."""


def test_imports_stand_at_the_top() -> None:
    """A function imports only an extra, what one subcommand needs, or for a reason in `LATE`.

    So a reader sees what a module uses, and a run loads what it needs before its first agent.
    """
    late = {
        path.relative_to(ROOT.parent).as_posix(): [*_late_imports(path)]
        for path in [*_files(ROOT), *_files(CLI)]
        if re.search(r"^ +(from|import) ", path.read_text(encoding="utf-8"), re.MULTILINE)
    }
    wrong = [
        f"{place} imports {module} in {function.name}"
        for place, found in late.items()
        if place not in LATE and not HOOK.fullmatch(place)
        for function, module in found
        if not (_is_extra(module) or _is_subcommand(function))
    ]
    assert [] == wrong
    assert [] == [place for place in LATE if not late[place]]


def test_imports_go_downward() -> None:
    """A file imports only its own room, the rooms below it, and the libraries of its room."""
    order = list(ROOMS)
    upward = [
        f"the table lets {name} import {below}"
        for name, room in ROOMS.items()
        for below in room.rooms
        if order.index(below.partition(".")[0]) >= order.index(name)
    ]
    wrong = [
        f"{path.relative_to(ROOT)} imports {module}"
        for path in _files(ROOT)
        if path != ROOT / "__init__.py"
        for module in _imports(path)
        if not _is_allowed(module, ROOMS[_room_of(path)], _room_of(path))
    ]
    assert [] == upward + wrong


def test_rooms_are_entered_by_their_doors() -> None:
    """A file imports public names of other rooms, from the package that exports them.

    Only separate programs, whose packages are empty in their copy, do so by modules, and are
    imported as modules. The door of the operators has what loops are composed with; what cuggino
    itself is made of is imported from the modules below it.
    """
    modules = {_module_of(ROOT / file) for file in PROGRAMS}
    copied = programs._contents()
    wrong = [
        f"{path.relative_to(ROOT)} imports {name} of {module}"
        for path in _files(ROOT)
        if f"cuggino/{path.relative_to(ROOT)}" not in copied
        for module, name in _imported_names(path)
        if module.startswith("cuggino.") and module.split(".")[1] != _room_of(path)
        if not {module, f"{module}.{name}"} & modules
        if not (name in _public_names(module) if _is_package(module) else module.count(".") == 1)
        if module.rpartition(".")[0] != "cuggino.operators" or name.startswith("_")
    ]
    assert [] == wrong


@pytest.mark.real_agent
def test_no_import_cycles() -> None:
    """There are no import cycles, not even within a package, a function or a type check.

    So every module can be the first one that a program imports.
    """
    graph: dict[str, set[str]] = defaultdict(set)
    for path in [*_files(ROOT), *_files(CLI)]:
        importer = _module_of(path)
        if importer != "cuggino":  # its names are imported on first use
            graph[importer] = {m for name in _imports(path) for m in _loaded_with(name, importer)}
    assert [] == _cycles(graph)


def test_command_line_uses_public_names() -> None:
    """The command line imports only public names: the modules that `cuggino` lists, and theirs."""
    public = set(re.findall(r"^- `(cuggino[.\w]*)`", cuggino.__doc__ or "", re.MULTILINE))
    agents = {f"cuggino.agents.{place.name}" for place in (ROOT / "agents").iterdir()}
    providers = agents - {"cuggino.agents.base", "cuggino.agents.choosing"}
    wrong = [
        f"{path.relative_to(CLI)} imports {name} of {module}"
        for path in _files(CLI)
        for module, name in _imported_names(path)
        if f"{module}.{name}" not in public
        and not (
            name in _public_names(module)
            if module in {"cuggino", *public, *providers}
            else module.partition(".")[0] in {"cuggino_cli", *CLI_LIBRARIES, *STANDARD}
        )
    ]
    assert [] == wrong


@pytest.mark.real_agent
def test_library_does_no_terminal_io() -> None:
    """No file of the library prints, prompts, reads `sys.argv` or uses the home folder."""
    found = [
        f"{path.relative_to(ROOT)}:{line} uses {name}"
        for path in _files(ROOT)
        for line, name in _terminal_or_home(path)
    ]
    assert [] == found


@pytest.mark.real_agent
def test_imports_are_light() -> None:
    """Importing a room loads no heavy library that the room does not need."""
    loaded = {
        arguments: _loaded_by(arguments) & names for arguments, names in LOADS_NONE_OF.items()
    }
    assert {} == {arguments: names for arguments, names in loaded.items() if names}


def test_public_names() -> None:
    """The names that a package exports resolve, and each is listed once."""
    for path in ROOT.rglob("__init__.py"):
        door = importlib.import_module(_module_of(path))
        exported = getattr(door, "__all__", [])
        assert [] == [name for name in exported if getattr(door, name, None) is None]
        assert len(set(exported)) == len(exported), path


def test_the_door_of_the_library() -> None:
    """`cuggino` exports what type checkers see, each name imported on first use."""
    tree = ast.parse((ROOT / "__init__.py").read_text(encoding="utf-8"))
    seen = {
        alias.name: node.module
        for block in tree.body
        if isinstance(block, ast.If)
        for node in block.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert seen == cuggino._HOMES
    assert {"__version__", *seen} == {*cuggino.__all__} == {*dir(cuggino)}
    with pytest.raises(AttributeError, match="'cuggino' has no attribute 'nothing'"):
        getattr(cuggino, "nothing")  # noqa: B009 (mypy rejects the attribute)


def test_modules_behind_the_door() -> None:
    """A public module is there without an import of its own, as type checkers take it to be."""
    program = "import cuggino; print(cuggino.events.Done.__name__, hasattr(cuggino, 'nothing'))"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, check=True)
    assert b"Done False" == done.stdout.strip()


def _files(folder: Path) -> list[Path]:
    return sorted(p for p in folder.rglob("*.py") if "demo/project" not in p.as_posix())


def _module_of(path: Path) -> str:
    parts = path.relative_to(ROOT.parent).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def _room_of(path: Path) -> str:
    """Return `agents` for `agents/claude/wire.py` and `edges` for `edges.py`."""
    return path.relative_to(ROOT).parts[0].removesuffix(".py")


@functools.cache
def _is_module(name: str) -> bool:
    place = ROOT.parent / name.replace(".", "/")
    return place.with_suffix(".py").exists() or _is_package(name)


@functools.cache
def _is_package(name: str) -> bool:
    return (ROOT.parent / name.replace(".", "/") / "__init__.py").exists()


@functools.cache
def _imported_names(path: Path) -> tuple[tuple[str, str], ...]:
    """Return each imported module with each name imported from it, or "".

    Imports in functions and for the type checker count too. Only these names are kept: thousands
    of syntax trees in memory would slow down every collection of garbage.
    """
    found: list[tuple[str, str]] = []
    statements: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    for node in statements:
        match node:
            case ast.Import(names=names):
                found += ((alias.name, "") for alias in names)
            case ast.ImportFrom(module=module, level=level, names=names):
                assert level == 0, f"{path}:{node.lineno}: a relative import"
                found += ((str(module), alias.name) for alias in names)
            case _:
                statements += (
                    child
                    for child in ast.iter_child_nodes(node)
                    if isinstance(child, ast.stmt | ast.excepthandler | ast.match_case)
                )
    return tuple(found)


def _imports(path: Path) -> Iterator[str]:
    """Yield the modules that a file imports."""
    for module, name in _imported_names(path):
        below = f"{module}.{name}"
        yield below if name and _is_module(below) else module


def _late_imports(path: Path) -> Iterator[tuple[ast.FunctionDef | ast.AsyncFunctionDef, str]]:
    """Yield the modules that are imported inside functions, each with its function."""
    for function in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            for node in ast.walk(function):
                match node:
                    case ast.Import(names=names):
                        yield from ((function, alias.name) for alias in names)
                    case ast.ImportFrom(module=module, names=names):
                        for alias in names:
                            below = f"{module}.{alias.name}"
                            yield function, below if _is_module(below) else str(module)
                    case _:
                        pass


def _is_extra(module: str) -> bool:
    """Return whether an extra installs the module, or one that this module of ours imports."""
    place = ROOT.parent / f"{module.replace('.', '/')}.py"
    used = _imports(place) if place.exists() else [module]
    return any(name.partition(".")[0] in EXTRAS for name in used)


def _is_subcommand(function: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    """Return whether the function is a subcommand of a group, `@command.command(...)`."""
    return any(
        ast.unparse(decorator).startswith("command.command(")
        for decorator in function.decorator_list
    )


@functools.cache
def _public_names(module: str) -> frozenset[str]:
    door = importlib.import_module(module)
    own = (name for name in vars(door) if not name.startswith("_"))
    return frozenset(getattr(door, "__all__", own))


def _loaded_with(module: str, importer: str) -> Iterable[str]:
    """Yield the module and our packages that Python imports before it."""
    parts = module.split(".")
    for end in range(2, len(parts) + 1):
        name = ".".join(parts[:end])
        is_own_package = end < len(parts) and f"{importer}.".startswith(f"{name}.")
        if parts[0] in ("cuggino", "cuggino_cli") and not is_own_package:
            yield name


def _cycles(graph: Mapping[str, set[str]]) -> list[set[str]]:
    """Return the groups of modules that reach each other, the shortest first."""
    left = {name: set(below) for name, below in graph.items()}
    found: list[set[str]] = []
    while True:
        try:
            TopologicalSorter(left).prepare()
        except CycleError as error:
            cycle = error.args[1]
            found.append(set(cycle))
            left[cycle[1]].discard(cycle[0])
        else:
            return sorted(found, key=len)


def _is_allowed(module: str, room: Room, own: str) -> bool:
    top, _, rest = module.partition(".")
    if top in STANDARD:
        return True
    if top != "cuggino":
        return top in room.libraries
    return rest.partition(".")[0] == own or any(
        rest == name or rest.startswith(f"{name}.") for name in room.rooms
    )


def _terminal_or_home(path: Path) -> Iterator[tuple[int, str]]:
    place = path.relative_to(ROOT).as_posix()
    text = path.read_text(encoding="utf-8")
    if place in PROGRAMS:
        assert "__main__" in text, f"{place} is no program"
        return
    for node in ast.walk(ast.parse(text)):
        match node:
            case ast.Call(func=ast.Name(id="print" | "input" | "breakpoint" as name)):
                yield node.lineno, name
            case ast.Attribute(value=ast.Name(id="sys"), attr="argv" | "stdout" | "stdin" as name):
                yield node.lineno, f"sys.{name}"
            case ast.Attribute(attr="home" | "expanduser" as name) if place not in READS_HOME:
                yield node.lineno, name
            case ast.Constant(value="HOME" | "USERPROFILE" as name) if place not in READS_HOME:
                yield node.lineno, name
            case _:
                pass


def _loaded_by(arguments: str) -> set[str]:
    """Return the heavy libraries that Python has imported when it ends."""
    option, _, rest = arguments.partition(" ")
    ran = subprocess.run(
        [sys.executable, "-X", "importtime", option, *([rest] if option == "-c" else rest.split())],
        capture_output=True,
        text=True,
        check=True,
        cwd=ROOT.parent,
        timeout=LIMIT,
    )
    modules = {line.rpartition("|")[2].strip() for line in ran.stderr.splitlines()}
    assert modules & {"cuggino", "cuggino._version"}
    return modules & HEAVY


_NAMES_GIT = frozenset(
    {"guard/commands/acts.py", "guard/commands/table.py", "sandbox/search_path.py"}
)
"""Modules in which "git" is the name of a program that others start."""


def test_git_is_started_in_one_room() -> None:
    """No other module has a command line that begins with git, or imports GitPython."""
    found = []
    for path in (*_files(ROOT), *_files(CLI)):
        place = path.relative_to(ROOT.parent).as_posix()
        within = place.removeprefix("cuggino/")
        if within.startswith("git/") or within in _NAMES_GIT:
            continue
        text = path.read_text(encoding="utf-8")
        if not re.search(r"""["']git["']|import git\b""", text):
            continue  # parsing all modules takes seconds
        for node in ast.walk(ast.parse(text)):
            match node:
                case (
                    ast.List(elts=[ast.Constant("git"), *_])
                    | ast.Tuple(
                        elts=[ast.Constant(value="git"), ast.Constant() | ast.Starred(), *_]
                    )
                    | ast.Import(names=[ast.alias(name="git"), *_])
                ):
                    found.append(f"{place}:{node.lineno}")
                case _:
                    pass
    assert [] == found
