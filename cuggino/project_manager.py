"""The project manager: an agent session about specifications and backlog.

It takes over the terminal, or is resumed with each message of a chat.
"""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from reactivex import operators as ops

from cuggino.agents import InteractiveOptions, LlmAgent, RoutedAgent, SpawnOptions
from cuggino.chat import Post, Talk
from cuggino.config import Config, configured_policy
from cuggino.errors import ConfigError, CugginoError
from cuggino.events import AgentMessage, Event, SessionEnded, ToolCall
from cuggino.operators import Flow, forward
from cuggino.operators.late_imports import import_operators
from cuggino.programs import programs_folder
from cuggino.prompts import Prompts
from cuggino.sandbox import Boundary, RoleView, home_of, probe, role_view
from cuggino.storage import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanSession:
    """A session that is ready to take over the terminal."""

    agent: LlmAgent
    options: InteractiveOptions
    workspace: Workspace

    def run(self) -> int:
        """Run the agent in this terminal until the user leaves; return its exit code.

        A negative code is the signal that ended the agent's program.
        """
        self.workspace.open()
        return self.agent.interactive(self.options)

    def talk(self) -> Talk:
        """Return what answers the messages of a chat: one session, resumed with each of them.

        Raises:
            ConfigError: the agent cannot resume a session.
        """
        if not self.agent.capabilities.resume:
            raise ConfigError(
                f"{self.agent.name} cannot resume a session, so it cannot talk by chat",
                hint="name another agent, for example `--agent claude`",
            )
        self.workspace.open()
        # A message may come when the package has been replaced.
        import_operators()
        programs_folder()
        known: str | None = None

        def talk(text: str, send: Callable[[Post], Flow[None]]) -> Flow[None]:
            nonlocal known
            said: list[str] = []
            tools: Counter[str] = Counter()

            def note(event: Event) -> None:
                nonlocal known
                match event:
                    case AgentMessage(text=part, parent_tool_use_id=None):
                        said.append(part.strip())
                    case ToolCall(name=name):
                        tools[name] += 1
                    case SessionEnded(session_id=str(session)):
                        known = session
                    case _:
                        pass

            spawning = self.agent.spawn(self._spawned(text, known)).pipe(ops.do_action(note))
            try:
                yield from forward(spawning)
            except CugginoError as error:
                said.append(f"Failed: {error.message}")
            if tools:
                counts = (f"{name} ×{n}" if n > 1 else name for name, n in tools.items())
                said.append(f"Tools: {', '.join(counts)}")
            yield from send(Post(text="\n\n".join(filter(None, said)) or "(no answer)"))

        return talk

    def _spawned(self, text: str, known: str | None) -> SpawnOptions:
        """Return the options of the session, which is resumed if it is known."""
        given = self.options
        return SpawnOptions(
            prompt=f"The person writes by chat:\n\n{text}",  # a `/` at its start is no command
            cwd=given.cwd,
            system_prompt=given.system_prompt,
            dangerously_skip_permissions=given.dangerously_skip_permissions,
            session_id=None if known else str(uuid.uuid4()),
            resume_session_id=known,
            env={"CUGGINO_ROLE": "pm"},
            guard=given.guard,
            view=given.view,
            shows=given.shows,
            drafts=False,
        )


def plan_session(project: Path, config: Config, agent: LlmAgent) -> PlanSession:
    """Prepare a session with the project manager.

    Raises:
        AgentNotFound: the agent is missing or too old.
        ConfigError: the sandbox is required, and cannot be enforced.
    """
    if isinstance(agent, RoutedAgent):
        agent = agent.candidates_for(None)[0].agent
    agent.check()
    workspace = Workspace(project)
    return PlanSession(
        agent=agent,
        workspace=workspace,
        options=InteractiveOptions(
            cwd=project,
            system_prompt=_system_prompt(project, config, workspace),
            dangerously_skip_permissions=True,
            guard=configured_policy(config, "pm", project=project),
            view=_view(project, config, agent),
            shows=tuple(config.sandbox_show),
        ),
    )


def _view(project: Path, config: Config, agent: LlmAgent) -> RoleView | None:
    if config.sandbox == "off":
        return None
    home = home_of(os.environ)
    boundary = Boundary(reason=f"{agent.name} cannot be started in a sandbox")
    if agent.capabilities.view:
        boundary = probe(project, home=home)
    if config.sandbox == "require" and not boundary.holds("pm"):
        raise ConfigError(
            f"the sandbox is required, but nothing confines the project manager: {boundary.reason}",
            hint='see `cuggino doctor`, or set "sandbox": "auto"',
        )
    if not boundary.holds("pm"):
        return None
    return role_view(
        "pm",
        project=project,
        specs=config.specs_path,
        hide=config.sandbox_hide,
        show=config.sandbox_show,
    )


def _system_prompt(project: Path, config: Config, workspace: Workspace) -> str:
    variables = {
        "specs_path": config.specs_path,
        "spec_issues_path": os.path.relpath(workspace.spec_issues, project),
        "backlog_path": os.path.relpath(workspace.backlog, project),
        "tbd_path": os.path.relpath(workspace.tbd, project),
        "memory_path": os.path.relpath(workspace.memory, project),
    }
    return Prompts(workspace.prompts).render("pm", variables)
