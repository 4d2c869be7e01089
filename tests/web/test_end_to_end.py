"""A person at the page: adds an item, watches it, messages the agent, answers a question."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from playwright.sync_api import Page as Tab, expect

from cuggino.agents.scripted.scenario import Scenario
from cuggino.storage import Backlog, Workspace, list_journals
from tests.git_project import isolate_git
from tests.limits import LIMIT
from tests.loops.real_watch import Watch, WatchProject
from tests.loops.scenario_model import scenario_model
from tests.model_server import ModelServer
from tests.real_claude import clean_env
from tests.web.chromium import Chromium
from tests.web.server import page

TOLD = "Sort the orders by day, please"
ANSWER = "No PDF: invoices are HTML."


def two_items(gate: Path) -> Scenario:
    """An item whose planner waits until `gate` exists, and one with a question."""
    wait = f"while [ ! -e '{gate}' ]; do sleep 0.1; done; echo opened"
    plan = "# Plan\n\n## Task 1: {}\n\n- [ ] write it\n"
    planned = {"say": "<PLAN_COMPLETE>One task.</PLAN_COMPLETE>"}
    approved = {"steps": [{"say": "<APPROVED>As specified.</APPROVED>"}]}
    question = "# Which of the two gives way?\n\nPDF, or no new dependency?"
    return Scenario.model_validate(
        {
            "planning": [
                {
                    "steps": [
                        {"say": "I look at the **orders** first."},
                        {"run": wait},
                        {"write": "$CUGGINO_PLAN_FILE", "text": plan.format("List the orders")},
                        planned,
                    ]
                },
                {"steps": [{"say": f"<SPEC_ISSUE>{question}</SPEC_ISSUE>"}]},
                {
                    "steps": [
                        {"run": "cat .specs/decisions.md"},
                        {"write": "$CUGGINO_PLAN_FILE", "text": plan.format("Invoices as HTML")},
                        planned,
                    ]
                },
            ],
            "implementing": [
                {
                    "steps": [
                        {"write": "orders.txt", "text": "orders\n"},
                        {"say": "<DONE>List the orders</DONE>"},
                    ]
                },
                {
                    "steps": [
                        {"write": "invoices.txt", "text": "invoices\n"},
                        {"say": "<DONE>Write invoices as HTML</DONE>"},
                    ]
                },
            ],
            "reviewing": [approved, approved],
        }
    )


def events_of(workspace: Workspace, tag: str) -> list[dict[str, object]]:
    """Return the events with this tag in all journals."""
    lines = [
        json.loads(line)["event"]
        for path in list_journals(workspace.journal)
        for line in path.read_text().splitlines()
    ]
    return [event for event in lines if event["_tag"] == tag]


def add(tab: Tab, title: str, text: str) -> None:
    """Add an item with the form of the overview."""
    tab.get_by_text("Add an item").click()
    tab.get_by_label("Title").fill(title)
    tab.get_by_label("What is to be achieved").fill(text)
    tab.get_by_role("button", name="Add to the backlog").click()


def at_the_page(
    project: WatchProject, chromium: Chromium, url: str, *, open_gate: Callable[[], object]
) -> None:
    """Work with the page while a watch runs."""
    tab = chromium.tab(url)
    add(tab, "Order history", "As in `.specs/words.md`.")
    working = tab.locator(".column.working")
    expect(working).to_contain_text("Order history")
    working.locator("a[href*='/runs/']").click()

    # The run, live: nothing of what follows reloads the page.
    tab.evaluate("window.same = true")
    expect(tab.locator("#head")).to_contain_text("planning")
    expect(tab.locator("#stages")).to_contain_text("I look at the orders first.")
    expect(tab.locator("#now")).to_contain_text("Bash")
    tab.get_by_label("Message to the agent").fill(TOLD)
    tab.get_by_role("button", name="Send").click()
    tab.wait_for_function("!window.same")  # the form loads the page again
    expect(tab.locator("#stages")).to_contain_text("I look at the orders first.")
    tab.evaluate("window.same = true")
    tool = tab.locator("#stages details.tool", has_text="sleep 0.1")
    tool.locator("summary").click()
    open_gate()
    expect(tool).to_contain_text("opened")
    expect(tool).to_have_attribute("open", "")
    expect(tab.locator("#p-plan")).to_contain_text("List the orders")
    expect(tab.locator("#p-commits")).to_contain_text("List the orders")
    expect(tab.locator("#head")).to_contain_text("approved")
    assert tab.evaluate("window.same") is True
    assert 1 <= tab.locator("#p-timeline rect").count()
    commit = tab.locator("#p-commits details")
    commit.locator("summary").click()
    expect(commit).to_contain_text("orders.txt")
    expect(commit.locator(".a")).to_contain_text("+orders")

    # A question, and its answer.
    tab.goto(url)
    expect(tab.locator(".column.done")).to_contain_text("Order history")
    add(tab, "Invoices in PDF", "As in the specification.")
    waits = tab.locator(".card.waits")
    expect(waits).to_contain_text("Question of Invoices in PDF: Which of the two gives way?")
    expect(tab.locator(".column.asking")).to_contain_text("Invoices in PDF")
    waits.get_by_role("link", name="More").click()
    tab.get_by_label("Your answer").fill(ANSWER)
    tab.get_by_role("button", name="Answer, and go on").click()
    expect(tab.locator(".column.done")).to_contain_text("Invoices in PDF")
    expect(tab.locator(".card.waits")).to_have_count(0)
    expect(tab.locator("#state")).to_contain_text("at work")  # the watch, idle

    assert ["Begin", "List the orders", "Write invoices as HTML"] == project.subjects
    decided = (project.folder / ".specs" / "decisions.md").read_text()
    assert decided.endswith(f"\n\n{ANSWER}\n")
    assert "> # Which of the two gives way?\n" in decided
    assert [] == project.workspace.issues()
    assert [] == Backlog(project.workspace).items()
    for tag in ("SteerAsked", "Steered"):
        assert {TOLD} == {event["text"] for event in events_of(project.workspace, tag)}

    tab.get_by_role("button", name="Stop after stage").click()
    expect(tab.get_by_role("heading", name="Stop after this stage?")).to_be_visible()
    tab.get_by_role("button", name="Stop after this stage").click()
    expect(tab.locator("#state")).to_contain_text("nothing runs")
    assert [] == chromium.console
    assert [] == chromium.violations(tab)


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder with its own state folder, out of reach of git's configuration."""
    isolate_git(monkeypatch, tmp_path.resolve() / "home")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path.resolve() / "state"))
    return tmp_path.resolve()


