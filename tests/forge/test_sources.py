"""Sources of items: commands, issues, functions, from the start of a watch on."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, from_iterable, of
from reactivex.subject import Subject

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import BacklogSource
from cuggino.errors import ConfigError, ForgeLimited, ForgeRefused, ProcessFailed, WorkspaceLocked
from cuggino.events import (
    Event,
    WatchForgeWaiting,
    WatchItemCompleted,
    WatchItemImported,
    WatchSourceFailed,
)
from cuggino.forge import Source, SourceItem, command_source, imported, sources_of
from cuggino.forge.issue_sources import issue_source
from cuggino.forge.source import source_of
from cuggino.stages import command_lines
from cuggino.storage import Backlog, Origins, Workspace
from cuggino.testing import InMemoryForge, VirtualClock


def source(folder: Path, command: str, **settings: Any) -> Source:
    def run() -> Any:
        return command_lines(command, folder, views=None)

    return command_source("jira", run, **settings)


def items(stream: Observable[SourceItem]) -> list[SourceItem]:
    return list(cuggino.iterate(stream))


def read(folder: Path, text: str) -> list[SourceItem]:
    (folder / "out").write_text(text)
    return items(source(folder, "cat out").items())


def test_each_line_is_an_item(tmp_path: Path) -> None:
    text = (
        '{"id": 7, "title": "A"}\n\n'
        '{"id": "P-8", "title": "B", "body": "b", "after": [7, "P-1"], "url": "https://e.example",'
        ' "held": "waits", "closed": true, "labels": ["x"]}'
    )
    assert read(tmp_path, text) == [
        SourceItem(id="7", title="A"),
        SourceItem(
            id="P-8",
            title="B",
            body="b",
            after=("7", "P-1"),
            url="https://e.example",
            held="waits",
            closed=True,
        ),
    ]


@pytest.mark.parametrize(
    ("line", "problem"),
    [
        ("Usage: jira", "column 1: not valid JSON"),
        ("[1]", "not a JSON object"),
        ('{"title": "A"}', '"id" is missing'),
        ('{"id": true, "title": "A"}', '"id" is not a text'),
        ('{"id": " ", "title": "A"}', "'' is not an id"),
        ('{"id": 1}', '"title" is missing'),
        ('{"id": 1, "title": 2}', '"title" is not a text'),
        ('{"id": 1, "title": "A", "after": "7"}', '"after" is not a list of ids'),
        ('{"id": 1, "title": "A", "after": [[]]}', "[] is not an id"),
        ('{"id": 1, "title": "A", "closed": 1}', '"closed" is neither true nor false'),
        ("[" * 5000, "nested too deeply"),
        ('{"id": NaN}', "NaN is not valid JSON"),
    ],
)
def test_a_line_that_is_not_valid(tmp_path: Path, line: str, problem: str) -> None:
    """It is named by its number; the other items are emitted first."""
    (tmp_path / "out").write_text(f'{{"id": 1, "title": "A"}}\n{line}\n{{"id": 2, "title": "B"}}\n')
    seen: list[SourceItem] = []
    stream = source(tmp_path, "cat out").items()
    with pytest.raises(ConfigError, match="line 2: ") as caught:
        cuggino.run(stream, seen.append)
    assert problem in str(caught.value)
    assert [item.id for item in seen] == ["1", "2"]


def test_many_lines_that_are_not_valid(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"line 3: .*; and 7 more$"):
        read(tmp_path, "x\n" * 10)


def test_a_command_that_fails(tmp_path: Path) -> None:
    stream = source(tmp_path, "echo no login >&2; exit 3").items()
    with pytest.raises(ProcessFailed, match="no login"):
        items(stream)


def test_a_command_that_takes_too_long(tmp_path: Path) -> None:
    stream = source(tmp_path, 'echo \'{"id": 1, "title": "A"}\'; sleep 600', timeout=0.5).items()
    with pytest.raises(ConfigError, match=r"timed out after 0\.5 seconds"):
        items(stream)


def test_what_it_prints_to_standard_error_is_no_item(tmp_path: Path) -> None:
    stream = source(tmp_path, 'echo warning >&2; echo \'{"id": 1, "title": "A"}\'').items()
    assert items(stream) == [SourceItem(id="1", title="A")]


class Importing:
    def __init__(self, folder: Path) -> None:
        self.clock = VirtualClock()
        self.forge = InMemoryForge(self.clock)
        self.ada = self.forge.person("ada")
        self.workspace = Workspace(folder)
        self.workspace.open()
        self.backlog = Backlog(self.workspace)
        self.events: list[Event] = []
        settings = BacklogSource(type="github", label="agent", network=True)
        companion = imported([issue_source(self.forge, settings)], self.workspace)
        companion(Subject()).subscribe(self.events.append, scheduler=self.clock)

    def go(self, seconds: float = 60) -> list[Any]:
        del self.events[:]
        self.clock.advance_to(self.clock.after(seconds))
        return [
            (event.change, event.reason) if isinstance(event, WatchItemImported) else event.tag
            for event in self.events
        ]


def test_the_life_of_an_issue(tmp_path: Path) -> None:
    watch = Importing(tmp_path)
    watch.ada.opens(7, "Add a page", "Now.", labels=("agent",))
    watch.ada.opens(8, "Something else")
    assert watch.go() == [("new", "")]
    origin = Origins(watch.workspace).read("github-00007.md")
    assert origin is not None
    assert (origin.number, origin.network) == (7, True)
    watch.ada.edits(7, body="Later.")
    assert watch.go() == [("updated", "")]
    watch.ada.closes(7)
    assert watch.go() == [("removed", "it is closed, or no longer listed")]
    watch.ada.reopens(7)
    assert watch.go() == [("new", "")]


def test_the_text_of_a_stranger(tmp_path: Path) -> None:
    """It counts once a trusted person labels the issue, until the stranger edits it."""
    watch = Importing(tmp_path)
    eve = watch.forge.person("eve", trusted=False)
    eve.opens(7, "Add a page", "Now.", labels=("agent",))
    reason = "was written by eve, whose text does not count"
    assert watch.go() == [("held", reason)]
    watch.ada.labels(7, "agent")
    assert watch.go() == [("released", "")]
    eve.edits(7, body="Obey.")
    assert watch.go() == [("held", "was edited by eve, whose text does not count")]
    assert "Obey" not in watch.backlog.path("github-00007.md").read_text()
    watch.ada.edits(7, body="Now, please.")
    assert watch.go() == [("released", ""), ("updated", "")]


def test_a_limit_is_waited_for(tmp_path: Path) -> None:
    watch = Importing(tmp_path)
    watch.ada.opens(7, "Add a page", labels=("agent",))
    watch.forge.fail("issues", ForgeLimited("slow down"), times=2)
    assert watch.go(600) == ["WatchForgeWaiting", "WatchForgeWaiting", ("new", "")]
    waiting = watch.events[0]
    assert isinstance(waiting, WatchForgeWaiting)
    assert waiting.doing == "list the issues"


def test_a_deleted_repository(tmp_path: Path) -> None:
    """Nothing is removed; it is asked for again."""
    watch = Importing(tmp_path)
    watch.ada.opens(7, "Add a page", labels=("agent",))
    watch.go()
    watch.forge.fail("issues", ForgeRefused("not found", status=404), times=2)
    assert watch.go(200) == ["WatchSourceFailed", "WatchSourceFailed"]
    failed = watch.events[0]
    assert isinstance(failed, WatchSourceFailed)
    assert (failed.message, failed.retry_in) == ("not found", 60)
    assert watch.backlog.items() == ["github-00007.md"]
    assert watch.go(600) == []


def our_tracker() -> Observable[SourceItem]:
    return of(SourceItem(id="1", title="Add a page"))


def test_a_function_is_a_source_by_its_name() -> None:
    source = source_of(our_tracker)
    assert (source.name, source.every) == ("our-tracker", 60.0)
    assert source.items is our_tracker
    assert source_of(source) is source


@pytest.mark.parametrize("name", ["", "Jira", "a/b", "7up", "x" * 33, "a\n"])
def test_a_name_begins_file_names(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a source"):
        Source(name=name, items=our_tracker)


def test_a_lambda_has_no_name() -> None:
    with pytest.raises(ConfigError, match="cannot name a source"):
        source_of(lambda: our_tracker())


@pytest.mark.parametrize("every", [-1, float("nan")])
def test_the_time_between_looks_is_a_time(every: float) -> None:
    with pytest.raises(ConfigError, match="not a time"):
        Source(name="jira", items=our_tracker, every=every)


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
