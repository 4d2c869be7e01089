"""GitHub Copilot, driven through its SDK and its `copilot` program (LOP-110 to LOP-114)."""

from __future__ import annotations

import os
import secrets
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from importlib import metadata
from pathlib import Path
from typing import Any

from reactivex import Observable

from cuggino.agents.base.agent import Capabilities, InteractiveOptions, SpawnOptions
from cuggino.agents.base.calls import load_rules
from cuggino.agents.base.guard import Guard, find_bash, make_guard, with_variables
from cuggino.agents.base.private_files import private_folder
from cuggino.agents.base.program import ProgramAgent, check_version, encodable
from cuggino.agents.base.stream import Program
from cuggino.agents.copilot.guard import Gate
from cuggino.agents.copilot.link import Order
from cuggino.agents.copilot.stream import copilot_session
from cuggino.errors import AgentNotFound
from cuggino.events import LlmAgentEvent
from cuggino.guard import Policy

MINIMUM_SDK = (1, 0, 27)

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

_LOGINS = ("COPILOT_GITHUB_TOKEN", "GH_TOKEN", "GITHUB_TOKEN")
"""Variables that hold the program's login, in its own order; only it reads the first."""

_UNGUARDED_ENV = ("COPILOT_ALLOW_ALL", "BASH_ENV", "ENV")
"""Variables that would allow calls without asking, or run something before each command."""


class CopilotAgent(ProgramAgent):
    """The installed GitHub Copilot CLI, through the GitHub Copilot SDK for Python.

    Without a `path` the program is `COPILOT_CLI_PATH` of the environment, else `copilot`.
    `COPILOT_PROVIDER_*` and `COPILOT_MODEL` name a custom model provider, as they do for the
    program itself.

    Events use Claude Code's tool names (see `copilot.tools`). Tokens are reported, US dollars are
    not, so `max_budget_usd` has no effect; neither do `thinking`, `settings` and `sandbox`.

    Without `dangerously_skip_permissions` the agent reads, and uses `allowed_tools` given by their
    bare names; everything else is denied, as there is no user to ask. It cannot ask the user
    questions. A session with a `guard` is enforced as described in `copilot.guard`: each denied
    call emits one `GuardDenied`.

    A message to a running session moves the command that it waits for to the background, so that
    the model reads the message at once. Both the model and the session are notified when the
    command ends.

    A resumed session works in the folder, and has the system prompt, of the new options.
    """

    name = "copilot"
    command = "copilot"
    package = "@github/copilot"
    minimum_version = (1, 0, 102)
    update_hint = "update it with `copilot update` or through npm"
    # Other programs share the name.
    version_pattern = r"GitHub Copilot CLI (\d+\.\d+\.\d+)"
    mismatch = "is not the GitHub Copilot CLI"
    unguarded_terminal = (
        "GitHub Copilot cannot be guarded in its own terminal: it asks this process alone"
    )

    def __init__(
        self, *, path: str | os.PathLike[str] | None = None, env: Mapping[str, str] | None = None
    ) -> None:
        own = os.environ if env is None else env
        load_rules()
        _load_sdk()
        super().__init__(path=path or own.get("COPILOT_CLI_PATH"), env=env)

    state = (".copilot", ".local/share/copilot", ".local/state/copilot")
    settings = ("config.json", "mcp-config.json", "hooks", "agents", "skills")

    capabilities = Capabilities(
        guard="calls",
        mcp=True,
        resume=True,
        cost="tokens",
        view=True,
        deltas=True,
        messages=True,
        interactive=True,
        note="a session in its own terminal cannot be guarded",
    )

    def check_guard(self, policy: Policy) -> None:
        self.check()
        guard, _ = _guarded(policy, self.environment)
        Gate(cwd=Path(policy.project), unattended=True, guard=guard).try_out()

    def _ask_version(self) -> str:
        _check_sdk()
        return super()._ask_version()

    def _start(self, options: SpawnOptions, stack: ExitStack) -> Observable[LlmAgentEvent]:
        env = options.environment(_with_own_login(self.environment))
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
            messages=options.messages,
        )
        argv = [self.program, *_SERVER, *(["--no-auto-login"] if provider else [])]
        program = Program(
            argv=argv,
            cwd=options.cwd,
            env={**env, "COPILOT_CONNECTION_TOKEN": token},
            enclosure=self.enclosure(options, env, stack),
        )
        return copilot_session(program, order, gate, drafts=options.drafts)

    def _terminal(
        self, options: InteractiveOptions, stack: ExitStack
    ) -> tuple[list[str], Mapping[str, str]]:
        argv, env = [self.program, "--no-auto-update"], _with_own_login(self.environment)
        if options.dangerously_skip_permissions:
            argv.append("--allow-all")
        if options.system_prompt is not None:
            own = str(_instructions(options.system_prompt, stack))
            folders = [env.get("COPILOT_CUSTOM_INSTRUCTIONS_DIRS"), own]
            env["COPILOT_CUSTOM_INSTRUCTIONS_DIRS"] = ",".join(filter(None, folders))
        return argv, env


def _with_own_login(env: Mapping[str, str]) -> dict[str, str]:
    """Return the environment with the program's login in the variable that only it reads."""
    login = next((env[name] for name in _LOGINS if env.get(name)), "")
    return {**env, _LOGINS[0]: login} if login else dict(env)


def _check_sdk() -> None:
    """Check the installed SDK.

    Raises:
        AgentNotFound: it is not installed, or too old.
    """
    hint = "install it with `pip install 'cuggino[copilot]'`"
    try:
        version = metadata.version("github-copilot-sdk")
    except metadata.PackageNotFoundError:
        raise AgentNotFound("the GitHub Copilot SDK is not installed", hint=hint) from None
    check_version(version, name="github-copilot-sdk", least=MINIMUM_SDK, hint=hint)


def _load_sdk() -> None:
    """Import the SDK, whose package may be replaced before the first session of a loop.

    A missing one is reported by `_check_sdk`.
    """
    with suppress(ImportError):
        import copilot  # noqa: F401


def _guarded(policy: Policy, env: Mapping[str, str]) -> tuple[Guard, dict[str, str]]:
    """Return the guard of a session, and the environment it needs.

    Raises:
        GuardNotLive: the parser, or the shell it supports, is not installed.
    """
    guard = make_guard(with_variables(policy, env))
    held = {name: value for name, value in env.items() if name not in _UNGUARDED_ENV}
    chosen = env.get("COPILOT_BASH_PATH", "")
    held["COPILOT_BASH_PATH"] = find_bash({**env, "CLAUDE_CODE_SHELL": chosen})
    return guard, held


def _provider(env: Mapping[str, str]) -> dict[str, Any] | None:
    """Return the model provider of the environment, which the SDK does not read itself."""
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


def _instructions(system_prompt: str, stack: ExitStack) -> Path:
    """Write the system prompt to a private folder in the layout of the program's instructions."""
    root = private_folder(stack)
    folder = root / ".github" / "instructions"
    folder.mkdir(parents=True)
    text = f'---\napplyTo: "**"\n---\n{encodable(system_prompt)}\n'
    (folder / "cuggino.instructions.md").write_text(text, encoding="utf-8")
    return root
