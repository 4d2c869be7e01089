"""The project manager: an interactive agent session about specifications and backlog."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from cuggino.agents import InteractiveOptions, LlmAgent, RoutedAgent
from cuggino.config import Config, configured_policy
from cuggino.prompts import Prompts
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
        ),
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