def test_with_the_scripted_agent(place: Path, chromium: Chromium) -> None:
    """An item is added, watched and steered on the page, and a question answered; both land."""
    project = WatchProject(place, journal=True)
    scenario = place / "scenario.toml"
    scenario.write_text(_toml(two_items(place / "gate")))
    agent = ("--agent", f"scripted:{scenario}")
    with Watch(project, *agent) as watch, page(project.folder) as served:
        watch.until("WatchBacklogWaiting")
        at_the_page(
            project, chromium, served.server.url, open_gate=lambda: (place / "gate").touch()
        )
        watch.process.wait(LIMIT)


@pytest.mark.real_agent
def test_with_claude_code(place: Path, chromium: Chromium, claude_cli: Path) -> None:
    """The same with Claude Code, whose model plays the scenario."""
    project = WatchProject(place, journal=True, agent_path=str(claude_cli))
    model = scenario_model(two_items(place / "gate"), project.folder)
    with ModelServer(model) as server:
        env = {
            **clean_env(place / "home", server.url),
            **{name: value for name, value in os.environ.items() if name.startswith("GIT_")},
            "CUGGINO_PYTHON": sys.executable,
            "XDG_STATE_HOME": os.environ["XDG_STATE_HOME"],
        }
        with Watch(project, env=env) as watch, page(project.folder) as served:
            watch.until("WatchBacklogWaiting")
            at_the_page(
                project, chromium, served.server.url, open_gate=lambda: (place / "gate").touch()
            )
            watch.process.wait(LIMIT)
        asked = "\n".join(request.messages_text for request in server.requests)
    assert TOLD in asked
    assert ANSWER in asked


def _toml(scenario: Scenario) -> str:
    lines: list[str] = []
    for role in ("planning", "implementing", "reviewing"):
        for run in scenario.runs(role):
            lines.append(f"[[{role}]]")
            for step in run.steps:
                lines.append(f"[[{role}.steps]]")
                said = step.model_dump(exclude_defaults=True)
                lines += [f"{key} = {json.dumps(value)}" for key, value in said.items()]
    return "\n".join(lines)
