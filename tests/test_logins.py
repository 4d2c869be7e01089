"""The logins of agents: asking their programs, remembering answers, refusing to start."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty, operators as ops

import cuggino
from cuggino import Runtime
from cuggino.agents import Candidate, LlmAgent, LoginCheck, RoutedAgent, SpawnOptions
from cuggino.agents.claude import ClaudeAgent
from cuggino.agents.codex import CodexAgent
from cuggino.config import Config
from cuggino.errors import Interrupted, NotLoggedIn
from cuggino.events import LlmAgentEvent
from cuggino.git import Git
from cuggino.logins import Login, LoginMemory, check_logins, login_answer, logins_of
from cuggino.operators import flow
from cuggino.testing import no_leaks
from cuggino_cli.main import main
from tests.limits import LIMIT

NOW = datetime(2026, 11, 23, 22, tzinfo=UTC)
CLAUDE = '{"loggedIn": %s, "authMethod": "none"}'
IN, OUT = CLAUDE % "true", CLAUDE % "false"

Program = Callable[..., Path]


@pytest.fixture
def program(tmp_path: Path) -> Program:
    """Return a function that writes a program with this answer and records its calls."""

    def write(says: str, code: int = 0, *, name: str = "claude", before: str = "") -> Path:
        path = tmp_path / "bin" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(
            "#!/bin/sh\n"
            'case "$*" in --version) echo "2.1.329 (Claude Code)"; exit;; esac\n'
            f'echo "$PWD $*" >>"{asked(tmp_path)}"\n{before}\n'
            f"cat <<'END'\n{says}\nEND\nexit {code}\n"
        )
        path.chmod(0o755)
        return path

    return write


def asked(folder: Path) -> Path:
    """Return the file with the calls of the program."""
    return folder / "asked"


def calls(folder: Path) -> list[str]:
    """Return the calls of the program, each with its folder."""
    return asked(folder).read_text().splitlines() if asked(folder).exists() else []


def ask(agent: LlmAgent, cwd: Path, memory: LoginMemory | None = None) -> bool | None:
    """Return whether the agent is logged in."""
    found = cuggino.run(logins_of([agent], cwd=cwd, memory=memory or LoginMemory(None)))
    assert found is not None
    return found[0].is_known


class Doubtful(LlmAgent):
    """An agent that runs nothing."""

    def __init__(self, name: str) -> None:
        self.name = name

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        return empty()


class TestAnswers:
    @pytest.mark.parametrize("name", ["ANTHROPIC_API_KEY", "CLAUDE_CODE_OAUTH_TOKEN"])
    def test_a_credential_in_the_environment(
        self, name: str, program: Program, tmp_path: Path
    ) -> None:
        """With a credential in the environment, nothing is asked."""
        agent = ClaudeAgent(path=program(OUT), env={"PATH": "/bin:/usr/bin", name: "key"})
        assert ask(agent, tmp_path)
        assert [] == calls(tmp_path)

    @pytest.mark.parametrize(
        ("says", "code", "expected"),
        [
            (IN, 0, True),
            (OUT, 1, False),
            (f"a warning\n{OUT}", 1, False),
            ('{"type": "system"}\n{"type": "result"}', 0, None),
            ('{"loggedIn": "no"}', 1, None),
            ("[]", 0, None),
            ("error: unknown command 'auth'", 1, None),
            ("", 0, None),
        ],
    )
    def test_claude(
        self, says: str, code: int, expected: bool | None, program: Program, tmp_path: Path
    ) -> None:
        """Only an answer in its own format counts, in a loop and in `doctor` alike."""
        agent = ClaudeAgent(path=program(says, code), env={"PATH": "/usr/bin:/bin"})
        with no_leaks():
            assert expected is ask(agent, tmp_path)
        check = agent.login_check(tmp_path)
        assert check is not None
        assert expected is login_answer(check)
        assert ["/ auth status"] * 2 == calls(tmp_path)

    @pytest.mark.parametrize(
        ("says", "code", "expected"),
        [
            ("Logged in using ChatGPT", 0, True),
            ("WARNING: x\nNot logged in", 1, False),
            ("Not logged in", 0, None),
            ("error: unrecognized subcommand", 2, None),
        ],
    )
    def test_codex(
        self, says: str, code: int, expected: bool | None, program: Program, tmp_path: Path
    ) -> None:
        """Its sentences count, with the matching exit code."""
        path = program(says, code, name="codex")
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        assert expected is ask(CodexAgent(path=path, env=env), tmp_path)

    @pytest.mark.parametrize(
        "settings",
        [
            {"env": {"ANTHROPIC_API_KEY": "x"}},
            {"env": {"CLAUDE_CODE_USE_BEDROCK": "1"}},
            {"apiKeyHelper": "print-key"},
        ],
    )
    def test_claude_with_project_settings(
        self, settings: Mapping[str, object], program: Program, tmp_path: Path
    ) -> None:
        """A login in the project's settings, which the program does not report, is possible."""
        file = tmp_path / ".claude" / "settings.local.json"
        file.parent.mkdir()
        agent = ClaudeAgent(path=program(OUT, 1), env={"PATH": "/usr/bin:/bin"})
        file.write_text('{"env": {"EDITOR": "vi"}, "model": "x"}')
        assert ask(agent, tmp_path) is False
        file.write_text(json.dumps(settings))
        assert ask(agent, tmp_path) is None

    @pytest.mark.parametrize("name", ["OPENAI_API_KEY", "CODEX_API_KEY"])
    def test_codex_with_a_key(self, name: str, program: Program, tmp_path: Path) -> None:
        """A key for one session, which the program does not report, is possible."""
        path = program("Not logged in", 1, name="codex")
        env = {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), name: "x"}
        assert ask(CodexAgent(path=path, env=env), tmp_path) is None

    def test_codex_with_another_provider(self, program: Program, tmp_path: Path) -> None:
        """Another model provider has its own login."""
        path = program("Not logged in", 1, name="codex")
        env = {"PATH": "/usr/bin:/bin", "CODEX_HOME": str(tmp_path)}
        (tmp_path / "config.toml").write_text('model_provider = "mine"\n')
        assert ask(CodexAgent(path=path, env=env), tmp_path) is None

    def test_missing_program(self, tmp_path: Path) -> None:
        """The login of a missing program is unknown; `check` reports it."""
        assert ask(ClaudeAgent(path=tmp_path / "missing"), tmp_path) is None

    def test_agent_without_a_login_command(self, tmp_path: Path) -> None:
        """The login of an agent that reports none is unknown."""
        assert ask(Doubtful("mine"), tmp_path) is None

    def test_late_answer(
        self, program: Program, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A program that does not answer is ended, and its login unknown."""
        monkeypatch.setattr("cuggino.logins.ANSWER_SECONDS", 0.2)
        path = program(OUT, 1, before=f"sleep {LIMIT}")
        agent = ClaudeAgent(path=path, env={"PATH": "/usr/bin:/bin"})
        with no_leaks():
            assert ask(agent, tmp_path) is None
        check = agent.login_check(tmp_path)
        assert check is not None
        assert login_answer(check) is None

    def test_agents_are_asked_together(self, program: Program, tmp_path: Path) -> None:
        """Each program waits until the other one was asked, too."""
        both = f'until [ "$(wc -l <"{asked(tmp_path)}")" -ge 2 ]; do sleep 0.01; done'
        env = {"PATH": "/usr/bin:/bin"}
        agents = [
            ClaudeAgent(path=program(IN, name=name, before=both), env=env) for name in ("a", "b")
        ]
        found = cuggino.run(logins_of([*agents, agents[0]], cwd=tmp_path, memory=LoginMemory(None)))
        assert found is not None
        assert [True, True] == [login.is_known for login in found]


class TestMemory:
    def test_an_hour(self, tmp_path: Path) -> None:
        """An answer holds for an hour, not for a clock that was set back, nor for another key."""
        memory = LoginMemory(tmp_path)
        memory.add("a", NOW)
        assert memory.holds("a", NOW + timedelta(minutes=59))
        assert not memory.holds("a", NOW + timedelta(minutes=60))
        assert not memory.holds("a", NOW - timedelta(minutes=1))
        assert not memory.holds("b", NOW)
        memory.add("b", NOW + timedelta(hours=2))
        assert ["b"] == [path.name for path in (tmp_path / "logins").iterdir()]

    def test_only_positive_answers(self, program: Program, tmp_path: Path) -> None:
        """A positive answer is not asked for again; a negative one is."""
        memory, env = LoginMemory(tmp_path), {"PATH": "/usr/bin:/bin"}
        for says, code, known in ((OUT, 1, False), (OUT, 1, False), (IN, 0, True), (IN, 0, True)):
            path = tmp_path / "bin" / "claude"
            if not path.exists() or says not in path.read_text():
                program(says, code)
            assert known is ask(ClaudeAgent(path=path, env=env), tmp_path, memory)
        assert 3 == len(calls(tmp_path))

    @pytest.mark.parametrize(
        "more",
        [{"HOME": "/elsewhere"}, {"CLAUDE_CONFIG_DIR": "/elsewhere"}, {"ANTHROPIC_API_KEY": "k"}],
    )
    def test_what_decides(self, more: Mapping[str, str], program: Program, tmp_path: Path) -> None:
        """Another home folder, configuration or kind of login is asked again."""
        path, env = program(IN), {"PATH": "/usr/bin:/bin", "HOME": str(tmp_path)}
        keys = {key_of(ClaudeAgent(path=path, env={**env, **given})) for given in ({}, more)}
        assert 2 == len(keys)

    def test_another_version(self, program: Program, tmp_path: Path) -> None:
        """A program that was updated is asked again."""
        env = {"PATH": "/usr/bin:/bin"}
        before = key_of(ClaudeAgent(path=program(IN), env=env))
        assert before != key_of(ClaudeAgent(path=program(IN, before="# new"), env=env))

    def test_no_credential(self, program: Program, tmp_path: Path) -> None:
        """Neither a credential nor its digest decides, and files are empty and private."""
        env = {"PATH": "/usr/bin:/bin", "ANTHROPIC_CUSTOM_HEADERS": "sk-one"}
        agent = ClaudeAgent(path=program(IN), env=env)
        assert ask(agent, tmp_path, LoginMemory(tmp_path)) is True
        (file,) = (tmp_path / "logins").iterdir()
        assert ("", 0o600) == (file.read_text(), file.stat().st_mode & 0o777)
        assert 0o700 == file.parent.stat().st_mode & 0o777
        changed = ClaudeAgent(
            path=tmp_path / "bin/claude", env={**env, "ANTHROPIC_CUSTOM_HEADERS": "two"}
        )
        assert file.name == key_of(changed)

    def test_folder_that_cannot_be_written(self, program: Program, tmp_path: Path) -> None:
        """Nothing is remembered then."""
        (tmp_path / "logins").write_text("a file")
        memory = LoginMemory(tmp_path)
        agent = ClaudeAgent(path=program(IN), env={"PATH": "/usr/bin:/bin"})
        assert [True, True] == [ask(agent, tmp_path, memory) for _ in range(2)]


def key_of(agent: LlmAgent) -> str:
    """Return what the login of the agent is remembered by."""
    check = agent.login_check(Path("/"))
    assert isinstance(check, LoginCheck)
    return check.key


class TestRoles:
    def test_fallback(self) -> None:
        """One agent of a role that may be logged in is enough."""
        one, two, other = (Doubtful(name) for name in ("one", "two", "other"))
        chain = [Candidate(agent=each, name=each.name) for each in (one, two, other)]
        routed = RoutedAgent(chain[:2], {"reviewing": chain[2:]})
        out = Login(one, False, "log in")
        known = [out, Login(two, None), Login(other, True)]
        check_logins(routed, ("planning", "reviewing"), known)
        with pytest.raises(NotLoggedIn, match=r"^one is not logged in$") as caught:
            check_logins(routed, ("planning",), [out, Login(two, False)])
        assert caught.value.hint == "log in; `--no-login-check` starts without asking"
        with pytest.raises(NotLoggedIn, match="other"):
            check_logins(routed, ("planning", "reviewing"), [Login(other, False)])
        check_logins(routed, ("planning",), [Login(other, False)])


LOOPS: Mapping[str, Callable[[Runtime], Observable[Any]]] = {
    "run": lambda runtime: runtime.run(focus="x"),
    "watch": lambda runtime: runtime.watch(),
    "deliver": lambda runtime: runtime.deliver(),
    "loop": lambda runtime: runtime.plan_build(),
}


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project for every loop."""
    folder = tmp_path / "project"
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "a.md").write_text("# A\n")
    (folder / "SPEC.md").write_text("# A\n")
    cuggino.run(flow(lambda: Git(cwd=folder).must("init")))
    return folder


