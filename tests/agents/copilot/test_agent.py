"""`CopilotAgent`: locating its program, and the session options."""

from __future__ import annotations

import importlib.metadata
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, empty

import cuggino
from cuggino.agents import InteractiveOptions, SpawnOptions
from cuggino.agents.base.stream import Program
from cuggino.agents.copilot import CopilotAgent, agent as module
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import Order
from cuggino.errors import AgentNotFound, GuardNotLive
from cuggino.events import LlmAgentEvent
from cuggino.guard.roles import role_policy

VERSION = "GitHub Copilot CLI 1.0.102.\nRun 'copilot update' to check for updates."


def fake(folder: Path, says: str = VERSION, body: str = "exit 7") -> Path:
    """Write a program that prints its version when asked and otherwise runs `body`."""
    program = folder / "copilot"
    asked = f'if [ "$*" = --version ]; then echo asked >> {folder}/asked; echo "{says}"; exit; fi'
    program.write_text(f"#!/bin/sh\n{asked}\n{body}\n")
    program.chmod(0o755)
    return program


@pytest.fixture
def sdk(monkeypatch: pytest.MonkeyPatch) -> None:
    """Pretend that the SDK is installed."""
    monkeypatch.setattr(importlib.metadata, "version", lambda _name: "1.0.27")


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch, sdk: None) -> list[tuple[Program, Order, Gate]]:
    """Record the options of sessions without starting any."""
    made: list[tuple[Program, Order, Gate]] = []

    def session(
        program: Program, order: Order, gate: Gate, **_: object
    ) -> Observable[LlmAgentEvent]:
        made.append((program, order, gate))
        return empty()

    monkeypatch.setattr(module, "copilot_session", session)
    return made


def spawn(agent: CopilotAgent, cwd: Path, **options: Any) -> None:
    stream = agent.spawn(SpawnOptions(**{"prompt": "Go.", "cwd": cwd, **options}))
    cuggino.run(stream, lambda _event: None)


