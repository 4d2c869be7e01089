"""Sources of the configuration and of a program, from the start of a watch on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, from_iterable

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import ConfigError, WorkspaceLocked
from cuggino.events import WatchItemCompleted, WatchItemImported
from cuggino.forge import SourceItem, sources_of
from cuggino.storage import Backlog, Origins, Workspace

SCENARIO = Path(__file__).parents[2] / "examples" / "slots.toml"


def tracker() -> Observable[SourceItem]:
    return from_iterable([SourceItem(id="7", title="A"), SourceItem(id="8", title="B")])


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / ".specs").mkdir()
    (tmp_path / ".specs/a.md").write_text("A greeting.\n")
    (tmp_path / ".gitignore").write_text(".cuggino\n")
    for words in (
        "init -q",
        "config user.name Ada",
        "config user.email ada@example.org",
        "add .",
        "commit -qm Begin",
    ):
        subprocess.run(["git", *words.split()], cwd=tmp_path, check=True)
    return tmp_path


def runtime(project: Path, **settings: Any) -> cuggino.Runtime:
    config = cuggino.Config.model_validate({"loginCheck": False, **settings})
    return cuggino.Runtime.live(cwd=project, config=config, agent=ScriptedAgent(SCENARIO))


COMMAND = {"type": "command", "command": 'printf \'{"id": 9, "title": "C"}\''}


@pytest.mark.real_agent
@pytest.mark.parametrize("slots", [1, 2])
def test_a_watch_imports_and_works(project: Path, slots: int) -> None:
    """Sources of the program and of the configuration, with one slot or several."""
    live = runtime(project, slots=slots, commit=True, checkCommand="true", backlogSources=[COMMAND])
    names: set[str] = set()
    done: list[str] = []
    for event in cuggino.iterate(live.watch(sources=[tracker])):
        if isinstance(event, WatchItemImported):
            names.add(event.filename)
        elif isinstance(event, WatchItemCompleted):
            done.append(event.filename)
            if len(done) == slots:
                break
    assert names >= {"tracker-00007.md", "tracker-00008.md"}
    origin = Origins(live.workspace).read(done[0])
    assert origin is not None
    assert origin.begun


def test_one_look(project: Path) -> None:
    live = runtime(project, backlogSources=[COMMAND])
    events = list(cuggino.iterate(live.import_items(sources=[tracker])))
    changes = [event.filename for event in events if isinstance(event, WatchItemImported)]
    assert changes == ["command-00009.md", "tracker-00007.md", "tracker-00008.md"]
    assert Backlog(live.workspace).items() == sorted(changes)
    assert list(cuggino.iterate(live.import_items(sources=[tracker]))) == []


def test_one_look_while_a_run_works(project: Path) -> None:
    live = runtime(project)
    with Workspace(project).lock(), pytest.raises(WorkspaceLocked):
        list(cuggino.iterate(live.import_items(sources=[tracker])))


def test_no_source(project: Path) -> None:
    with pytest.raises(ConfigError, match="no source is configured"):
        list(cuggino.iterate(runtime(project).import_items()))


@pytest.mark.parametrize(
    "sources",
    [[COMMAND, COMMAND], [{**COMMAND, "name": "tracker"}]],
)
def test_two_sources_of_one_name(project: Path, sources: list[Any]) -> None:
    """This is known before anything starts."""
    live = runtime(project, backlogSources=sources)
    with pytest.raises(ConfigError, match="several sources have the name"):
        cuggino.run(live.watch(sources=[tracker]))
    assert not (project / ".cuggino/journal").exists()


@pytest.mark.parametrize(("kind", "program"), [("github", "gh"), ("gitlab", "glab")])
def test_a_missing_program(
    project: Path, monkeypatch: pytest.MonkeyPatch, kind: str, program: str
) -> None:
    config = cuggino.Config.model_validate({"backlogSources": [{"type": kind, "label": "agent"}]})
    monkeypatch.setattr("shutil.which", lambda *_: None)
    with pytest.raises(ConfigError, match=f"{program} is not installed"):
        sources_of(config, folder=project, views=None)


def test_an_unknown_repository(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    config = cuggino.Config.model_validate(
        {"backlogSources": [{"type": "github", "label": "agent"}]}
    )
    monkeypatch.setattr("shutil.which", lambda *_: "/usr/bin/gh")
    with pytest.raises(ConfigError, match="no repository on github"):
        sources_of(config, folder=project, views=None)
    subprocess.run(
        ["git", "remote", "add", "origin", "git@github.com:ada/shop.git"], cwd=project, check=True
    )
    (source,) = sources_of(config, folder=project, views=None)
    assert (source.name, source.has_issues) == ("github", True)
