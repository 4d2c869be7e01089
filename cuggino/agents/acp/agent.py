"""The agent for any program that implements the Agent Client Protocol."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import ClassVar

from reactivex import Observable

from cuggino.agents.acp.guard import Judge, check_settings
from cuggino.agents.acp.stream import acp_session
from cuggino.agents.acp.wire import AcpSession
from cuggino.agents.base.agent import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.base.calls import load_rules
from cuggino.agents.base.guard import Guard, make_guard
from cuggino.agents.base.private_files import private_file
from cuggino.agents.base.program import ProgramAgent, encodable
from cuggino.agents.base.stream import Program
from cuggino.agents.profiles import Profile
from cuggino.domain import local_zone
from cuggino.errors import AgentFailed
from cuggino.events import LlmAgentEvent
from cuggino.guard import Policy
from cuggino.sandbox import home_of, probe

_LONGEST_ARGUMENT = 100_000
"""Bytes; Linux allows 128 kB."""


class AcpAgent(ProgramAgent):
    """An installed program that implements the Agent Client Protocol, described by its `profile`.

    A session with a `guard` is enforced as described in `acp.guard`. The protocol has no field for
    the reason of a denial, so the reasons are sent in another prompt after the turn. The system
    prompt is prepended to the first prompt, unless the program has an option for it.

    The program chooses the id of a new session (`SessionEnded.session_id`). So `session_id` has no
    effect, and neither do `thinking`, `settings`, `sandbox` and `max_budget_usd`.
    """

    is_trial: ClassVar[bool] = False
    """True if sessions end before their prompt."""
    version_pattern = r"(\d+\.\d+\.\d+)"

    def __init__(
        self,
        profile: Profile,
        *,
        path: str | os.PathLike[str] | None = None,
        env: Mapping[str, str] | None = None,
    ) -> None:
        self.profile = profile
        self.name = f"acp:{profile.name}"
        self.command = profile.command[0]
        self.minimum_version = profile.least
        self.update_hint = profile.install and f"update it with `{profile.install}`"
        self.variables = profile.env
        self.state, self.settings = profile.state, profile.settings
        load_rules()
        super().__init__(path=path, env=env)

    @property
    def capabilities(self) -> Capabilities:
        return Capabilities(
            guard="asked" if self.profile.asks else "none",
            mcp=True,
            resume=True,
            cost=self.profile.cost,
            view=True,
            deltas=True,
            note=self.profile.note,
        )

    def check_guard(self, policy: Policy) -> None:
        self.check()
        guard = make_guard(policy, self.environment)
        check_settings(self.profile, Path(policy.project))
        Judge(cwd=Path(policy.project), unattended=True, guard=guard).try_out()

    def _start(self, options: SpawnOptions, stack: ExitStack) -> Observable[LlmAgentEvent]:
        env = options.environment({**self.environment, **self.variables})
        env |= self._overrides(env, stack)
        enclosure = self.enclosure(options, env, stack)
        guard: Guard | None = None
        is_confined = _is_confined(options, env)
        if options.guard is not None:
            guard = make_guard(options.guard, env)
            env = {**guard.env, "SHELL": guard.env["CLAUDE_CODE_SHELL"]}
            if not is_confined:
                check_settings(self.profile, options.cwd)
        judge = Judge(
            cwd=options.cwd,
            unattended=options.dangerously_skip_permissions,
            guard=guard,
            allowed_tools=options.allowed_tools,
            own_files=self._own_files(env),
        )
        judge.try_out()
        words = self._system_prompt(options.system_prompt or "")
        argv = [self.program, *self.profile.command[1:], *words]
        program = Program(argv=argv, cwd=options.cwd, env=env, enclosure=enclosure)
        session = partial(
            AcpSession,
            self.profile,
            replace(options, system_prompt=None) if words else options,
            judge.verdict,
            zone=lambda: local_zone(env),
            is_confined=is_confined,
            is_trial=self.is_trial,
        )
        return acp_session(program, session, drafts=options.drafts)

    def _overrides(self, env: Mapping[str, str], stack: ExitStack) -> dict[str, str]:
        """Return the variable for the overrides of the profile, unless an administrator has any."""
        profile = self.profile
        name = profile.overrides_variable
        if not name or env.get(name) or os.path.lexists(profile.overrides_file):
            return {}
        text = json.dumps(dict(profile.overrides))
        return {name: str(private_file(text, stack, suffix=".json"))}

    def _own_files(self, env: Mapping[str, str]) -> tuple[str, ...]:
        home = home_of(env)
        if home is None:
            return ()
        return tuple(f"{os.path.realpath(home)}/{name}" for name in self.profile.own_files)

    def _system_prompt(self, text: str) -> list[str]:
        """Return the arguments that append to the system prompt, if the program takes them."""
        option = self.profile.system_prompt
        if not (option and text) or len(text.encode(errors="replace")) > _LONGEST_ARGUMENT:
            return []
        return [f"{option}={encodable(text)}"]

    def _terminal(
        self, options: InteractiveOptions, stack: ExitStack
    ) -> tuple[list[str], Mapping[str, str]]:
        raise AgentFailed(
            f"{self.name} has no interactive session",
            reason="bad_request",
            hint="name another agent, for example `--agent claude`",
        )

    @property
    def _install_hint(self) -> str:
        how = f"install it with `{self.profile.install}`, or " if self.profile.install else ""
        return f'{how}give its path as "agentPath" in .cuggino.json'

    def _ask_version(self) -> str:
        if self.profile.least:
            return super()._ask_version()
        self._find_program()
        return ""


def _is_confined(options: SpawnOptions, env: Mapping[str, str]) -> bool:
    """Return whether the system confines the whole program to what its role may write."""
    view = options.view
    return view is not None and probe(view.project, home=home_of(env)).holds(view.role)