class TestCheck:
    def test_no_sdk(self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        """A missing or outdated extra is reported with installation advice."""

        def missing(name: str) -> str:
            raise importlib.metadata.PackageNotFoundError(name)

        for version, message in ((missing, "is not installed"), (lambda _n: "0.9", "too old")):
            monkeypatch.setattr(importlib.metadata, "version", version)
            with pytest.raises(AgentNotFound, match=message) as caught:
                CopilotAgent(path=fake(tmp_path)).check()
            assert "pip install 'cuggino[copilot]'" in (caught.value.hint or "")

    def test_a_path_of_the_environment(self, tmp_path: Path, sdk: None) -> None:
        """`COPILOT_CLI_PATH` names the program, unless a path is given."""
        env = {"COPILOT_CLI_PATH": str(fake(tmp_path))}
        assert "1.0.102" == CopilotAgent(env=env).check()
        with pytest.raises(AgentNotFound):
            CopilotAgent(path="/nonexistent/copilot", env=env).check()


class TestOrders:
    def test_session_options(
        self, tmp_path: Path, orders: list[tuple[Program, Order, Gate]]
    ) -> None:
        """Each option reaches the session; the token is fresh and shared with the program."""
        agent = CopilotAgent(path=fake(tmp_path), env={"PATH": "/bin:/usr/bin"})
        for _ in range(2):
            spawn(
                agent,
                tmp_path,
                system_prompt="Be \udc80 kind.",
                session_id="s",
                model="gpt",
                env={"A": "b"},
                mcp_servers={"f": {"command": "x"}},
                allowed_tools=("Bash",),
            )
        (program, order, gate), (_, second, _) = orders
        assert ("Go.", "Be ? kind.", "s", None, "gpt", None) == (
            order.prompt,
            order.system_prompt,
            order.session_id,
            order.resume_session_id,
            order.model,
            order.provider,
        )
        assert order.token != second.token
        assert order.token == program.env["COPILOT_CONNECTION_TOKEN"]
        assert "b" == program.env["A"]
        assert "--headless" in program.argv
        assert "--no-auto-login" not in program.argv
        assert (False, ("Bash",), ("f",), None) == (
            gate.unattended,
            gate.allowed_tools,
            gate.servers,
            gate.guard,
        )

    def test_a_custom_provider(
        self, tmp_path: Path, orders: list[tuple[Program, Order, Gate]]
    ) -> None:
        """The program's variables for a model provider apply to its sessions too."""
        env = {
            "COPILOT_PROVIDER_BASE_URL": "http://x/v1",
            "COPILOT_PROVIDER_TYPE": "azure",
            "COPILOT_PROVIDER_API_KEY": "k",
            "COPILOT_PROVIDER_WIRE_API": "responses",
            "COPILOT_PROVIDER_BEARER_TOKEN": "",
            "COPILOT_PROVIDER_HEADERS": "A: b\\nC: d:e",
            "COPILOT_PROVIDER_MAX_PROMPT_TOKENS": "9000",
            "COPILOT_PROVIDER_MAX_OUTPUT_TOKENS": "many",
            "COPILOT_PROVIDER_AZURE_API_VERSION": "v",
            "COPILOT_MODEL": "mine",
        }
        spawn(CopilotAgent(path=fake(tmp_path), env=env), tmp_path)
        ((program, order, _),) = orders
        assert {
            "type": "azure",
            "base_url": "http://x/v1",
            "api_key": "k",
            "wire_api": "responses",
            "headers": {"A": "b", "C": "d:e"},
            "max_prompt_tokens": 9000,
            "azure": {"api_version": "v"},
        } == order.provider
        assert "mine" == order.model
        assert "--no-auto-login" in program.argv

    def test_a_guard(self, tmp_path: Path, orders: list[tuple[Program, Order, Gate]]) -> None:
        """A guarded program uses the shell of the parser, with no way around it."""
        env = {"PATH": "/bin:/usr/bin", "BASH_ENV": "x", "COPILOT_ALLOW_ALL": "1", "A": "b"}
        policy = role_policy("implementing", project=tmp_path, level="roles")
        spawn(CopilotAgent(path=fake(tmp_path), env=env), tmp_path, guard=policy)
        ((program, _, gate),) = orders
        assert gate.guard is not None
        assert policy.project == gate.guard.policy.project
        assert program.env["COPILOT_BASH_PATH"].endswith("bash")
        assert ("b", None, None) == tuple(
            program.env.get(name) for name in ("A", "BASH_ENV", "COPILOT_ALLOW_ALL")
        )


class TestInteractive:
    def test_the_terminal(self, tmp_path: Path, sdk: None) -> None:
        """The program gets folder, permissions and instructions, which are removed afterwards."""
        body = f"""
        echo "$*" > {tmp_path}/argv
        pwd > {tmp_path}/pwd
        echo $COPILOT_CUSTOM_INSTRUCTIONS_DIRS > {tmp_path}/folder
        cat $COPILOT_CUSTOM_INSTRUCTIONS_DIRS/.github/instructions/* > {tmp_path}/system
        exit 3"""
        agent = CopilotAgent(path=fake(tmp_path, body=body), env={"PATH": "/bin:/usr/bin"})
        work = tmp_path / "work"
        work.mkdir()
        options = InteractiveOptions(
            cwd=work, system_prompt="Be kind.", dangerously_skip_permissions=True
        )
        assert 3 == agent.interactive(options)
        assert "--no-auto-update --allow-all\n" == (tmp_path / "argv").read_text()
        assert f"{work}\n" == (tmp_path / "pwd").read_text()
        assert '---\napplyTo: "**"\n---\nBe kind.\n' == (tmp_path / "system").read_text()
        assert not Path((tmp_path / "folder").read_text().strip()).exists()

    def test_with_a_guard(self, tmp_path: Path, sdk: None) -> None:
        """A guarded interactive session is unsupported and refused before anything starts."""
        agent = CopilotAgent(path=fake(tmp_path), env={})
        policy = role_policy("pm", project=tmp_path, level="roles")
        with pytest.raises(GuardNotLive, match="its own terminal"):
            agent.interactive(InteractiveOptions(cwd=tmp_path, guard=policy))
