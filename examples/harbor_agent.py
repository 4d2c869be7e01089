"""cuggino as an agent of Harbor (`pip install harbor`, Python 3.12), which runs benchmarks.

UNPROVEN: written for harbor 0.26.0. Its classes were created and its commands were run on a machine
without a container and with an agent that is played. No benchmark has been run, and no score is
known.

    pip wheel --no-deps -w dist .                    # in the clone of cuggino
    ANTHROPIC_API_KEY=... PYTHONPATH=examples harbor run \\
        --agent harbor_agent:Cuggino --model anthropic/claude-sonnet-4-5 \\
        --ak wheel=dist/cuggino-0.3.0-py3-none-any.whl --path TASK

In the container of each task it installs Claude Code, as Harbor's own agent does, and cuggino. The
instruction of the task becomes the specification, and `cuggino run` works until its reviewer
approves. With `--ak check="make test"` an approval also needs that command. Give the same model to
Harbor's `claude-code` to compare: the difference is what the loop does, and its price is in the
costs of both.
"""

from __future__ import annotations

import json
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from harbor.agents.installed.claude_code import ClaudeCode, ClaudeCodeOptions
from harbor.environments.base import BaseEnvironment
from harbor.models.agent.context import AgentContext
from pydantic import Field

LOG = "cuggino.jsonl"
"""The events of the run, in the folder of the agent's logs."""

_INSTALL = (
    "set -euo pipefail; curl -LsSf https://astral.sh/uv/install.sh | sh; "
    '"$HOME/.local/bin/uv" tool install --python 3.13 {wheel}; "$HOME/.local/bin/cuggino" --version'
)
_RUN = """\
export PATH="$HOME/.local/bin:$PATH"
mkdir -p .specs && printf '%s\\n' "$CUGGINO_TASK" > .specs/task.md && unset CUGGINO_TASK
{setup}
cuggino run 'Do what .specs/task.md asks for.' --json --notify-on '' {options} > {log}
code=$?
cp -r .cuggino/journal {logs}/cuggino-journal
rm -rf .cuggino .cuggino.json .specs/task.md; rmdir .specs 2>/dev/null
case $code in 0 | 1[0-5]) exit 0 ;; *) exit $code ;; esac
"""
"""An end without an approval (10 to 15) is a result, which the task's own tests judge."""


def run_script(*, logs: str, check: str | None, budget: float | None) -> str:
    """Return the commands that work on a task."""
    setup = "cuggino setup --yes"
    if check:
        setup += f" --check-command {shlex.quote(check)} --gate block"
    options = "" if budget is None else f"--budget {budget:g}"
    return _RUN.format(
        setup=f"{setup} >/dev/null || exit", options=options, log=f"{logs}/{LOG}", logs=logs
    )


def totals(lines: Iterable[str]) -> dict[str, Any]:
    """Return what the events of a run say of its end, its cost and its tokens."""
    found: dict[str, Any] = {"iterations": 0}
    for line in lines:
        try:
            event = json.loads(line)
        except ValueError:  # the run was cut off
            continue
        match event:
            case {"_tag": "StageCost", "total_cost": cost, "total_usage": usage}:
                found.update(cost_usd=cost, usage=usage)
            case {"_tag": "IterationStart", "iteration": iteration}:
                found["iterations"] = iteration
            case {"_tag": str(tag)} if tag.startswith("Loop"):
                found["ending"] = tag
            case _:
                pass
    return found


class CugginoOptions(ClaudeCodeOptions):
    """The options that `--ak` sets, besides those of Claude Code."""

    wheel: str = Field(description="The wheel of cuggino on this machine.")
    check: str | None = Field(default=None, description="An approval needs this command to pass.")
    budget: float | None = Field(default=None, description="US dollars of a task.")


class Cuggino(ClaudeCode):
    """`cuggino run` with Claude Code, installed into the container of a task."""

    options_model = CugginoOptions

    @staticmethod
    def name() -> str:
        return "cuggino"

    async def install(self, environment: BaseEnvironment) -> None:
        await super().install(environment)
        wheel = Path(self.options.wheel)
        remote = f"/tmp/{wheel.name}"
        await environment.upload_file(wheel, remote)
        await self.exec_as_agent(environment, command=_INSTALL.format(wheel=shlex.quote(remote)))

    async def run(
        self, instruction: str, environment: BaseEnvironment, context: AgentContext
    ) -> None:
        logs = self.environment_logs_dir.as_posix()
        env = {
            **self._resolve_auth_env(),
            **self._resolved_env_vars,
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
            "CUGGINO_TASK": self.render_instruction(instruction),
            "IS_SANDBOX": "1",
        }
        if model := self._resolved_model_name():
            env["ANTHROPIC_MODEL"] = model
        script = run_script(logs=logs, check=self.options.check, budget=self.options.budget)
        await self.exec_as_agent(environment, command=script, env=env)

    def populate_context_post_run(self, context: AgentContext) -> None:
        log = self.logs_dir / LOG
        if not log.exists():
            return
        with log.open(encoding="utf-8", errors="replace") as lines:
            found = totals(lines)
        context.cost_usd = found.get("cost_usd")
        if usage := found.get("usage"):
            context.n_cache_tokens = usage["cache_read_tokens"]
            context.n_output_tokens = usage["output_tokens"]
            context.n_input_tokens = sum(usage.values()) - usage["output_tokens"]
        context.metadata = {"ending": found.get("ending"), "iterations": found["iterations"]}
