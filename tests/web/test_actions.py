"""A person's actions on the page: through the real routes, as a browser without scripts."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from cuggino import events as ev
from cuggino.files import state_folder
from cuggino.storage import KEY_FILE, Backlog, ControlFolder, Workspace
from tests.web.server import Page, page


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """A project with specifications."""
    folder = tmp_path / "shop"
    (folder / ".specs").mkdir(parents=True)
    (folder / ".specs" / "login.md").write_text("# Login\n")
    Workspace(folder).open()
    return folder


@pytest.fixture
def workspace(project: Path) -> Workspace:
    return Workspace(project)


@pytest.fixture
def backlog(workspace: Workspace) -> Backlog:
    """A backlog with three items."""
    made = Backlog(workspace)
    for title in ("First", "Second", "Third"):
        made.add(title)
    return made


@pytest.fixture
def served(project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Page]:
    """The served project, with its own state folder."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    with page(project) as made:
        yield made


def post(served: Page, *parts: str, **fields: str) -> httpx.Response:
    """Send a form, without following its redirect."""
    url = served.server.app.site.url("p", "shop", *parts)
    headers = {"Origin": served.origin, "Sec-Fetch-Site": "same-origin"}
    return served.client.post(url, data=fields, headers=headers, follow_redirects=False)


def field(text: str, name: str) -> str:
    """Return the value of a hidden field of a page."""
    found = re.search(f'name="{name}" value="([^"]*)"', text)
    assert found is not None
    return found[1]


def test_add(served: Page, backlog: Backlog, workspace: Workspace) -> None:
    """A new item is the last one; the answer leads back to the board."""
    answer = post(served, "items", title="Login  page", text="As in\r\nlogin.md")
    assert 303 == answer.status_code
    assert answer.headers["location"] == f"{served.base}/#board-shop"
    assert "004-login-page.md" == backlog.items()[-1]
    written = (workspace.backlog / "004-login-page.md").read_text()
    assert "# Login page\n\nAs in\nlogin.md\n" == written
    assert "Login page" in served.get().text


@pytest.mark.parametrize(("title", "why"), [(" ", "is empty"), ("x" * 201, "is longer than")])
def test_add_keeps_what_was_written(served: Page, backlog: Backlog, title: str, why: str) -> None:
    """A refused item is shown again, with its text."""
    answer = post(served, "items", title=title, text="much <b>text</b>")
    assert 409 == answer.status_code
    assert why in answer.text
    assert "much &lt;b&gt;text&lt;/b&gt;" in answer.text
    assert 3 == len(backlog.items())


def test_edit(served: Page, backlog: Backlog, workspace: Workspace) -> None:
    """The text of an item is replaced."""
    digest = field(served.get("p", "shop", "items", "002-second.md").text, "digest")
    answer = post(served, "items", "002-second.md", do="save", digest=digest, text="# Two\n\nx")
    assert 303 == answer.status_code
    assert "# Two\n\nx\n" == (workspace.backlog / "002-second.md").read_text()


def test_edit_of_a_changed_item(served: Page, backlog: Backlog, workspace: Workspace) -> None:
    """An item that an editor saved meanwhile is not overwritten: both texts are shown."""
    digest = field(served.get("p", "shop", "items", "002-second.md").text, "digest")
    path = workspace.backlog / "002-second.md"
    path.write_text("# By an editor\n")
    answer = post(served, "items", "002-second.md", do="save", digest=digest, text="# By me")
    assert 409 == answer.status_code
    assert "# By an editor\n" == path.read_text()
    assert "# By an editor" in answer.text
    assert "# By me" in answer.text
    again = field(answer.text, "digest")
    assert (
        303
        == post(
            served, "items", "002-second.md", do="save", digest=again, text="# By me"
        ).status_code
    )
    assert "# By me\n" == path.read_text()


