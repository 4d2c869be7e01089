"""The sessions of a scenario for the scripted agent of cuggino."""

from __future__ import annotations

import json
from typing import assert_never

from tests.behavior.scenarios import RESETS_IN, USD, Act, Scenario


def scenario_toml(scenario: Scenario) -> str:
    """Return the sessions of all roles for the scripted agent."""
    plan = '{ write = "$CUGGINO_PLAN_FILE", text = "# Plan\\n" }'
    parts = ["repeat = true"]
    planned = _table(plan, '{ say = "<PLAN_COMPLETE>One task</PLAN_COMPLETE>" }')
    parts.append(f"[[planning]]\ncost_usd = {USD}\nsteps = {planned}")
    acts = scenario.acts
    for act, later in zip(acts, (*acts[1:], acts[-1]), strict=True):
        parts.append(f"[[implementing]]\ncost_usd = {USD}\nsteps = {_steps(act)}")
        if act.ends != "result":
            parts.append(f"resumed = {_steps(later)}")
        elif act.says in ("nothing", "quote"):
            again = "Well." if act.says == "nothing" else "Not yet."
            parts.append(f'reminder = [{{ say = "{again}" }}]')
    if scenario.review == "approves":
        steps = '[{ say = "<APPROVED>fine</APPROVED>" }]'
        parts.append(f"[[reviewing]]\ncost_usd = {USD}\nsteps = {steps}")
    else:
        for number in range(1, 12):
            finding = f"- `file{number}.txt`: there might be one more problem of kind {number}\\n"
            steps = _table(
                f'{{ write = "$CUGGINO_REVIEW_FILE", text = "{finding}" }}',
                f'{{ say = "<REQUEST_CHANGES>one more problem {number}</REQUEST_CHANGES>" }}',
            )
            parts.append(f"[[reviewing]]\ncost_usd = {USD}\nsteps = {steps}")
    return "\n".join(parts) + "\n"


def _table(*steps: str) -> str:
    return f"[{', '.join(steps)}]"


def _steps(act: Act) -> str:
    limited = '{ fail = { status = 429, text = "You\'ve hit your limit" } }'
    run = f"{{ run = {json.dumps(act.command)} }}"
    match act.ends:
        case "result":
            return _table(run, f"{{ say = {json.dumps(_marker(act))} }}")
        case "crash":
            return _table("{ exit = 1 }")
        case "half JSON":
            return _table('{ raw = \'{"type": "assistant", "mes\' }', "{ exit = 0 }")
        case "hang":
            return _table("{ sleep = 3600.0 }")
        case "429":
            return _table(limited)
        case "quota":
            lifted = f"{{ limit = {{ status = 'rejected', resets_in = {RESETS_IN}.0 }} }}"
            return _table(lifted, limited)
        case "529":
            return _table(
                "{ fail = { status = 529, error = 'overloaded_error', text = 'API Error: 529' } }"
            )
        case _ as never:
            assert_never(never)


def _marker(act: Act) -> str:
    match act.says:
        case "done":
            return "<DONE>all of it</DONE>"
        case "more":
            return "<PROGRESS>more to do</PROGRESS>"
        case "quote":
            return "I will end with\n```\n<DONE>all of it</DONE>\n```\nonce it is done."
        case "nothing":
            return "That is that."
        case _ as never:
            assert_never(never)
