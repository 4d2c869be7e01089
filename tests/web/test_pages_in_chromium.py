"""The pages in a real browser: hostile texts, phones, the keyboard, and what stays."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page as Tab, expect

from cuggino import events as ev
from cuggino.storage import Backlog, Workspace, new_run_id
from cuggino.storage.journal import Journal
from tests.report.hostile import BAD, MARKDOWN
from tests.type_sizes import NARROWEST, SMALLEST
from tests.web.chromium import Chromium
from tests.web.server import Page

EVIL = """
() => {
  const base = document.documentElement.dataset.base || location.pathname.split("/p/")[0];
  const found = [];
  for (const one of document.querySelectorAll("*")) {
    for (const { name } of one.attributes) {
      if (name.startsWith("on") || name === "style") found.push(`${one.localName} ${name}`);
    }
  }
  for (const one of document.querySelectorAll("script, iframe, img, object, embed, base, style")) {
    if (!(one.src || "").startsWith(location.origin + base)) found.push(one.outerHTML);
  }
  for (const one of document.querySelectorAll("a[href]")) {
    const href = one.getAttribute("href");
    const ours = href.startsWith(base + "/") || href.startsWith("#") || href === "";
    const out = /^https?:\\/\\//.test(href) && (one.rel || "").includes("noreferrer");
    if (!ours && !out) found.push(one.outerHTML);
  }
  for (const one of document.querySelectorAll("form")) {
    if (!one.getAttribute("action").startsWith(base + "/")) found.push(one.outerHTML);
  }
  return found;
}
"""
"""What an attacker would have put into the page."""


class Run:
    """A run whose journal the test writes."""

    def __init__(self, project: Path, **fields: Any) -> None:
        given = {"run_id": new_run_id(), "kind": "run", "command": "cuggino run", **fields}
        started = ev.RunStarted.model_validate(given)
        folder = Workspace(project).journal
        self.journal = Journal.create(folder, started, at=datetime.now(UTC), sync=False)
        self.id = started.run_id

    def add(self, *events: ev.Event, stage: str | None = None) -> None:
        for event in events:
            self.journal.append(event, at=datetime.now(UTC), stage=stage)


@pytest.fixture
def project(tmp_path: Path) -> Path:
    folder = tmp_path / "shop"
    (folder / ".specs").mkdir(parents=True)
    Workspace(folder).open()
    return folder


@pytest.fixture
def run(project: Path) -> Iterator[Run]:
    """A run at its first task, whose process is this one."""
    with Workspace(project).lock(command="cuggino watch"):
        made = Run(project, focus="# Login page", item=None)
        made.add(ev.IterationStart(iteration=1, max_iterations=3))
        plan = "# Plan\n\n## Task 1: The form\n\n## Task 2: The cookie\n"
        made.add(ev.PlanWritten(iteration=1, text=plan), ev.ImplementingStart(iteration=1))
        made.add(ev.StageStarted(name="implementing"), stage="implementing#1")
        yield made
        made.journal.close()


def url(served: Page, *parts: str) -> str:
    return served.origin + served.server.app.site.url("p", "shop", *parts)


def test_hostile_texts(served: Page, project: Path, chromium: Chromium) -> None:
    """No text of an agent, an item, an issue or a file name becomes markup, on any page."""
    workspace, backlog = Workspace(project), Backlog(Workspace(project))
    (project / ".specs" / '<img src=x onerror=alert(1)>"x.md').write_text("x")
    vectors = [*MARKDOWN, BAD.replace("\ud800", "").replace("\x00", "")]
    assert 40 <= len(vectors)
    for number, text in enumerate(vectors):
        title = text.splitlines()[0][:190]
        backlog.add(title, text)
        workspace.write_tbd_item(f"{title}\n\n{text}")
        if number % 8 == 0:
            workspace.write_spec_issue(text)
            backlog.park(backlog.items()[0], text)
    name = "<img src=x onerror=alert(1)>\"'.md"
    (workspace.backlog / name).write_text("named so")
    run = Run(project, focus=f"# {BAD}", item=f"{name} 1", agent=BAD)
    run.add(ev.IterationStart(iteration=1, max_iterations=3))
    run.add(ev.PlanWritten(iteration=1, text="".join(f"## Task 1: {one}\n" for one in vectors)))
    run.add(ev.StageStarted(name="implementing"), stage="implementing#1")
    for number, text in enumerate(vectors):
        call = str(number)
        run.add(
            ev.AgentMessage(text=text),
            ev.Thinking(text=text),
            ev.Steered(text=text, to="session"),
            ev.ToolCall(name=text, id=call, input={"command": text, text: text}),
            ev.ToolResult(name=call, output=text, is_error=bool(number % 2)),
            stage="implementing#1",
        )
    run.add(ev.CommitPerformed(iteration=1, commit_hash="abc1234", message=BAD))
    run.add(ev.RequestChanges(content=BAD))
    run.add(ev.CheckCommandStarted(iteration=1, command=BAD), stage="check#1")
    run.add(ev.CheckCommandOutput(iteration=1, output=BAD, exit_code=1), stage="check#1")
    run.journal.close()
    issue = workspace.issues()[0].name
    item = backlog.items()[-1]
    pages = [
        served.server.url,
        url(served, "runs", run.id),
        url(served, "items", name),
        url(served, "items", item),
        url(served, "questions", issue),
        url(served, "specs", '<img src=x onerror=alert(1)>"x.md'),
        url(served, "runs", run.id, "commit", "abc1234"),
    ]
    for address in pages:
        tab = chromium.tab(init="window.alert = () => { window.alerted = true; };")
        tab.on("dialog", lambda dialog: pytest.fail(dialog.message))
        answer = tab.goto(address)
        assert answer is not None and answer.ok, address
        for folded in tab.locator("details:not([open]) > summary").all()[:60]:
            if folded.is_visible():
                folded.click()
        assert [] == tab.evaluate(EVIL), address
        assert [] == chromium.violations(tab), address
        assert tab.evaluate("window.alerted") is None
        assert "owned" not in tab.title().split("<")[0]
        tab.close()
    assert [] == chromium.console


def test_what_is_used_is_not_replaced(served: Page, run: Run, chromium: Chromium) -> None:
    """Half-typed text, the focus, and unfolded parts survive all updates."""
    call = ev.ToolCall(name="Bash", id="1", input={"command": "make test"})
    run.add(ev.AgentMessage(text="I begin."), call, stage="implementing#1")
    tab = chromium.tab(served.server.url)
    tab.goto(url(served, "runs", run.id))
    expect(tab.locator("#stages")).to_contain_text("I begin.")
    steer = tab.get_by_label("Message to the agent")
    steer.fill("half a sen")
    tool = tab.locator("details.tool")
    tool.locator("summary").click()
    tab.get_by_text("The whole plan").click()
    steer.focus()
    run.add(ev.ToolResult(name="1", output="3 passed", is_error=False), stage="implementing#1")
    run.add(ev.AgentMessage(text="**All** pass."), stage="implementing#1")
    run.add(ev.PlanWritten(iteration=1, text="# Plan\n\n## Task 1: Another form\n"))
    expect(tool).to_contain_text("3 passed")
    expect(tab.locator("#p-plan")).to_contain_text("Another form")
    expect(tab.locator("#stages strong")).to_have_text("All")
    expect(tab.locator("#now")).to_contain_text("All pass.")
    expect(tool).to_have_attribute("open", "")
    expect(tab.locator("#p-plan details").first).to_have_attribute("open", "")
    expect(steer).to_have_value("half a sen")
    expect(steer).to_be_focused()
    assert [] == chromium.console
    assert [] == chromium.violations(tab)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [390, 1280])
def test_widths_and_schemes(
    served: Page, project: Path, run: Run, chromium: Chromium, width: int, scheme: Any
) -> None:
    """Nothing is wider than the screen, and all text contrasts with its background."""
    workspace = Workspace(project)
    Backlog(workspace).add("A title " + "that goes on and on " * 8, "x" * 400)
    issue = workspace.write_spec_issue("# Which?\n\n" + "long" * 200)
    run.add(ev.AgentMessage(text="x" * 500 + "\n\n    " + "code " * 80), stage="implementing#1")
    run.add(ev.CheckCommandOutput(iteration=1, output="y" * 900, exit_code=1), stage="check#1")
    tab = chromium.tab(served.server.url)
    tab.set_viewport_size({"width": width, "height": 844})
    tab.emulate_media(color_scheme=scheme)
    item = Backlog(workspace).items()[0]
    for address in (
        url(served).removesuffix("p/shop"),
        url(served, "runs", run.id),
        url(served, "items", item),
        url(served, "questions", issue),
        url(served, "control") + "?do=stop",
    ):
        answer = tab.goto(address)
        assert answer is not None and answer.ok, address
        assert width >= tab.evaluate("document.documentElement.scrollWidth"), address
        assert [] == tab.evaluate(CONTRAST), address
        assert 11 <= tab.evaluate(SMALLEST), address


@pytest.mark.parametrize("width", [390, 1280])
def test_a_watch_has_no_rail(served: Page, project: Path, chromium: Chromium, width: int) -> None:
    """A page without a plan has the whole width, also once it has ended."""
    run = Run(project, kind="watch", command="cuggino watch")
    run.add(ev.WatchProcessingItem(filename="1.md", title="Login", position=1, total=1))
    tab = chromium.tab(served.server.url)
    tab.set_viewport_size({"width": width, "height": 844})
    tab.goto(url(served, "runs", run.id))
    assert 340 < tab.evaluate(NARROWEST)
    run.add(ev.RunEnded(state="interrupted"))
    run.journal.close()
    expect(tab.locator(".verdict")).to_be_visible()
    assert 340 < tab.evaluate(NARROWEST)


CONTRAST = """
() => {
  const numbers = (color) => color.match(/[\\d.]+/g).map(Number);
  const light = ([r, g, b]) => {
    const [x, y, z] = [r, g, b].map((c) => c / 255)
      .map((c) => (c <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4));
    return 0.2126 * x + 0.7152 * y + 0.0722 * z;
  };
  const behind = (one) => {
    for (let at = one; at; at = at.parentElement) {
      const color = numbers(getComputedStyle(at).backgroundColor);
      if (color.length < 4 || color[3] > 0.5) return color;
    }
    return [255, 255, 255];
  };
  const weak = [];
  for (const one of document.querySelectorAll("main *, header *")) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || one.closest("svg, :disabled, .sr") || !one.checkVisibility()) continue;
    const [a, b] = [light(numbers(getComputedStyle(one).color)), light(behind(one))];
    const ratio = (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05);
    if (ratio < 4.5) weak.push(`${one.localName}.${one.className} ${ratio.toFixed(1)}`);
  }
  return weak;
}
"""
"""Elements whose text has less contrast than 4.5:1 (WCAG AA)."""


def _focused(tab: Tab) -> str:
    text: str = tab.evaluate(
        "(document.activeElement.innerText || document.activeElement.name"
        " || document.activeElement.localName).trim()"
    )
    return text


def test_keyboard(served: Page, project: Path, chromium: Chromium) -> None:
    """Everything is reached and used with the keyboard alone, with a visible focus."""
    backlog = Backlog(Workspace(project))
    for title in ("First", "Second"):
        backlog.add(title)
    tab = chromium.tab(served.server.url)
    tab.keyboard.press("Tab")
    assert "Skip to the content" == _focused(tab)
    order = []
    for _ in range(12):
        tab.keyboard.press("Tab")
        order.append(_focused(tab))
    assert ["First", "Edit", "↓", "Second", "Edit", "↑", "Add an item"] == order[:7]
    tab.get_by_role("button", name="Move Second up").focus()
    outline = tab.evaluate("getComputedStyle(document.activeElement).outlineStyle")
    assert "solid" == outline
    with tab.expect_navigation():  # the old page shows the new order as well
        tab.keyboard.press("Enter")
    expect(tab.locator(".column.backlog .name").first).to_have_text("Second")
    assert ["001-second.md", "002-first.md"] == backlog.items()
    tab.locator("summary", has_text="Add an item").focus()
    tab.keyboard.press("Enter")
    tab.keyboard.press("Tab")
    tab.keyboard.type("Third")
    tab.keyboard.press("Enter")
    expect(tab.locator(".column.backlog")).to_contain_text("Third")
    assert 3 == len(backlog.items())


def test_board_keeps_the_form_in_use(served: Page, project: Path, chromium: Chromium) -> None:
    """An item that comes from elsewhere appears while a person writes another."""
    tab = chromium.tab(served.server.url)  # the form is open, as there is neither item nor run
    title = tab.get_by_label("Title")
    title.fill("Half a ti")
    Backlog(Workspace(project)).add("From a terminal")
    expect(tab.locator(".column.backlog")).to_contain_text("From a terminal")
    expect(title).to_have_value("Half a ti")
    expect(title).to_be_focused()


def test_answer_stays_with_its_question(served: Page, project: Path, chromium: Chromium) -> None:
    """A question settled elsewhere leaves the answer that is being written to another one."""
    workspace = Workspace(project)
    first = workspace.write_spec_issue("# Which format?\n\n- CSV\n- JSON\n")
    workspace.write_spec_issue("# Which color?")
    tab = chromium.tab(served.server.url)
    asked = tab.locator(".waits", has_text="Which color?")
    answer = asked.get_by_label("Your answer")
    answer.click()
    tab.keyboard.type("Blue")
    workspace.resolve(next(issue for issue in workspace.issues() if issue.name == first))
    expect(tab.locator(".waits")).to_have_count(1)
    expect(answer).to_have_value("Blue")
    expect(answer).to_be_focused()
    asked.get_by_role("button", name="Answer").click()
    expect(tab.locator(".waits")).to_have_count(0)
    assert "Blue" in (project / ".specs" / "decisions.md").read_text()
    assert [] == chromium.console


def test_option_fills_in_the_answer(served: Page, project: Path, chromium: Chromium) -> None:
    """The options of a question are buttons, which fill in the answer; the user sends it."""
    workspace = Workspace(project)
    workspace.write_spec_issue('# Which format?\n\n- CSV\n- `JSON`, with a "schema"\n')
    tab = chromium.tab(served.server.url)
    tab.get_by_role("button", name="JSON").click()
    expect(tab.get_by_label("Your answer")).to_have_value('JSON, with a "schema"')
    assert 1 == len(workspace.issues())
    tab.get_by_role("button", name="Answer, and go on").click()
    expect(tab.locator(".waits")).to_have_count(0)
    assert [] == workspace.issues()


def test_phone_shows_no_empty_columns(served: Page, project: Path, chromium: Chromium) -> None:
    """On a phone only the columns with items take room; on a screen all of them are there."""
    Backlog(Workspace(project)).add("First")
    tab = chromium.tab(served.server.url)
    expect(tab.locator(".column").filter(visible=True)).to_have_count(5)
    tab.set_viewport_size({"width": 390, "height": 844})
    expect(tab.locator(".column").filter(visible=True)).to_have_count(1)


def test_names_of_lanes_stay_in_sight(served: Page, run: Run, chromium: Chromium) -> None:
    """On a phone a timeline is scrolled to its end, with the names of its lanes."""
    run.add(ev.StageFinished(outcome={"_tag": "Done"}), stage="implementing#1")
    tab = chromium.tab(served.server.url)
    tab.set_viewport_size({"width": 390, "height": 844})
    tab.goto(url(served, "runs", run.id))
    chart = tab.locator("#p-timeline .chart")
    name = chart.locator("text.lane").first
    assert chart.evaluate("box => box.scrollLeft") > 100
    box, seen = chart.bounding_box(), name.bounding_box()
    assert box is not None
    assert seen is not None
    assert box["x"] - 10 <= seen["x"] < box["x"] + 40
    chart.evaluate("box => { box.scrollLeft = 0; }")
    expect(name).to_have_attribute("x", "0.0")


def test_page_of_a_run_that_has_ended(served: Page, run: Run, chromium: Chromium) -> None:
    """The end of a run leads its page, with what starts it again; the page says so live."""
    tab = chromium.tab(served.server.url)
    tab.goto(url(served, "runs", run.id))
    expect(tab.locator("#head")).to_contain_text("implementing")
    run.add(ev.RunEnded(state="budget", message="The budget of the run is used up"))
    verdict = tab.locator(".verdict")
    expect(verdict).to_contain_text("Budget spent")
    expect(verdict).to_contain_text("is used up")
    expect(verdict).to_contain_text(f"cuggino run --resume {run.id}")
    expect(tab.locator("#acts button")).to_have_count(0)
    assert [] == chromium.console