@pytest.mark.parametrize("backlog_state", ["archived", "parked"])
def test_edit_of_an_item_that_is_gone(
    served: Page, backlog: Backlog, workspace: Workspace, backlog_state: str
) -> None:
    """An item that was finished or parked meanwhile: the text is shown, nothing is lost."""
    digest = field(served.get("p", "shop", "items", "002-second.md").text, "digest")
    if backlog_state == "archived":
        backlog.remove("002-second.md")
    else:
        backlog.park("002-second.md", "failed")
    answer = post(served, "items", "002-second.md", do="save", digest=digest, text="# Mine <x>")
    if backlog_state == "archived":
        assert 409 == answer.status_code
        assert "# Mine &lt;x&gt;" in answer.text
    else:
        assert "# Mine <x>\n" == (workspace.parked / "002-second.md").read_text()
    assert ["001-first.md", "003-third.md"] == backlog.items()


def test_reorder(served: Page, backlog: Backlog) -> None:
    """An item changes places with its neighbor."""
    assert 303 == post(served, "items", "003-third.md", do="up").status_code
    assert ["001-first.md", "002-third.md", "003-second.md"] == backlog.items()
    assert 303 == post(served, "items", "001-first.md", do="down").status_code
    assert ["001-third.md", "002-first.md", "003-second.md"] == backlog.items()


def test_retry(served: Page, backlog: Backlog, workspace: Workspace) -> None:
    """A parked item comes back, with a changed text if one was given."""
    backlog.park("001-first.md", "failed")
    backlog.park("002-second.md", "failed")
    assert 303 == post(served, "items", "001-first.md", do="retry").status_code
    digest = field(served.get("p", "shop", "items", "002-second.md").text, "digest")
    changed = post(served, "items", "002-second.md", do="retry", digest=digest, text="# Smaller")
    assert 303 == changed.status_code
    assert ["001-first.md", "002-second.md", "003-third.md"] == backlog.items()
    assert "# Smaller\n" == (workspace.backlog / "002-second.md").read_text()
    assert {} == backlog.parked()


def test_names_never_leave_the_folder(served: Page, backlog: Backlog, workspace: Workspace) -> None:
    """Other files are neither shown nor changed under any name."""
    (workspace.backlog / ".hidden.md").write_text("hidden\n")
    (workspace.backlog / "folder").mkdir()
    headers = {"Origin": served.origin, "Sec-Fetch-Site": "same-origin"}
    for name in ("..%2f..%2f.specs%2flogin.md", "%2e%2e", ".hidden.md", "none.md", "%00", "folder"):
        url = f"{served.base}/p/shop/items/{name}"
        for do in ("save", "retry", "up", ""):
            fields = {"do": do, "text": "changed", "digest": ""}
            answer = served.client.post(url, data=fields, headers=headers, follow_redirects=False)
            assert answer.status_code in (404, 405, 409), (name, do)
            assert "Traceback" not in answer.text
        shown = served.client.get(url)
        assert shown.status_code in (404, 405, 409), name
        assert "# Login" not in shown.text
        assert "hidden\n" == (workspace.backlog / ".hidden.md").read_text()
        assert "# Login\n" == (workspace.root / ".specs" / "login.md").read_text()


def test_an_item_that_is_a_link(served: Page, workspace: Workspace, tmp_path: Path) -> None:
    """The target of a link is not written, and its text not shown."""
    (tmp_path / "secret").write_text("# Title\n\nsecret text\n")
    (workspace.backlog / "001-link.md").symlink_to(tmp_path / "secret")
    shown = served.get("p", "shop", "items", "001-link.md").text
    assert "is a link" in shown
    assert "secret text" not in shown
    assert 409 == post(served, "items", "001-link.md", do="save", text="x").status_code
    assert "# Title\n\nsecret text\n" == (tmp_path / "secret").read_text()


