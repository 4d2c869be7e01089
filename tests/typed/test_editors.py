"""What editors show of `import cuggino`: completion, hover, signature, go to definition."""

from __future__ import annotations

import inspect
import re
import sys
from collections.abc import Iterator
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
NAMES = {"Runtime", "run", "flow", "forward", "emit", "Schedule", "LoopEvent", "iterate"}


class Jedi:
    """Jedi, behind Jupyter, Spyder, Emacs and Vim."""

    def _script(self, text: str) -> jedi.Script:
        return jedi.Script(text, project=jedi.Project(ROOT, sys_path=[*sys.path, str(ROOT)]))

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


@pytest.fixture(scope="module", params=["jedi", "pyright"])
def editor(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[Any]:
    if request.param == "jedi":
        yield Jedi()
        return
    program = pyright("pyright-langserver")
    with language_server(program, tmp_path_factory.mktemp("editor")) as server:
        yield Pyright(server)


@pytest.mark.real_agent
class TestEditor:
    def test_completion(self, editor: Any) -> None:
        """After the dot come all public names."""
        assert NAMES <= set(cuggino.__all__) <= editor.completion(f"{IMPORT}cuggino.")

    def test_completion_of_a_value(self, editor: Any) -> None:
        """Methods of a class behind the door are offered."""
        offered = editor.completion(f'{IMPORT}cuggino.Schedule.constant("1s").')
        assert {"times", "within", "union", "and_then"} <= offered

    def test_hover(self, editor: Any) -> None:
        """The documentation of a function or class is shown."""
        assert "block until the stream has ended" in editor.hover(f"{IMPORT}cuggino.run")
        assert "whose stages are streams" in editor.hover(f"{IMPORT}cuggino.flow")
        assert "The delays between attempts" in editor.hover(f"{IMPORT}cuggino.Schedule")

    def test_signature(self, editor: Any) -> None:
        """The parameters of a function, a method and an event are shown."""
        assert {"stream", "on_next", "scheduler"} <= editor.signature(f"{IMPORT}cuggino.run(")
        assert {"cwd", "agent"} <= editor.signature(f"{IMPORT}cuggino.Runtime.live(")
        event = "from cuggino.events import WatchSentBack\nWatchSentBack("
        assert {*own_fields(WatchSentBack)} <= editor.signature(event)

    @pytest.mark.parametrize(
        ("name", "file"),
        [("run", "edges.py"), ("Runtime", "runtime.py"), ("flow", "operators/flow.py")],
    )
    def test_definition(self, editor: Any, name: str, file: str) -> None:
        """A name leads to the file that defines it, not to a stub or a table."""
        assert {ROOT / "cuggino" / file} == editor.definition(f"{IMPORT}cuggino.{name}")


@pytest.mark.parametrize("cls", all_event_types(), ids=lambda cls: cls.__name__)
def test_the_signature_of_an_event(cls: type[Event]) -> None:
    """`help()` and notebooks show the fields of an event."""
    assert {*own_fields(cls)} <= {*inspect.signature(cls).parameters}
