"""What editors show of `import cuggino`: completion, hover, signature, go to definition."""

from __future__ import annotations

import gc
import inspect
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import jedi
import pytest

import cuggino
from cuggino.events import Event, WatchSentBack
from tests.screen.samples import all_event_types, own_fields
from tests.typed.checkers import pyright
from tests.typed.examples import ROOT
from tests.typed.language_server import LanguageServer, language_server

IMPORT = "import cuggino\n"
DEFINED = {"run": "edges.py", "Runtime": "runtime.py", "flow": "operators/flow.py"}
NAMES = {"Runtime", "run", "flow", "forward", "emit", "Schedule", "LoopEvent", "iterate"}


class Jedi:
    """Jedi, behind Jupyter, Spyder, Emacs and Vim."""

    def __init__(self) -> None:
        self._environment = jedi.create_environment(sys.executable, safe=False)

    def _script(self, text: str) -> jedi.Script:
        project = jedi.Project(ROOT, sys_path=[*sys.path, str(ROOT)])
        return jedi.Script(text, project=project, environment=self._environment)

    def completion(self, text: str) -> set[str]:
        return {name.name for name in self._script(text).complete()}

    def hover(self, text: str) -> str:
        return "\n".join(name.docstring() for name in self._script(text).help())

    def signature(self, text: str) -> set[str]:
        (signature,) = self._script(text).get_signatures()
        return {parameter.name for parameter in signature.params}

    def definition(self, text: str) -> set[Path]:
        found = self._script(text).goto(follow_imports=True)
        return {Path(name.module_path) for name in found if name.module_path}


class Pyright:
    """Pyright's language server, behind VS Code, Zed and Neovim."""

    def __init__(self, server: LanguageServer) -> None:
        self._server = server

    def completion(self, text: str) -> set[str]:
        return {item["label"] for item in self._server.ask("completion", text)["items"]}

    def hover(self, text: str) -> str:
        found = self._server.ask("hover", text)
        return re.sub(r"&nbsp;|\s+", " ", found["contents"]["value"])

    def signature(self, text: str) -> set[str]:
        (found, *_) = self._server.ask("signatureHelp", text)["signatures"]
        return set(re.findall(r"(\w+)\s*[:=]", found["label"]))

    def definition(self, text: str) -> set[Path]:
        found = self._server.ask("definition", text)
        return {Path(one["uri"].removeprefix("file://")) for one in found}


@contextmanager
def _jedi(_folder: Path) -> Iterator[Jedi]:
    yield Jedi()
    gc.collect()  # ends its process


@contextmanager
def _pyright(folder: Path) -> Iterator[Pyright]:
    with language_server(pyright("pyright-langserver"), folder) as server:
        yield Pyright(server)


@pytest.mark.real_agent
@pytest.mark.parametrize("name", ["jedi", "pyright"])
def test_an_editor(name: str, tmp_path: Path) -> None:
    """Completion, hover, signature and definition come through the door of the library."""
    editor: Any
    with {"jedi": _jedi, "pyright": _pyright}[name](tmp_path) as editor:
        assert NAMES <= set(cuggino.__all__) <= editor.completion(f"{IMPORT}cuggino.")
        offered = editor.completion(f'{IMPORT}cuggino.Schedule.constant("1s").')
        assert {"times", "within", "union", "and_then"} <= offered

        assert "block until the stream has ended" in editor.hover(f"{IMPORT}cuggino.run")
        assert "whose stages are streams" in editor.hover(f"{IMPORT}cuggino.flow")
        assert "The delays between attempts" in editor.hover(f"{IMPORT}cuggino.Schedule")

        assert {"stream", "on_next", "scheduler"} <= editor.signature(f"{IMPORT}cuggino.run(")
        assert {"cwd", "agent"} <= editor.signature(f"{IMPORT}cuggino.Runtime.live(")
        event = "from cuggino.events import WatchSentBack\nWatchSentBack("
        assert {*own_fields(WatchSentBack)} <= editor.signature(event)

        for known, file in DEFINED.items():  # not a stub or a table
            assert {ROOT / "cuggino" / file} == editor.definition(f"{IMPORT}cuggino.{known}")


@pytest.mark.parametrize("cls", all_event_types(), ids=lambda cls: cls.__name__)
def test_the_signature_of_an_event(cls: type[Event]) -> None:
    """`help()` and notebooks show the fields of an event."""
    assert {*own_fields(cls)} <= {*inspect.signature(cls).parameters}
