"""What the policies around an agent say, as lines."""

from __future__ import annotations

from typing import NamedTuple

from cuggino.events import (
    AgentFellBack,
    AgentNudged,
    AgentReplaced,
    AgentRetry,
    BudgetWarning,
    NoProgress,
    PolicyEvent,
    QuotaLifted,
    QuotaWaiting,
    RunResumed,
    StageCost,
    Usage,
)
from cuggino_cli.output.durations import format_duration, format_pause
from cuggino_cli.output.theme import Label


class PolicyLine(NamedTuple):
    """The line of a policy's event, and whether it is shown by default or always."""

    label: Label
    text: str
    always: bool = True


def policy_line(event: PolicyEvent) -> PolicyLine | None:
    """The line of the event; None for one that this version does not know."""
    match event:
        case AgentRetry():
            again = f"again in {format_pause(event.retry_in)}"
            of = f"retry {event.attempt} of {event.max_retries}"
            text = f"[Agent] {event.reason.replace('_', ' ')} ({of}, {again}): {event.message}"
            return PolicyLine("warning", text)
        case QuotaWaiting(resets_at=at, remaining=remaining):
            until = f" until {at:%Y-%m-%d %H:%M %Z}".rstrip() if at else ""
            return PolicyLine(
                "warning", f"[Agent] Waiting for the usage limit{until}, {countdown(remaining)}"
            )
        case QuotaLifted(waited=waited):
            return PolicyLine("warning", f"[Agent] Going on after {format_duration(waited)}")
        case BudgetWarning():
            share = f"{event.spent / event.limit:.0%}" if event.limit else "all"
            spent = f"{_amount(event.budget, event.spent)} of {_amount(event.budget, event.limit)}"
            return PolicyLine("warning", f"[Budget] {share} of the {event.budget} spent: {spent}")
        case StageCost():
            return PolicyLine("prose", _cost(event), always=False)
        case AgentNudged(idle=None):
            return PolicyLine("warning", "[Agent] Took too long: its session is gone on with")
        case AgentNudged(idle=float(idle), tool=tool):
            silent = f"silent for {format_duration(idle)}{_while(tool)}"
            return PolicyLine("warning", f"[Agent] {silent}: its session is gone on with")
        case AgentReplaced(idle=None):
            return PolicyLine("warning", "[Agent] Took too long: a fresh agent begins anew")
        case AgentReplaced(idle=float(idle), tool=tool):
            silent = f"silent for {format_duration(idle)}{_while(tool)}"
            return PolicyLine("warning", f"[Agent] {silent}: a fresh agent begins anew")
        case AgentFellBack():
            return PolicyLine("warning", _fallen_back(event))
        case NoProgress():
            return PolicyLine("caution", _standstill(event))
        case RunResumed():
            return PolicyLine("round", _resumed(event))
        case _:
            return None


def _fallen_back(event: AgentFellBack) -> str:
    until = f" until {event.until:%Y-%m-%d %H:%M %Z}".rstrip() if event.until else ""
    what = f"{event.to_agent} takes over from {event.from_agent}"
    role = f" as {event.role}" if event.role else ""
    return f"[Agent] {what}{role} ({event.reason.replace('_', ' ')}{until}): {event.message}"


def countdown(seconds: float) -> str:
    """`2h 5m left`, to the second in the last minutes."""
    return f"{format_duration(seconds)} left"


def format_tokens(usage: Usage) -> str:
    """`12.3k tokens`: input, output and what was written to the cache."""
    total = usage.input_tokens + usage.output_tokens + usage.cache_creation_tokens
    if total < 1000:
        return f"{total} tokens"
    if total < 1_000_000:
        return f"{total / 1000:.1f}k tokens"
    return f"{total / 1_000_000:.2f}M tokens"


def _cost(event: StageCost) -> str:
    name = event.phase.capitalize()
    spent = []
    if event.cost_usd is not None:
        spent.append(f"${event.cost_usd:.4f}")
    if event.usage is not None:
        spent.append(format_tokens(event.usage))
    total = [] if event.total_cost is None else [f"${event.total_cost:.4f}"]
    if event.total_usage is not None:
        total.append(format_tokens(event.total_usage))
    return f"[{name}] Took {', '.join(spent)}; all so far {', '.join(total)}"


def _amount(budget: str, value: float) -> str:
    match budget:
        case "cost":
            return f"${value:.4f}"
        case "tokens":
            return f"{value:.0f} tokens"
        case _:
            return format_duration(value)


def _while(tool: str | None) -> str:
    return f" while {tool} runs" if tool else ""


def _standstill(event: NoProgress) -> str:
    what = "changed nothing" if event.kind == "unchanged" else "came back to the same state"
    then = "planning anew" if event.action == "replan" else "stopping"
    return f"[Loop] No progress: {event.agents} agents in a row {what}; {then}"


def _resumed(event: RunResumed) -> str:
    steps = "1 step" if event.stages == 1 else f"{event.stages} steps"
    return f"[Loop] Going on with run {event.run_id}: {steps} done before"