class TestIssues:
    def test_answer(self, served: Page, workspace: Workspace) -> None:
        """An answer goes into the specifications and settles the question."""
        name = workspace.write_spec_issue("# Which?\n\nPDF or HTML")
        shown = served.get("p", "shop", "questions", name).text
        assert "PDF or HTML" in shown
        assert "login.md" in shown
        answer = post(served, "questions", name, do="answer", text="HTML")
        assert 303 == answer.status_code
        assert [] == workspace.issues()
        decided = (workspace.root / ".specs" / "decisions.md").read_text()
        assert decided.endswith(": Which?\n\n> # Which?\n>\n> PDF or HTML\n\nHTML\n")

    def test_answer_to_a_settled_question(self, served: Page, workspace: Workspace) -> None:
        """The question was settled meanwhile: the answer is shown again, and not written."""
        name = workspace.write_spec_issue("Which?")
        workspace.resolve(workspace.issues()[0])
        answer = post(served, "questions", name, do="answer", text="a long <answer>")
        assert 409 == answer.status_code
        assert "settled already" in answer.text
        assert "a long &lt;answer&gt;" in answer.text
        assert not (workspace.root / ".specs" / "decisions.md").exists()

    def test_empty_answer(self, served: Page, workspace: Workspace) -> None:
        """An empty answer settles nothing."""
        name = workspace.write_spec_issue("Which?")
        answer = post(served, "questions", name, do="answer", text=" ")
        assert 409 == answer.status_code
        assert "the answer is empty" in answer.text
        assert 1 == len(workspace.issues())

    def test_change_of_the_specifications(self, served: Page, workspace: Workspace) -> None:
        """A specification is edited, and the question settled with it."""
        name = workspace.write_spec_issue("Which?")
        url = served.server.app.site.url("p", "shop", "specs", "login.md")
        shown = served.client.get(f"{url}?issue={name}").text
        assert "# Login" in shown
        saved = post(
            served,
            *("specs", "login.md"),
            do="settle",
            issue=field(shown, "issue"),
            digest=field(shown, "digest"),
            text="# Login\n\nBy mail.",
        )
        assert 303 == saved.status_code
        assert [] == workspace.issues()
        assert "# Login\n\nBy mail.\n" == (workspace.root / ".specs" / "login.md").read_text()

    def test_changed_specification(self, served: Page, workspace: Workspace) -> None:
        """A specification that an editor saved is not overwritten, and nothing is settled."""
        name = workspace.write_spec_issue("Which?")
        shown = served.get("p", "shop", "specs", "login.md").text
        path = workspace.root / ".specs" / "login.md"
        path.write_text("# By an editor\n")
        digest = field(shown, "digest")
        saved = post(
            served, "specs", "login.md", do="settle", issue=name, digest=digest, text="# By me"
        )
        assert 409 == saved.status_code
        assert "# By an editor\n" == path.read_text()
        assert "# By me" in saved.text
        assert 1 == len(workspace.issues())

    def test_other_files_are_no_specifications(self, served: Page, workspace: Workspace) -> None:
        """Only text files of the folder are shown and written."""
        (workspace.root / "secret.md").write_text("secret\n")
        (workspace.root / ".specs" / "link.md").symlink_to(workspace.root / "secret.md")
        for name in ("../secret.md", "link.md", ".git/config", "none.md"):
            assert served.get("p", "shop", "specs", name).status_code in (404, 409), name
            assert post(served, "specs", name, text="x", digest="").status_code in (404, 409), name
            assert "secret\n" == (workspace.root / "secret.md").read_text()

    def test_dismiss(self, served: Page, workspace: Workspace) -> None:
        """A dismissed finding is in the memory, with the reason."""
        name = workspace.write_tbd_item("# No test")
        assert 409 == post(served, "questions", name, do="dismiss", text="").status_code
        assert 303 == post(served, "questions", name, do="dismiss", text="by hand").status_code
        assert [] == workspace.issues()
        assert "Dismissed: by hand" in workspace.read_memory()

    def test_resolve(self, served: Page, workspace: Workspace) -> None:
        """A question is settled without an answer once the specifications are clear."""
        name = workspace.write_spec_issue("Which?")
        assert 303 == post(served, "questions", name, do="resolve").status_code
        assert [] == workspace.issues()