class TestLoops:
    @pytest.mark.parametrize("loop", LOOPS)
    def test_not_logged_in(
        self, loop: str, project: Path, program: Program, tmp_path: Path
    ) -> None:
        """Every loop refuses to start, before anything is written."""
        agent = ClaudeAgent(path=program(OUT, 1), env={"PATH": "/usr/bin:/bin"})
        before = sorted(project.rglob("*"))
        runtime = Runtime.live(cwd=project, agent=agent)
        with no_leaks(), pytest.raises(NotLoggedIn):
            cuggino.run(LOOPS[loop](runtime))
        assert before == sorted(project.rglob("*"))
        assert ["/ auth status"] == calls(tmp_path)

    def test_command(
        self,
        project: Path,
        program: Program,
        tmp_path: Path,
        monkeypatch: pytest.MonkeyPatch,
        capsys: pytest.CaptureFixture[str],
    ) -> None:
        """The command prints one sentence and what to do, and exits with 2."""
        monkeypatch.chdir(project)
        config = {"agentPath": str(program(OUT, 1)), "maxRetries": 0}
        (project / ".cuggino.json").write_text(json.dumps(config))
        assert 2 == main(["run", "--focus", "x"])
        assert (
            "",
            "cuggino: claude is not logged in\n  run `claude auth login`, or set ANTHROPIC_API_KEY;"
            " `--no-login-check` starts without asking\n",
        ) == tuple(capsys.readouterr())
        assert 1 == main(["run", "--focus", "x", "--no-login-check", "--no-sandbox"])
        assert "claude is not logged in" not in capsys.readouterr().err
        assert 1 == sum("auth status" in call for call in calls(tmp_path))

    def test_turned_off(self, project: Path, program: Program, tmp_path: Path) -> None:
        """With `loginCheck` off nothing is asked."""
        agent = ClaudeAgent(path=program(OUT, 1), env={"PATH": "/usr/bin:/bin"})
        config = Config(login_check=False, guard="off", sandbox="off", max_retries=0)
        runtime = Runtime.live(cwd=project, agent=agent, config=config)
        with pytest.raises(cuggino.errors.LoopError):
            cuggino.run(runtime.run(focus="x"))
        assert not any("auth status" in call for call in calls(tmp_path))

    def test_interrupted(self, project: Path, program: Program, tmp_path: Path) -> None:
        """A person who does not want to wait for the answer can interrupt."""
        agent = ClaudeAgent(
            path=program(IN, before=f"sleep {LIMIT}"), env={"PATH": "/usr/bin:/bin"}
        )
        interrupt = cuggino.folders.folder_changes(tmp_path).pipe(
            ops.filter(lambda _: asked(tmp_path).exists())
        )
        runtime = Runtime.live(cwd=project, agent=agent)
        with no_leaks(), pytest.raises(Interrupted):
            cuggino.run(runtime.run(focus="x", interrupt=interrupt))
        assert not (project / ".cuggino").exists()
