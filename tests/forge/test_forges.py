"""What each forge does: the double, and GitHub and GitLab through the real `gh` and `glab`.

The real ones ask a server on loopback that shows the double.
"""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, operators as ops

import cuggino
from cuggino.domain import Schedule
from cuggino.errors import (
    ConfigError,
    CugginoError,
    ForgeLimited,
    ForgeLoginMissing,
    ForgeRefused,
    ForgeUnreachable,
)
from cuggino.forge import Api, Ci, Comment, Forge, GitHub, GitLab, Issue, Job, PullRequest, ci_of
from cuggino.testing import ForgePerson
from tests.forge.programs import PROGRAMS, gh, version_of
from tests.forge.server import ForgeServer
from tests.forge.state import ME, Association, State
from tests.limits import LIMIT

DOWN = ForgeUnreachable
RESET = datetime.fromtimestamp(1_800_000_000, UTC)
USED_UP = {"x-ratelimit-remaining": "0", "x-ratelimit-reset": "1800000000"}


@dataclass
class Arena:
    """A repository, and the real program that reaches it; without one the double itself."""

    state: State
    folder: Path
    server: ForgeServer
    program: Path
    is_real: bool = True

    @property
    def alice(self) -> ForgePerson:
        return self.state.by("alice")

    @property
    def is_github(self) -> bool:
        return self.server.kind == "github"

    def forge(self, **more: Any) -> Forge:
        if not self.is_real:
            return self.state
        given = {"env": self.server.env, "host": self.server.host, "repo": "o/r", **more}
        api = Api(
            self.server.kind,
            given["host"],
            program=str(given.pop("program", self.program)),
            env=given.pop("env"),
            timeout=given.pop("timeout", LIMIT),
        )
        make = GitHub if self.is_github else GitLab
        return make(given.pop("repo"), api=api, **given)

    def push(self, branch: str, name: str = "page.txt", text: str = "hello\n") -> str:
        """Push a person's commit to a new branch, to a server through HTTPS; return it."""
        clone = self.folder / f"clone-{len(list(self.folder.iterdir()))}"
        source = self.server.clone_url if self.is_real else str(self.state.bare)
        self._git("clone", "-q", source, str(clone), cwd=self.folder)
        (clone / name).write_text(text)
        for words in (
            ("checkout", "-qb", branch),
            ("add", "-A"),
            ("commit", "-qm", f"Change {name}"),
            ("push", "-q", "origin", branch),
        ):
            self._git(*words, cwd=clone)
        return self._git("rev-parse", "HEAD", cwd=clone)

    def opened(self, branch: str = "cuggino/7") -> PullRequest:
        """Open a pull request for a new branch."""
        self.push(branch)
        opening = self.forge().open_pull_request(
            branch=branch, target="main", title="Add a page", body="Done."
        )
        (pull,) = every(opening)
        assert isinstance(pull, PullRequest)
        return pull

    def _git(self, *words: str, cwd: Path) -> str:
        who = ("-c", "user.name=p", "-c", "user.email=p@example.com")
        done = subprocess.run(
            ["git", *who, *words],
            cwd=cwd,
            env={**os.environ, **(self.server.git_env if self.is_real else {})},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
        return done.stdout.strip()


REAL = [pytest.param(name, marks=pytest.mark.real_agent) for name in PROGRAMS]


@pytest.fixture(params=["double", *REAL])
def arena(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Arena]:
    if request.param == "double":
        nothing: Any = None
        bare = tmp_path / "bare.git"
        yield Arena(State(bare), tmp_path, nothing, nothing, is_real=False)
        return
    kind, program = PROGRAMS[request.param]
    with ForgeServer(kind, tmp_path / "forge") as server:
        yield Arena(server.state, tmp_path, server, program())


@pytest.fixture
def forge(arena: Arena) -> Forge:
    return arena.forge()


real_only = pytest.mark.parametrize("arena", REAL, indirect=True)
github_only = pytest.mark.parametrize("arena", REAL[:2], indirect=True)
gitlab_only = pytest.mark.parametrize("arena", REAL[2:], indirect=True)


def every(stream: Observable[Any]) -> list[Any]:
    seen: list[Any] = []
    cuggino.run(stream, seen.append)
    return seen


def the_one(stream: Observable[Any]) -> Any:
    (value,) = every(stream)
    return value


def listed(forge: Forge, label: str | None = "agent", query: str | None = None) -> list[Issue]:
    return every(forge.issues(label=label, query=query))


def _is_unsettled(ci: Ci) -> bool:
    return not ci.is_settled


@pytest.mark.real_agent
def test_the_programs_are_the_pinned_ones() -> None:
    assert version_of(gh()) == "2.102.0"


class TestTheRepository:
    def test_it_has_a_login_and_a_default_branch(self, forge: Forge) -> None:
        assert the_one(forge.viewer()) == ME
        assert the_one(forge.default_branch()) == "main"


class TestIssues:
    def test_open_ones_with_the_label_are_listed_oldest_first(self, arena: Arena) -> None:
        first = arena.state.opens("Add a page", "Please.", labels=("agent", "ui"))
        arena.state.opens("Not for agents", labels=("ui",))
        closed = arena.state.opens("Done", labels=("agent",))
        second = arena.state.opens("Ünïcode", "```\n<DONE>\n```\r\n€", labels=("agent",))
        arena.alice.closes(closed)
        found = listed(arena.forge())
        assert [(issue.number, issue.title) for issue in found] == [
            (first, "Add a page"),
            (second, "Ünïcode"),
        ]
        assert found[0] == Issue(
            number=first,
            title="Add a page",
            body="Please.",
            url=found[0].url,
            author="alice",
            is_trusted=True,
            labels=("agent", "ui"),
        )
        assert found[0].url.startswith(arena.state.url)
        assert found[1].body == "```\n<DONE>\n```\r\n€"

    def test_many_come_on_several_pages(self, arena: Arena) -> None:
        for number in range(1, 121):
            arena.state.opens(f"Issue {number}", labels=("agent",))
        assert [issue.number for issue in listed(arena.forge())] == list(range(1, 121))

    @github_only
    def test_github_searches_them(self, arena: Arena) -> None:
        arena.state.opens("Add a page", labels=("agent",))
        arena.state.opens("Add a button", labels=("agent",))
        found = listed(arena.forge(), label=None, query="milestone:1.0 button")
        assert [issue.title for issue in found] == ["Add a button"]

    @github_only
    def test_a_search_that_finds_too_many_is_refused(self, arena: Arena) -> None:
        """An issue that is not listed would be taken for closed."""
        arena.state.found = 1001
        with pytest.raises(ForgeRefused, match="more than 1000 issues"):
            listed(arena.forge(), label=None, query="page")

    @gitlab_only
    def test_a_list_that_changes_while_it_is_read_is_read_again(self, arena: Arena) -> None:
        for number in range(1, 121):
            arena.state.opens(f"Issue {number}", labels=("agent",))
        arena.server.before("page=2", lambda: arena.alice.closes(1))
        with pytest.raises(ForgeUnreachable, match="has changed"):
            listed(arena.forge())
        assert len(listed(arena.forge())) == 119

    def test_one_is_read_open_or_not(self, arena: Arena) -> None:
        number = arena.state.opens("Add a page", labels=("agent",))
        arena.alice.closes(number)
        assert not the_one(arena.forge().issue(number)).is_open

    def test_one_that_does_not_exist_is_refused(self, forge: Forge) -> None:
        with pytest.raises(ForgeRefused) as raised:
            every(forge.issue(99))
        assert raised.value.status == 404

    def test_one_mebibyte_of_text_arrives_whole(self, arena: Arena) -> None:
        number = arena.state.opens("Big", "x" * 2**20, labels=("agent",))
        assert len(the_one(arena.forge().issue(number)).body) == 2**20

    @pytest.mark.parametrize(
        ("association", "counts"),
        [("OWNER", True), ("MEMBER", True), ("COLLABORATOR", True), ("CONTRIBUTOR", False)],
    )
    def test_its_text_counts_by_its_author(
        self, arena: Arena, association: Association, counts: bool
    ) -> None:
        who = arena.state.joins("bob", association).name
        number = arena.state.opens("Add", by=who, labels=("agent",))
        assert the_one(arena.forge().issue(number)).is_trusted is counts

    @pytest.mark.parametrize(("labeler", "counts"), [("alice", True), ("bob", False)])
    def test_a_label_of_somebody_who_may_makes_it_count(
        self, arena: Arena, labeler: str, counts: bool
    ) -> None:
        """Issue templates add labels in the author's name, so a stranger's do not count."""
        bob = arena.state.joins("bob", "NONE").name
        number = arena.state.opens("Add", by=bob)
        arena.state.by(labeler).labels(number, "agent")
        forge = arena.forge(label="agent")
        assert the_one(forge.issue(number)).is_trusted is counts
        if arena.is_real:  # of another label
            assert not the_one(arena.forge().issue(number)).is_trusted

    @real_only
    def test_anybody_may_be_trusted(self, arena: Arena) -> None:
        bob = arena.state.joins("bob", "NONE").name
        number = arena.state.opens("Add", by=bob)
        assert the_one(arena.forge(trust=["anyone"]).issue(number)).is_trusted

    @pytest.mark.parametrize("what", [{"title": "New"}, {"body": "New"}])
    @pytest.mark.parametrize(("editor", "counts"), [("alice", True), ("eve", False)])
    def test_who_edited_it_later_is_known(
        self, arena: Arena, editor: str, counts: bool, what: dict[str, str]
    ) -> None:
        arena.state.joins("eve", "NONE")
        number = arena.state.opens("Add", "Old", labels=("agent",))
        before = the_one(arena.forge().issue(number))
        arena.state.by(editor).edits(number, **what)
        after = the_one(arena.forge().issue(number))
        assert (before.edited_by, before.edit_is_trusted) == ("", True)
        assert (after.edited_by, after.edit_is_trusted) == (editor, counts)

    @pytest.mark.parametrize("edits_last", [True, False])
    def test_an_author_may_not_change_what_was_labeled(
        self, arena: Arena, edits_last: bool
    ) -> None:
        bob = arena.state.joins("bob", "NONE").name
        number = arena.state.opens("Add", "Old", by=bob)
        if not edits_last:
            arena.state.by(bob).edits(number, body="Bad")
        arena.alice.labels(number, "agent")
        if edits_last:
            arena.state.by(bob).edits(number, body="Bad")
        issue = the_one(arena.forge(label="agent").issue(number))
        assert (issue.is_trusted, issue.edit_is_trusted) == (True, not edits_last)


class TestComments:
    def test_they_are_added_edited_and_removed(self, arena: Arena) -> None:
        number = arena.state.opens("Add")
        forge = arena.forge()
        arena.alice.comments(number, "Option B")
        added = the_one(forge.add_comment(number, "Which option?"))
        edited = the_one(forge.edit_comment(number, added.id, "Landed."))
        assert (edited.id, edited.is_mine, edited.is_trusted) == (added.id, True, True)
        bodies = [(comment.author, comment.body) for comment in every(forge.comments(number))]
        assert bodies == [("alice", "Option B"), (ME, "Landed.")]
        assert every(forge.delete_comment(number, added.id)) == []
        assert every(forge.delete_comment(number, added.id)) == [], "gone already"
        assert [comment.author for comment in every(forge.comments(number))] == ["alice"]

    def test_whose_they_are_is_known(self, arena: Arena) -> None:
        arena.state.joins("eve", "NONE")
        number = arena.state.opens("Add")
        for who in ("alice", "eve", ME):
            arena.state.by(who).comments(number, f"by {who}")
        seen: list[Comment] = every(arena.forge().comments(number))
        assert [(c.author, c.is_mine, c.is_trusted) for c in seen] == [
            ("alice", False, True),
            ("eve", False, False),
            (ME, True, True),
        ]
        assert seen[0].at < seen[1].at
        assert str(number) in seen[0].url

    def test_many_come_on_several_pages(self, arena: Arena) -> None:
        number = arena.state.opens("Add")
        for count in range(250):
            arena.alice.comments(number, str(count))
        seen = every(arena.forge().comments(number))
        assert [comment.body for comment in seen] == list(map(str, range(250)))

    @pytest.mark.parametrize(
        "body", ["@/etc/passwd", "a=b\n--input x", '"; rm -rf ~ #', "é" * 60_000]
    )
    def test_a_body_arrives_as_it_is(self, arena: Arena, body: str) -> None:
        number = arena.state.opens("Add")
        assert the_one(arena.forge().add_comment(number, body)).body == body
        assert arena.state.comments_now(number)[0].body == body

    @real_only
    def test_unchanged_ones_are_not_sent_again(self, arena: Arena) -> None:
        """A request that is answered with 304 does not count against GitHub's limit."""
        number = arena.state.opens("Add")
        arena.alice.comments(number, "Hello")
        forge = arena.forge()
        first, second = every(forge.comments(number)), every(forge.comments(number))
        statuses = [
            r.status for r in arena.server.requests if "comments" in r.path or "notes" in r.path
        ]
        assert first == second
        assert statuses == [200, 304]
        arena.alice.comments(number, "More")
        assert len(every(forge.comments(number))) == 2


class TestChanges:
    def test_labels_are_added_and_removed(self, arena: Arena) -> None:
        number = arena.state.opens("Add", labels=("agent", "status: new"))
        changed = arena.forge().change_labels(
            number, add=("working", "a/b c"), remove=("status: new", "missing")
        )
        assert every(changed) == []
        assert set(arena.state.issue_now(number).labels) == {"agent", "working", "a/b c"}

    def test_an_issue_is_closed(self, arena: Arena) -> None:
        number = arena.state.opens("Add")
        assert every(arena.forge().close_issue(number)) == []
        assert not arena.state.issue_now(number).is_open


class TestPullRequests:
    def test_one_is_opened_found_and_edited(self, arena: Arena) -> None:
        forge = arena.forge()
        assert every(forge.find_pull_request("cuggino/7")) == []
        opened = arena.opened()
        assert opened == PullRequest(
            number=opened.number,
            url=opened.url,
            state="open",
            branch="cuggino/7",
            target="main",
            head=arena.state.head("cuggino/7") or "",
            body="Done.",
            conflicts=False,
        )
        every(forge.edit_pull_request(opened.number, title="Add pages", body="All done."))
        found = the_one(forge.find_pull_request("cuggino/7"))
        assert (found.number, found.body) == (opened.number, "All done.")
        assert arena.state.contents.titles[opened.number] == "Add pages"

    def test_a_second_one_for_a_branch_is_the_first(self, arena: Arena) -> None:
        opened = arena.opened()
        again = the_one(
            arena.forge().open_pull_request(
                branch="cuggino/7", target="main", title="Again", body="Again"
            )
        )
        assert again.number == opened.number
        assert len(arena.state.pulls()) == 1

    def test_a_draft_stays_one(self, arena: Arena) -> None:
        arena.push("cuggino/7")
        forge = arena.forge()
        opened = the_one(
            forge.open_pull_request(
                branch="cuggino/7", target="main", title="Add", body="", draft=True
            )
        )
        every(forge.edit_pull_request(opened.number, title="Add more", body=""))
        assert the_one(forge.pull_request(opened.number)).is_draft
        assert arena.state.contents.titles[opened.number] == "Add more"

    @real_only
    def test_the_branch_of_a_fork_is_not_ours(self, arena: Arena) -> None:
        arena.state.forks.add(arena.opened().number)
        assert every(arena.forge().find_pull_request("cuggino/7")) == []

    def test_a_branch_that_is_missing_is_refused_in_one_line(self, forge: Forge) -> None:
        with pytest.raises(ForgeRefused) as raised:
            every(forge.open_pull_request(branch="no", target="main", title="t", body=""))
        assert raised.value.status in (400, 422)
        assert "\n" not in raised.value.message

    def test_a_closed_one_is_found(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.alice.closes_pull_request(opened.number)
        assert the_one(arena.forge().find_pull_request("cuggino/7")).state == "closed"

    def test_its_jobs_are_those_of_its_head(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.state.set_jobs(
            "cuggino/7",
            {"test": "failed", "lint": "passed", "docs": "skipped", "wheel": "pending"},
            logs={"test": "FAILED tests/test_page.py\n"},
        )
        pull = the_one(arena.forge().pull_request(opened.number))
        assert {job.name: job.state for job in pull.jobs} == {
            "test": "failed",
            "lint": "passed",
            "docs": "skipped",
            "wheel": "pending",
        }
        assert pull.checks == "failed"
        assert the_one(arena.forge().log(pull.jobs[0])) == "FAILED tests/test_page.py\n"
        assert the_one(arena.forge().log(pull.jobs[1])) == ""

    def test_the_jobs_of_a_commit_are_those_of_its_pull_request(self, arena: Arena) -> None:
        opened, forge = arena.opened(), arena.forge()
        assert every(forge.jobs(opened.head)) == []
        arena.state.set_jobs("cuggino/7", {"test": "failed", "lint": "passed", "wheel": "pending"})
        assert tuple(every(forge.jobs(opened.head))) == the_one(forge.pull_request(1)).jobs
        if arena.is_real:
            with pytest.raises(ForgeRefused) as raised:
                every(forge.jobs("f" * 40))
            assert raised.value.status == 404

    @pytest.mark.parametrize("by_commit", [True, False])
    def test_ci_is_waited_for(self, arena: Arena, by_commit: bool) -> None:
        """The job ends once it was seen; polls see nothing else."""
        opened = arena.opened()
        arena.state.set_jobs("cuggino/7", {"test": "pending"})
        watched = ci_of(
            arena.forge(),
            opened.head if by_commit else opened.number,
            schedule=Schedule.constant(0),
        )
        seen = every(
            watched.pipe(
                ops.do_action(lambda _: arena.state.set_jobs("cuggino/7", {"test": "passed"})),
                ops.take_while(_is_unsettled, inclusive=True),
            )
        )
        assert [(ci.state, ci.commit) for ci in seen] == [
            ("pending", opened.head),
            ("passed", opened.head),
        ]

    @real_only
    def test_the_end_of_a_long_log_is_kept(self, arena: Arena) -> None:
        opened = arena.opened()
        log = "line\n" * 2_000_000 + "\udcffthe end\n"  # the byte 0xff
        arena.state.set_jobs("cuggino/7", {"test": "failed"}, logs={"test": log})
        (job,) = the_one(arena.forge().pull_request(opened.number)).jobs
        text = the_one(arena.forge().log(job))
        assert len(text.encode("utf-8", "replace")) <= 64 * 1024 + 2
        assert text.endswith("\ufffdthe end\n")

    def test_a_conflict_is_known(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.push("other", text="another\n")
        arena.state.git("update-ref", "refs/heads/main", "refs/heads/other")
        assert the_one(arena.forge().pull_request(opened.number)).conflicts is True

    def test_remarks_are_in_order_of_time(self, arena: Arena) -> None:
        opened = arena.opened()
        state, alice, number = arena.state, arena.alice, opened.number
        state.joins("eve", "NONE")
        state.by("eve").reviews(number, "I like it", asks_for_changes=False)
        alice.reviews(number, "Rename it")
        alice.reviews(number, "Why?", asks_for_changes=False, path="page.txt", line=1)
        alice.resolves(number, alice.reviews(number, "Old", path="page.txt", line=1))
        state.by(ME).reviews(number, "Pushed", asks_for_changes=False)
        remarks = the_one(arena.forge().pull_request(number)).remarks
        assert [(r.author, r.body, r.is_trusted, r.is_mine) for r in remarks] == [
            ("eve", "I like it", False, False),
            ("alice", "Rename it", True, False),
            ("alice", "Why?", True, False),
            (ME, "Pushed", True, True),
        ]
        assert remarks[1].asks_for_changes
        assert (remarks[2].path, remarks[2].line) == ("page.txt", 1)


class TestMerging:
    def test_one_that_is_ready_is_merged_at_once(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.state.set_jobs("cuggino/7", {"test": "passed"})
        forge = arena.forge()
        assert every(forge.merge_when_allowed(opened.number, head=opened.head)) == []
        merged = the_one(forge.find_pull_request("cuggino/7"))
        assert (merged.state, merged.merged_as) == ("merged", arena.state.head("main"))
        assert merged.head == opened.head
        assert arena.state.git("show", "main:page.txt") == "hello"
        assert every(forge.merge_when_allowed(opened.number, head=opened.head)) == []

    def test_one_that_waits_for_its_jobs_is_merged_by_the_forge(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.state.set_jobs("cuggino/7", {"test": "pending"})
        forge = arena.forge()
        every(forge.merge_when_allowed(opened.number, head=opened.head))
        assert the_one(forge.pull_request(opened.number)).is_queued
        calls = len(arena.state.writes("merge_when_allowed"))
        every(forge.merge_when_allowed(opened.number, head=opened.head))
        assert the_one(forge.pull_request(opened.number)).is_queued
        if arena.is_real:
            assert calls == len(arena.state.writes("merge_when_allowed")), "asked for once"
        arena.state.set_jobs("cuggino/7", {"test": "passed"})
        pull = the_one(forge.pull_request(opened.number))
        assert (pull.state, pull.is_queued) == ("merged", False)

    def test_another_head_is_refused(self, arena: Arena) -> None:
        opened = arena.opened()
        with pytest.raises(ForgeRefused) as raised:
            every(arena.forge().merge_when_allowed(opened.number, head="0" * 40))
        assert raised.value.status == 409
        assert arena.state.pull_now(opened.number).state == "open"

    @github_only
    def test_the_merge_queue_of_github_takes_it(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.state.has_queue = True
        every(arena.forge().merge_when_allowed(opened.number, head=opened.head))
        assert "enqueuePullRequest" in arena.server.writes[-1].body
        assert the_one(arena.forge().pull_request(opened.number)).state == "merged"

    @github_only
    def test_a_branch_that_is_behind_is_updated_first(self, arena: Arena) -> None:
        opened = arena.opened()
        arena.state.is_strict = True
        arena.push("other", name="other.txt")
        arena.state.git("update-ref", "refs/heads/main", "refs/heads/other")
        forge = arena.forge()
        every(forge.merge_when_allowed(opened.number, head=opened.head))
        updated = the_one(forge.pull_request(opened.number))
        assert updated.state == "open"
        assert arena.state.git("rev-parse", f"{updated.head}^") == opened.head
        every(forge.merge_when_allowed(opened.number, head=updated.head))
        assert the_one(forge.pull_request(opened.number)).state == "merged"

    @github_only
    def test_jobs_that_nothing_requires_are_waited_for(self, arena: Arena) -> None:
        """GitHub would merge at once, and GitLab waits for the whole pipeline."""
        opened = arena.opened()
        arena.state.allows_auto_merge = False
        arena.state.set_jobs("cuggino/7", {"test": "pending"}, optional=("test",))
        with pytest.raises(ForgeRefused) as raised:
            every(arena.forge().merge_when_allowed(opened.number, head=opened.head))
        assert raised.value.status == 405
        assert "auto-merge" in (raised.value.hint or "")


@real_only
class TestFaults:
    def test_a_retry_after_says_how_long_a_limit_lasts(self, arena: Arena) -> None:
        arena.server.fault(403, headers={"Retry-After": "33"})
        before = datetime.now(UTC)
        with pytest.raises(ForgeLimited, match="You have exceeded a limit") as raised:
            every(arena.forge().default_branch())
        assert raised.value.until is not None
        assert raised.value.until >= before + timedelta(seconds=33)

    @pytest.mark.parametrize(
        ("status", "body", "headers", "error", "fields"),
        [
            (403, None, USED_UP, ForgeLimited, {"until": RESET}),
            (429, None, {}, ForgeLimited, {"until": None}),
            (403, {"message": "Not\naccessible\x1b[31m"}, {}, ForgeRefused, {"status": 403}),
            *((status, b"<html>Bad gateway</html>", {}, DOWN, {}) for status in (500, 502, 503)),
            (200, b"<html>Please log in to the network</html>", {}, DOWN, {}),
            (200, ["surprise"], {}, ForgeRefused, {"status": 0}),
        ],
    )
    def test_a_faulty_response_is_an_error(
        self,
        arena: Arena,
        status: int,
        body: Any,
        headers: dict[str, str],
        error: type[CugginoError],
        fields: dict[str, Any],
    ) -> None:
        """Limits with their end, refusals, and outages, which include a page instead of JSON."""
        arena.server.fault(status, body, headers=headers)
        with pytest.raises(error) as raised:
            every(arena.forge().default_branch())
        assert {name: getattr(raised.value, name) for name in fields} == fields
        assert raised.value.message.isprintable(), "on one line, and nothing that moves a cursor"

    def test_a_login_that_is_not_accepted_is_missing(self, arena: Arena) -> None:
        arena.server.accepts_login = False
        with pytest.raises(ForgeLoginMissing) as raised:
            every(arena.forge().viewer())
        program = arena.program
        assert raised.value.hint == f"run `{program} auth login --hostname {arena.server.host}`"

    def test_without_any_login_it_is_missing(self, arena: Arena) -> None:
        """With `--hostname`, `gh` ends with 4; nothing is asked of github.com."""
        env = {name: text for name, text in arena.server.env.items() if "TOKEN" not in name}
        host = "github.com" if arena.is_github else arena.server.host
        with pytest.raises(ForgeLoginMissing):
            every(arena.forge(env=env, host=host).viewer())

    def test_a_closed_port_is_an_outage(self, arena: Arena) -> None:
        with pytest.raises(ForgeUnreachable, match="refused"):
            every(arena.forge(host="localhost:9").viewer())

    def test_an_unknown_certificate_is_an_outage(self, arena: Arena) -> None:
        with pytest.raises(ForgeUnreachable, match="certificate"):
            every(arena.forge(env={**arena.server.env, "SSL_CERT_FILE": os.devnull}).viewer())

    def test_a_slow_forge_is_an_outage(self, arena: Arena) -> None:
        arena.server.slow(LIMIT)
        with pytest.raises(ForgeUnreachable, match="did not answer within"):
            every(arena.forge(timeout=1.0).viewer())

    def test_a_missing_program_is_an_error_of_the_configuration(self, arena: Arena) -> None:
        with pytest.raises(ConfigError) as raised:
            every(arena.forge(program="/nowhere/gh").viewer())
        assert "install" in (raised.value.hint or "")

    def test_a_program_that_is_updated_meanwhile_is_an_outage(
        self, arena: Arena, tmp_path: Path
    ) -> None:
        program = tmp_path / arena.program.name
        program.symlink_to(arena.program)
        forge = arena.forge(program=program)
        assert the_one(forge.viewer()) == ME
        program.unlink()
        with pytest.raises(ForgeUnreachable):
            every(forge.viewer())
        program.symlink_to(arena.program)
        assert the_one(forge.viewer()) == ME

    def test_a_deleted_repository_is_refused(self, arena: Arena) -> None:
        arena.state.repo = "o/other"
        with pytest.raises(ForgeRefused) as raised:
            listed(arena.forge())
        assert raised.value.status == 404

    def test_a_renamed_repository_is_followed(self, arena: Arena) -> None:
        arena.state.repo, arena.state.renamed_from = "o/other", "o/r"
        number = arena.state.opens("Add", labels=("agent",))
        forge = arena.forge()
        assert [issue.number for issue in listed(forge)] == [number]
        assert the_one(forge.add_comment(number, "Begun.")).body == "Begun."
        assert [comment.body for comment in every(forge.comments(number))] == ["Begun."]

    def test_a_call_that_is_given_up_leaves_no_process(self, arena: Arena) -> None:
        arena.server.slow(LIMIT)
        seen: list[Any] = []
        arena.forge().viewer().subscribe(seen.append).dispose()
        assert seen == []


@real_only
def test_a_log_that_is_none_of_actions_is_empty(arena: Arena) -> None:
    job = Job(id="status:ci/other" if arena.is_github else "99", name="ci", state="failed")
    assert the_one(arena.forge().log(job)) == ""


@github_only
def test_a_limit_of_graphql_comes_with_200(arena: Arena) -> None:
    body = {"errors": [{"type": "RATE_LIMITED", "message": "API rate limit exceeded"}]}
    arena.server.fault(200, body, headers=USED_UP)
    with pytest.raises(ForgeLimited) as raised:
        listed(arena.forge())
    assert raised.value.until == RESET