class TestControl:
    @pytest.mark.parametrize(
        ("fields", "command"),
        [
            ({"do": "pause"}, ev.PauseAsked()),
            ({"do": "continue"}, ev.ContinueAsked()),
            ({"do": "stop"}, ev.StopAsked()),
            ({"do": "stop-now"}, ev.StopAsked(now=True)),
            ({"do": "skip", "item": "001-a.md"}, ev.SkipAsked(item="001-a.md")),
            ({"do": "steer", "text": "Tests first"}, ev.SteerAsked(text="Tests first")),
        ],
    )
    def test_commands(
        self, served: Page, workspace: Workspace, fields: dict[str, str], command: ev.ControlEvent
    ) -> None:
        """A command is a signed file in the control folder, which the run obeys."""
        with workspace.lock(command="cuggino watch"):
            answer = post(served, "control", run="r1", **fields)
        assert 303 == answer.status_code
        assert answer.headers["location"] == served.server.app.site.url("p", "shop", "runs", "r1")
        state = state_folder({"XDG_STATE_HOME": str(workspace.root.parent / "state")})
        assert state is not None
        folder = ControlFolder(workspace.control, key=state / KEY_FILE)
        assert [command] == [sent.event for sent in folder.pending()]

    @pytest.mark.parametrize(
        ("do", "label"),
        [
            ("stop", "Stop after this stage"),
            ("stop-now", "Stop now"),
            ("skip", "Skip item"),
        ],
    )
    def test_confirmation(self, served: Page, workspace: Workspace, do: str, label: str) -> None:
        """The button of an act that cannot be taken back only leads to a page that asks."""
        url = served.server.app.site.url("p", "shop", "control")
        with workspace.lock(command="cuggino watch"):
            asked = served.client.get(url, params={"do": do, "run": "r1", "item": "001-a.md"})
            assert not workspace.control.exists()
        assert 200 == asked.status_code
        assert "<code>cuggino watch</code>" in asked.text
        assert f'<button name="do" value="{do}" id="do-{do}" class="stop">{label}<' in asked.text
        assert 'name="run" value="r1"' in asked.text
        assert 'name="item" value="001-a.md"' in asked.text
        assert served.server.app.site.url("p", "shop", "runs", "r1") in asked.text  # the way back

    def test_nothing_to_confirm(self, served: Page, workspace: Workspace) -> None:
        """Nothing is asked when nothing runs, or about acts that can be taken back."""
        url = served.server.app.site.url("p", "shop", "control")
        assert 409 == served.client.get(url, params={"do": "stop"}).status_code
        with workspace.lock(command="cuggino watch"):
            answer = served.client.get(url, params={"do": "pause"}, follow_redirects=False)
        assert 303 == answer.status_code
        assert not workspace.control.exists()

    def test_nothing_runs(self, served: Page, workspace: Workspace) -> None:
        """Without a run to receive the message, it is shown again and not lost."""
        answer = post(served, "control", do="steer", text="Tests <first>")
        assert 409 == answer.status_code
        assert "nothing is running here" in answer.text
        assert "Tests &lt;first&gt;" in answer.text
        assert not workspace.control.exists()

    @pytest.mark.parametrize(
        "fields", [{"do": "steer", "text": " "}, {"do": "steer", "text": "x" * 16_001}, {"do": "x"}]
    )
    def test_refused(self, served: Page, workspace: Workspace, fields: dict[str, str]) -> None:
        """Empty and endless messages and unknown commands are refused."""
        with workspace.lock():
            assert 409 == post(served, "control", **fields).status_code
        assert not workspace.control.exists()


def test_forms_of_other_sites_are_refused(served: Page, backlog: Backlog) -> None:
    """A form needs our origin."""
    url = served.server.app.site.url("p", "shop", "items")
    headers = {"Origin": "http://evil.example"}
    answer = served.client.post(url, data={"title": "x"}, headers=headers)
    assert 403 == answer.status_code
    assert 3 == len(backlog.items())
