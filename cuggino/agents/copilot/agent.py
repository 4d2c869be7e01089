"""GitHub Copilot, driven through its SDK and its `copilot` program (LOP-110 to LOP-114)."""

from __future__ import annotations

import importlib.metadata
import os
import secrets
import tempfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from reactivex import Observable, defer

from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import Order
from cuggino.agents.copilot.stream import Program, copilot_session
from cuggino.agents.guard import Guard, find_bash, make_guard, with_variables
from cuggino.agents.program import absolute, ask_version, check_version, converse, encodable
from cuggino.agents.protocol import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.errors import AgentNotFound, GuardNotLive
from cuggino.events import LlmAgentEvent
from cuggino.security.policy import Policy

MINIMUM_VERSION = (1, 0, 102)
"""The oldest version of the program that was tried."""

SDK = "github-copilot-sdk"
MINIMUM_SDK = (1, 0, 27)

_INSTALL = (
    "install it with `npm install -g @github/copilot`, "
    'or give its path as "agentPath" in .cuggino.json'
)
_INSTALL_SDK = "install it with `pip install 'cuggino[copilot]'`"

_SERVER = ("--headless", "--no-auto-update", "--log-level", "error", "--port", "0")

_PROVIDER = {
    "wire_api": "COPILOT_PROVIDER_WIRE_API",
    "transport": "COPILOT_PROVIDER_TRANSPORT",
    "api_key": "COPILOT_PROVIDER_API_KEY",
    "api_key_command": "COPILOT_PROVIDER_API_KEY_COMMAND",
    "bearer_token": "COPILOT_PROVIDER_BEARER_TOKEN",
    "model_id": "COPILOT_PROVIDER_MODEL_ID",
    "wire_model": "COPILOT_PROVIDER_WIRE_MODEL",
}
"""The user's model provider: the SDK's names, and the variables of the program."""

_UNGUARDED_ENV = ("COPILOT_ALLOW_ALL", "BASH_ENV", "ENV")
"""Variables that would let calls pass unasked, or run something in front of each command."""

_NO_TERMINAL = (
    "GitHub Copilot cannot be held to a policy in its own terminal: it asks this process alone"
)


