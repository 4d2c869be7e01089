"""The project manager: an interactive agent session about specifications and backlog."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cuggino.agents import InteractiveOptions, LlmAgent, RoutedAgent
from cuggino.config import Config, configured_policy
from cuggino.errors import ConfigError
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
