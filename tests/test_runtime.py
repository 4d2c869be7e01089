"""The runtime: the services it builds from a folder, and the checks before anything is written."""

from __future__ import annotations

import os
from errno import EACCES, EMFILE
from pathlib import Path
from typing import Any

import pytest
from reactivex import throw

from cuggino import Config, ConfigError, LoopRunOptions, Runtime, iterate, run, save_config
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.scripted import ScriptedAgent
from cuggino.config import AttemptChoice
from cuggino.errors import AgentNotFound, CugginoError, SpawnFailed
from cuggino.events import AgentMessage, Event, IterationStart, LoopSpecIssue
from cuggino.testing import AgentRun, InMemoryAgent
from tests.git_commands import replace_git
from tests.git_project import GitProject, isolate_git


@pytest.fixture
def project(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Create a folder with specifications, outside any repository."""
    isolate_git(monkeypatch, tmp_path / "home")
    folder = tmp_path / "project"
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "a.md").write_text("# A\n")
    return folder


def agent() -> InMemoryAgent:
    """Return a planner that finds the specifications unclear."""
    unclear = AgentRun([AgentMessage(text="<SPEC_ISSUE>x</SPEC_ISSUE>")])
    return InMemoryAgent({"planning": [unclear]})


def tree(folder: Path) -> list[str]:
    return sorted(path.relative_to(folder).as_posix() for path in folder.rglob("*"))


def refused(folder: Path, config: Config | None = None, focus: str = "the page") -> CugginoError:
    """Return the error of a run in the folder; check that nothing was started or written."""
    before = tree(folder)
    played = agent()
    seen: list[Event] = []
    with pytest.raises(CugginoError) as caught:
        run(Runtime.live(cwd=folder, config=config, agent=played).run(focus=focus), seen.append)
    assert (before, [], []) == (tree(folder), played.spawned, seen)
    assert 2 == caught.value.code
    assert caught.value.hint
    return caught.value


class TestBuilding:
    def test_nothing_is_written(self, project: Path) -> None:
        """Building a runtime and a stream of it writes nothing."""
        before = tree(project)
        Runtime.live(cwd=project, agent=agent()).run(focus="the page")
        assert before == tree(project)

    def test_parts(self, project: Path) -> None:
        """The folder is made absolute; the configuration is the project's."""
        save_config(project, Config(max_iterations=3))
        runtime = Runtime.live(cwd=os.path.relpath(project), agent=agent())
        assert project.resolve() == runtime.cwd == runtime.workspace.root
        assert Config(max_iterations=3) == runtime.config
        assert Config() == Runtime.live(cwd=project, config=Config(), agent=agent()).config

    def test_choice_of_the_agent(self, project: Path) -> None:
        """The agent is the given, the named or the configured one."""
        assert isinstance(Runtime.live(cwd=project).agent, ClaudeAgent)
        assert isinstance(Runtime.live(cwd=project, agent="claude").agent, ClaudeAgent)
        played = agent()
        assert played is Runtime.live(cwd=project, agent=played).agent
        with pytest.raises(ConfigError, match='unknown agent "nobody"'):
            Runtime.live(cwd=project, agent="nobody")
        with pytest.raises(ConfigError, match='unknown agent "nobody"'):
            Runtime.live(cwd=project, config=Config(agent="nobody"))

    def test_options_of_a_run(self, project: Path) -> None:
        """Every configured setting of the loop reaches the run."""
        values: dict[str, Any] = {
            "specs_path": "docs",
            "max_iterations": 3,
            "max_tasks_per_plan": 4,
            "setup_command": "make",
            "check_command": "make check",
            "setup_strict": True,
            "setup_keeps_running": True,
            "command_timeout": 5.0,
            "gate": "block",
            "gate_paths": ["ci/**"],
            "baseline": "must-pass",
            "slot_folder": "../slots",
            "commit": True,
            "push": "origin/main",
            "attempts": [AttemptChoice(hint="test first")],
            "choose": "best",
            "hands": 2,
            "model": "small",
            "budget": 2.5,
            "max_tokens": 1000,
            "max_duration": 60.0,
            "wait_for_quota": True,
            "max_quota_waits": 3,
            "max_quota_wait": 60.0,
            "max_wait": 60.0,
            "approve": ["plan"],
            "approve_within": "8h",
            "approve_else": "approve",
            "quota_reserve": 0.2,
            "overage": "stop",
            "repetition_limit": 4,
            "max_retries": 1,
            "idle_timeout": 2.0,
            "tool_timeout": 3.0,
            "stage_timeout": 4.0,
            "progress_patience": 5,
            "review_patience": 6,
            "journal": False,
            "journal_days": 7,
            "snapshot_days": 9,
            "dirty": "commit",
            "price_as": "gpt-5.5",
            "count_tokens": "plain",
            "journal_runs": 8,
            "guard": "full",
            "profile": ["python"],
            "allow_commands": ["make"],
            "allow_pkill_targets": ["celery"],
            "allow_destructive": True,
            "sandbox": "off",
            "sandbox_hide": ["~/.ssh"],
            "sandbox_show": ["/run/docker.sock"],
            "sandbox_domains": ["*.example.com"],
        }
        runtime = Runtime.live(cwd=project, config=Config(**values), agent=agent())
        options = runtime.loop_options(focus="the page", review="redo")
        given: dict[str, Any] = {
            "focus": "the page",
            "review": "redo",
            "agent": "memory",
            "command": "cuggino run --hands 2",
        }
        assert LoopRunOptions(cwd=project.resolve(), **given, **values) == options
        shared = set(Config.model_fields) & set(LoopRunOptions.model_fields) - {"agent"}
        assert set(values) == shared

    def test_focus_file(self, project: Path) -> None:
        """`@path` is read when the run starts, from the project's folder."""
        (project / "page.md").write_text("blue\n")
        played = agent()
        run(Runtime.live(cwd=project, agent=played).run(focus="@page.md"))
        assert "The file `page.md`, with this content:\n\nblue" in (
            played.spawned[0].system_prompt or ""
        )


class TestRunning:
    def test_run(self, project: Path) -> None:
        """The run emits the loop's events and leaves only files meant for people."""
        events = list(iterate(Runtime.live(cwd=project, agent=agent()).run(focus="the page")))
        assert IterationStart(iteration=1, max_iterations=10) == events[0]
        assert isinstance(events[-1], LoopSpecIssue)
        assert "x" == (project / ".cuggino/spec-issues" / events[-1].filename).read_text()
        assert [] == list((project / ".cuggino/wip").iterdir())

    def test_project_prompts(self, project: Path) -> None:
        """Templates in `.cuggino/prompts` are used."""
        (project / ".cuggino/prompts").mkdir(parents=True)
        (project / ".cuggino/prompts/planning.md").write_text("Mine: {{focus}}")
        played = agent()
        run(Runtime.live(cwd=project, agent=played).run(focus="the page"))
        assert "Mine: the page" == played.spawned[0].system_prompt

    def test_commit_in_a_repository(self, project: Path) -> None:
        """`commit` works in a repository and in its subfolders."""
        GitProject(project)
        (project / "part" / ".specs").mkdir(parents=True)
        (project / "part" / ".specs" / "a.md").write_text("# A\n")
        for folder in (project, project / "part"):
            stream = Runtime.live(cwd=folder, config=Config(commit=True), agent=agent())
            assert isinstance(run(stream.run(focus="the page")), LoopSpecIssue)


class TestRefusals:
    def test_no_specs(self, project: Path) -> None:
        """A missing specs folder, a file or a broken link is reported with its path."""
        (project / "file").write_text("")
        (project / "link").symlink_to("gone")
        states = {
            "docs": "does not exist",
            "file": "is not a folder",
            "link": "is a link to a missing folder",
        }
        for specs, state in states.items():
            error = refused(project, Config(specs_path=specs))
            assert f"the specs folder {project.resolve() / specs} {state}" == error.message

    def test_no_folder(self, project: Path) -> None:
        """A missing project folder has no specs."""
        assert "does not exist" in refused(project / "gone").message

    @pytest.mark.parametrize("focus", ["", "  ", "@gone.md"])
    def test_no_focus(self, project: Path, focus: str) -> None:
        """A blank focus and a missing focus file are rejected."""
        assert "focus" in refused(project, focus=focus).message

    def test_no_repository(self, project: Path) -> None:
        """`commit` requires a repository."""
        error = refused(project, Config(commit=True))
        assert f"{project.resolve()} is in no git repository, but commit is on" == error.message
        assert "git init" in str(error.hint)

    def test_specs_that_are_the_project(self, project: Path) -> None:
        """With `commit`, specs that are the whole project would leave nothing to commit."""
        error = refused(project, Config(specs_path=".", commit=True))
        assert error.message.startswith("specsPath is the project itself")

    def test_no_git(self, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """Only `commit` requires git."""
        monkeypatch.setenv("PATH", str(project / "empty"))
        error = refused(project, Config(commit=True))
        assert "git is not installed, but commit is on" == error.message
        assert run(Runtime.live(cwd=project, agent=agent()).run(focus="the page")) is not None

    @pytest.mark.parametrize(("files", "hint"), [(EMFILE, "`ulimit -n 1024`"), (EACCES, "install")])
    def test_git_that_cannot_be_started(
        self, files: int, hint: str, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """The advice fits the reason: a lack of file handles does not ask for an installation."""
        failure = SpawnFailed("git", OSError(files, os.strerror(files)))
        replace_git(monkeypatch, lambda *_a, **_k: throw(failure))
        error = refused(project, Config(commit=True))
        assert f"cannot start git: {os.strerror(files)}, but commit is on" == error.message
        assert hint in str(error.hint)
        assert 'or set "commit" to false' in str(error.hint)

    @pytest.mark.parametrize(
        ("body", "told"),
        [
            ("kill -SEGV $$", "git version was killed by signal 11"),
            ("exit 3", "git version exited with code 3"),
            ("sleep 1000", "git version was ended after 0.3 s"),
        ],
    )
    def test_git_that_crashes_or_hangs(
        self, body: str, told: str, project: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A git without an answer is one sentence, and leaves no process."""
        program = project.parent / "bin" / "git"
        program.parent.mkdir()
        program.write_text(f"#!/bin/sh\n{body}\n")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
        monkeypatch.setattr("cuggino.preflight.GIT_LIMIT", 0.3 if "sleep" in body else 300.0)
        error = refused(project, Config(commit=True))
        assert f"{told}, but commit is on" == error.message

    @pytest.mark.parametrize(
        ("agent", "sentence"),
        [
            (ScriptedAgent, r"ScriptedAgent is a class: pass an agent, ScriptedAgent\(...\)"),
            (3, "3 is not an agent: make_agent makes one by its name"),
        ],
    )
    def test_what_is_not_an_agent(self, project: Path, agent: Any, sentence: str) -> None:
        """The error says what to pass."""
        with pytest.raises(TypeError, match=sentence):
            Runtime.live(cwd=project, agent=agent)
        with pytest.raises(TypeError, match=sentence):
            Runtime.live(cwd=project).replace(agent=agent)

    def test_no_agent(self, project: Path) -> None:
        """A missing agent program is reported before anything is written."""
        config = Config(agent_path=str(project / "no-claude"))
        before = tree(project)
        with pytest.raises(AgentNotFound) as caught:
            run(Runtime.live(cwd=project, config=config).run(focus="the page"))
        assert before == tree(project)
        assert 2 == caught.value.code

    def test_file_in_place_of_the_workspace(self, project: Path) -> None:
        """A file in place of the workspace is an error for every user."""
        (project / ".cuggino").write_text("")
        error = refused(project)
        assert f"{project.resolve() / '.cuggino'} cannot be written" == error.message

    @pytest.mark.parametrize("place", [".", ".cuggino"])
    def test_folder_without_permission(
        self, project: Path, monkeypatch: pytest.MonkeyPatch, place: str
    ) -> None:
        """A folder that is not writable is an error, also when only the system call reports it."""
        folder = (project / place).resolve()
        folder.mkdir(exist_ok=True)
        allowed = os.access

        def access(path: Any, mode: int, **kwargs: Any) -> bool:
            return Path(path) != folder and allowed(path, mode, **kwargs)

        monkeypatch.setattr(os, "access", access)
        assert f"{folder} cannot be written" == refused(project).message

    def test_a_link_of_the_repository(self, project: Path, tmp_path: Path) -> None:
        """A committed link in the place of the workspace is not written through."""
        repository = GitProject(project)
        (tmp_path / "elsewhere").mkdir()
        (project / ".cuggino").symlink_to(tmp_path / "elsewhere")
        repository.git("add", "--force", ".cuggino")
        error = refused(project)
        assert f".cuggino is a link to {tmp_path / 'elsewhere'}, and part of the repository" == (
            error.message
        )
        assert [] == list((tmp_path / "elsewhere").iterdir())

    def test_broken_configuration(self, project: Path) -> None:
        """An unusable configuration is an error of `live` already."""
        (project / ".cuggino.json").write_text('{"maxIteration": 3}')
        before = tree(project)
        with pytest.raises(ConfigError, match="unknown key"):
            Runtime.live(cwd=project)
        assert before == tree(project)

    @pytest.mark.parametrize("role", ["planning", "implementing", "reviewing"])
    def test_template_with_an_unknown_variable(self, project: Path, role: str) -> None:
        """A template that cannot be rendered is reported before the first agent starts."""
        (project / ".cuggino/prompts").mkdir(parents=True)
        (project / f".cuggino/prompts/{role}.md").write_text("{{focsu}}")
        assert f"{role}.md line 1: unknown variable {{{{focsu}}}}" in refused(project).message