class CopilotAgent:
    """The installed GitHub Copilot CLI, by the GitHub Copilot SDK for Python.

    `path` is the program, looked up on PATH when it is a bare name; any other path is that of the
    present working directory. `env` replaces the whole environment that the program gets, which is
    otherwise that of this process; there `COPILOT_CLI_PATH` counts when `path` is not given, and
    `COPILOT_PROVIDER_*` with `COPILOT_MODEL` name a model provider of one's own, as they do for the
    program itself.
    """

    name = "copilot"
    can_resume = True

    def __init__(
        self, *, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        self._env = env
        self._path = absolute(path or self.environment.get("COPILOT_CLI_PATH", "copilot"))
        self._version: str | None = None

    @property
    def capabilities(self) -> Capabilities:
        """See `DescribedAgent.capabilities`."""
        return Capabilities(
            guard="calls",
            mcp=True,
            resume=True,
            cost="tokens",
            deltas=True,
            interactive=True,
            note="a session in its own terminal cannot be guarded",
        )

    def check(self) -> str:
        """The version of the installed program; it is asked once."""
        if self._version is None:
            _check_sdk()
            self._version = ask_version(
                self._path,
                name=self.name,
                # Other programs bear the name as well.
                pattern=r"GitHub Copilot CLI (\d+\.\d+\.\d+)",
                stranger="is not the GitHub Copilot CLI",
                least=MINIMUM_VERSION,
                env=self.environment,
                install=_INSTALL,
                update="update it with `copilot update` or through npm",
            )
        return self._version

    def check_guard(self, policy: Policy) -> None:
        """See `GuardedAgent.check_guard`."""
        self.check()
        guard, _ = _guarded(policy, self.environment)
        Gate(cwd=Path(policy.project), unattended=True, guard=guard).try_out()

    def spawn(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        """Run one session; see `LlmAgent.spawn`.

        Events name tools as Claude Code does (see `copilot.tools`). Tokens are told, US dollars are
        not, so `max_budget_usd` has no effect; nor have `thinking`, `settings` and `sandbox`.

        Without `dangerously_skip_permissions` the agent reads, and uses `allowed_tools` given by
        their bare names; all else is denied, as nobody is there to be asked. It cannot ask the user
        questions. A session with a `guard` is held to it as `copilot.guard` tells: each call that
        is denied gives one `GuardDenied`.

        A resumed session works in the folder, and has the system prompt, that are given now.
        """
        return defer(lambda _scheduler: self._start(options))

    def _start(self, options: SpawnOptions) -> Observable[LlmAgentEvent]:
        self.check()
        env = {**self.environment, **options.env}
        guard: Guard | None = None
        if options.guard is not None:
            guard, env = _guarded(options.guard, env)
        gate = Gate(
            cwd=options.cwd,
            unattended=options.dangerously_skip_permissions,
            guard=guard,
            allowed_tools=options.allowed_tools,
            servers=tuple(options.mcp_servers),
            temp=env.get("TMPDIR") or "/tmp",
        )
        gate.try_out()
        provider = _provider(env)
        token = secrets.token_hex(32)
        order = Order(
            prompt=encodable(options.prompt),
            cwd=options.cwd,
            token=token,
            system_prompt=encodable(options.system_prompt) if options.system_prompt else None,
            session_id=options.session_id,
            resume_session_id=options.resume_session_id,
            model=options.model or env.get("COPILOT_MODEL") or None,
            provider=provider,
            mcp_servers=options.mcp_servers,
        )
        argv = [self._path, *_SERVER, *(["--no-auto-login"] if provider else [])]
        program = Program(
            argv=argv, cwd=options.cwd, env={**env, "COPILOT_CONNECTION_TOKEN": token}
        )
        return copilot_session(program, order, gate)

    def interactive(self, options: InteractiveOptions) -> int:
        """Hand the terminal to the program until the person leaves it; gives its exit code.

        The system prompt goes to a private folder of instructions, which is removed at the end.

        Raises:
            GuardNotLive: a policy is given, which the program cannot be held to there.
        """
        self.check()
        if options.guard is not None:
            raise GuardNotLive(_NO_TERMINAL, hint='use claude, or set "guard": "off"')
        argv, env = [self._path, "--no-auto-update"], dict(self.environment)
        if options.dangerously_skip_permissions:
            argv.append("--allow-all")
        with _instructions(options.system_prompt) as folder:
            if folder is not None:
                folders = [env.get("COPILOT_CUSTOM_INSTRUCTIONS_DIRS"), str(folder)]
                env["COPILOT_CUSTOM_INSTRUCTIONS_DIRS"] = ",".join(filter(None, folders))
            return converse(argv, cwd=options.cwd, env=env)

    @property
    def environment(self) -> Mapping[str, str]:
        """See `InstalledAgent.environment`."""
        return os.environ if self._env is None else self._env


def _check_sdk() -> None:
    try:
        version = importlib.metadata.version(SDK)
    except importlib.metadata.PackageNotFoundError:
        raise AgentNotFound("the GitHub Copilot SDK is not installed", hint=_INSTALL_SDK) from None
    check_version(version, name=SDK, least=MINIMUM_SDK, hint=_INSTALL_SDK)


def _guarded(policy: Policy, env: Mapping[str, str]) -> tuple[Guard, dict[str, str]]:
    """What holds a session to the policy, and the environment that goes with it.

    Raises:
        GuardNotLive: the parser, or the shell that it understands, is not installed.
    """
    guard = make_guard(with_variables(policy, env))
    held = {name: value for name, value in env.items() if name not in _UNGUARDED_ENV}
    chosen = env.get("COPILOT_BASH_PATH", "")
    held["COPILOT_BASH_PATH"] = find_bash({**env, "CLAUDE_CODE_SHELL": chosen})
    return guard, held


def _provider(env: Mapping[str, str]) -> dict[str, Any] | None:
    """The model provider that the environment names; the SDK does not look there itself."""
    base_url = env.get("COPILOT_PROVIDER_BASE_URL")
    if not base_url:
        return None
    given: dict[str, Any] = {key: env[name] for key, name in _PROVIDER.items() if env.get(name)}
    for key in ("max_prompt_tokens", "max_output_tokens"):
        if (told := env.get(f"COPILOT_PROVIDER_{key.upper()}", "")).isdecimal():
            given[key] = int(told)
    lines = env.get("COPILOT_PROVIDER_HEADERS", "").replace("\\n", "\n").splitlines()
    headers = [line.partition(":") for line in lines if ":" in line]
    if headers:
        given["headers"] = {name.strip(): value.strip() for name, _, value in headers}
    if version := env.get("COPILOT_PROVIDER_AZURE_API_VERSION"):
        given["azure"] = {"api_version": version}
    return {"type": env.get("COPILOT_PROVIDER_TYPE") or "openai", "base_url": base_url, **given}


@contextmanager
def _instructions(system_prompt: str | None) -> Iterator[Path | None]:
    """A private folder with the system prompt, as the program reads instructions."""
    if system_prompt is None:
        yield None
        return
    with tempfile.TemporaryDirectory(prefix="cuggino-") as name:
        folder = Path(name) / ".github" / "instructions"
        folder.mkdir(parents=True)
        text = f'---\napplyTo: "**"\n---\n{encodable(system_prompt)}\n'
        (folder / "cuggino.instructions.md").write_text(text, encoding="utf-8")
        yield Path(name)
