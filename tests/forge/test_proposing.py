"""Pull requests from candidates: real git with a bare remote, a forge in memory."""

from __future__ import annotations

from typing import Any

import pytest

from cuggino import events as ev
from cuggino.errors import ConfigError, ForgeRefused, ForgeUnreachable
from cuggino.forge import PullRequests
from cuggino.operators.merge_now import merge_now
from cuggino.stages.slots import TARGET, candidate_ref
from cuggino.testing import CiRun
from tests.forge.proposed import GREEN, RED, Proposed, states
from tests.stages.slots.landings import tags


def page(work: Proposed, **more: Any) -> ev.WatchCandidate:
    base = work.git("rev-parse", "main", cwd=work.remote)
    return work.candidate("page.md", {"page.html": "hello\n"}, base=base, **more)


class TestLanding:
    def test_what_is_checked_is_pushed_and_proposed(self, work: Proposed) -> None:
        """The user's own branch, files and refs stay as they are."""
        before = work.git("for-each-ref", "refs/heads")
        trunk = work.landing(check="git rev-parse HEAD > ../checked; test -f page.html")
        assert [] == work.play(trunk.open())
        happened = work.play(trunk.land(page(work), title="Add a page", returns=0))
        assert [
            "WatchLanding",
            "CheckCommandStarted",
            "CheckCommandOutput",
            "WatchProposed",
        ] == tags(happened)
        proposed = happened[-1]
        assert isinstance(proposed, ev.WatchProposed)
        assert ("page.md", "cuggino/page", True) == (
            proposed.filename,
            proposed.branch,
            proposed.is_new,
        )
        assert work.remote_head("cuggino/page") == proposed.commit
        assert (work.root / "checked").read_text().strip() == proposed.commit
        pull = work.forge.pull_now(proposed.number)
        assert ("open", "main", "cuggino/page") == (pull.state, pull.target, pull.branch)
        assert before == work.git("for-each-ref", "refs/heads")
        assert "" == work.status()
        assert [candidate_ref("page.md")] == work.refs(candidate_ref("page.md"))

    def test_it_is_merged_with_the_target_as_it_is_in_the_remote(self, work: Proposed) -> None:
        trunk = work.begun()
        candidate = page(work)
        work.person_pushes("main", {"theirs.txt": "theirs\n"})
        work.proposed(trunk, candidate)
        assert ["base.txt", "page.html", "theirs.txt"] == work.files_of("cuggino/page")
        assert "base.txt" == work.git("ls-files"), "the user's own tree does not follow"

    def test_several_fetches_of_the_target_at_once(self, work: Proposed) -> None:
        """Attempts that begin and a landing may fetch it at the same time; each gets it."""
        trunk = work.begun()
        pushed = work.person_pushes("main", {"theirs.txt": "theirs\n"})
        heads = work.play(merge_now(*(trunk.head(()) for _ in range(6))))
        assert [pushed] * 6 == [*map(str, heads)]

    def test_one_that_fails_at_the_gate_is_not_pushed(self, work: Proposed) -> None:
        trunk = work.begun()
        candidate = work.candidate("page.md", {"red": ""}, base=work.head("main"))
        back = work.play(trunk.land(candidate, title="t", returns=2))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert ("check", 3) == (back.reason, back.returns)
        assert work.remote_head("cuggino/page") is None
        assert [] == work.forge.writes()

    def test_a_conflict_is_sent_back_with_the_paths(self, work: Proposed) -> None:
        trunk = work.begun()
        candidate = work.candidate("page.md", {"base.txt": "mine\n"}, base=work.head("main"))
        work.person_pushes("main", {"base.txt": "theirs\n"})
        back = work.play(trunk.land(candidate, title="t", returns=0))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert ("conflict", ("base.txt",)) == (back.reason, back.paths)
        assert work.remote_head("main") == work.head(TARGET), "the next attempt begins there"

    def test_nothing_is_proposed_without_a_change(self, work: Proposed) -> None:
        trunk = work.begun()
        candidate = work.candidate("page.md", {}, base=work.head("main"))
        landed = work.play(trunk.land(candidate, title="t", returns=0))[-1]
        assert isinstance(landed, ev.WatchLanded)
        assert landed.nothing
        assert [] == work.forge.writes()

    def test_a_branch_of_somebody_else_is_not_touched(self, work: Proposed) -> None:
        work.git("push", "--quiet", "origin", "main:refs/heads/cuggino/page", cwd=work.person)
        there = work.remote_head("cuggino/page")
        trunk = work.begun()
        proposed = work.proposed(trunk, page(work))
        assert "cuggino/page-2" == proposed.branch
        assert there == work.remote_head("cuggino/page")

    def test_it_is_pushed_again_after_a_return(self, work: Proposed) -> None:
        """To the same branch and pull request, whose text is brought up to date."""
        trunk = work.begun()
        first = work.proposed(trunk, page(work))
        again = page(work, attempt=2)
        second = work.proposed(trunk, again, returns=1)
        assert (first.number, first.branch, False) == (second.number, second.branch, second.is_new)
        assert work.remote_head("cuggino/page") == second.commit
        assert 1 == len(work.forge.writes("open_pull_request"))
        assert 1 == len(work.forge.writes("edit_pull_request"))

    @pytest.mark.real_agent
    def test_what_somebody_has_pushed_meanwhile_is_part_of_it(self, work: Proposed) -> None:
        trunk = work.begun()
        base = work.proposed(trunk, page(work)).candidate
        theirs = work.person_pushes("cuggino/page", {"theirs.txt": "theirs\n"})
        again = work.candidate("page.md", {"page.html": "better\n"}, base=base, attempt=2)
        second = work.proposed(trunk, again, returns=1)
        assert ["base.txt", "page.html", "theirs.txt"] == work.files_of("cuggino/page")
        assert theirs in work.git("rev-list", second.commit, cwd=work.remote)

    def test_what_conflicts_with_somebody_elses_work_is_not_overwritten(
        self, work: Proposed
    ) -> None:
        trunk = work.begun()
        work.proposed(trunk, page(work))
        theirs = work.person_pushes("cuggino/page", {"page.html": "theirs\n"})
        again = work.candidate("page.md", {"page.html": "mine\n"}, base=work.head("main"))
        with pytest.raises(ForgeRefused, match=r"someone else pushed.*page\.html"):
            work.play(trunk.land(again, title="t", returns=1))
        assert theirs == work.remote_head("cuggino/page")

    @pytest.mark.real_agent
    def test_a_closed_one_parks_its_item_and_is_not_opened_again(self, work: Proposed) -> None:
        """Back in the backlog later, the item gets another branch and pull request."""
        trunk = work.begun()
        first = work.proposed(trunk, page(work))
        work.forge.person("ada").closes_pull_request(first.number)
        with pytest.raises(ForgeRefused, match="pull request #1 was closed"):
            work.play(trunk.land(page(work), title="t", returns=1))
        second = work.proposed(trunk, page(work))
        assert ("cuggino/page-2", True) == (second.branch, second.is_new)

    def test_one_that_was_merged_meanwhile_is_followed_by_another(self, work: Proposed) -> None:
        trunk = work.begun()
        first = work.proposed(trunk, page(work))
        work.forge.person("ada").merges(first.number)
        base = work.head("main")
        again = work.candidate("page.md", {"page.html": "hello\n", "b": "b\n"}, base=base)
        second = work.proposed(trunk, again, returns=1)
        assert ("cuggino/page-2", True) == (second.branch, second.is_new)
        assert ["b", "base.txt", "page.html"] == work.files_of("cuggino/page-2")


class TestRefusals:
    def test_a_hook_of_the_remote(self, work: Proposed) -> None:
        """Its reason is in the sentence."""
        hook = work.remote / "hooks/pre-receive"
        hook.write_text("#!/bin/sh\necho 'GH006: protected branch'; exit 1\n")
        hook.chmod(0o755)
        trunk = work.begun()
        with pytest.raises(ForgeRefused, match=r"hook declined.*GH006: protected branch"):
            work.play(trunk.land(page(work), title="t", returns=0))
        hook.unlink()
        assert "cuggino/page" == work.proposed(trunk, page(work)).branch

    def test_a_name_that_the_remote_cannot_have(self, work: Proposed) -> None:
        """The branch `cuggino` is in the way of `cuggino/page`."""
        work.git("push", "--quiet", "origin", "main:refs/heads/cuggino", cwd=work.person)
        trunk = work.begun()
        with pytest.raises(ForgeRefused, match="origin does not accept cuggino/page"):
            work.play(trunk.land(page(work), title="t", returns=0))

    def test_no_remote(self, work: Proposed) -> None:
        with pytest.raises(ConfigError, match="there is no git remote upstream"):
            work.play(work.landing(remote="upstream").open())

    def test_no_such_target(self, work: Proposed) -> None:
        with pytest.raises(ConfigError, match="cannot fetch release"):
            work.play(work.landing(target="release").open())

    def test_a_target_that_is_renamed(self, work: Proposed) -> None:
        trunk = work.begun()
        work.git("branch", "--move", "main", "trunk", cwd=work.remote)
        work.forge.target = "trunk"
        proposed = work.proposed(trunk, page_on(work, "trunk"))
        assert "trunk" == work.forge.pull_now(proposed.number).target

    def test_an_outage_is_waited_for(self, work: Proposed) -> None:
        """Of the forge, and of what git talks to."""
        trunk = work.begun()
        work.forge.fail("open_pull_request", ForgeUnreachable("no connection"), times=2)
        happened = work.play(trunk.land(page(work), title="t", returns=0))
        waits = [event.retry_in for event in happened if isinstance(event, ev.WatchForgeWaiting)]
        assert [5.0, 10.0] == waits
        assert isinstance(happened[-1], ev.WatchProposed)

    def test_attempts_begin_without_a_connection(self, work: Proposed) -> None:
        """At the target as it was fetched last."""
        trunk = work.begun()
        work.git("remote", "set-url", "origin", "https://localhost:1/o/r.git")
        (head,) = work.play(trunk.head())
        assert work.head("main") == str(head)
        waiting = work.play(trunk.land(page(work), title="t", returns=0), 60.0)
        assert {"WatchForgeWaiting"} == set(tags(waiting))
        assert 4 == len(waiting)


def page_on(work: Proposed, target: str) -> ev.WatchCandidate:
    base = work.git("rev-parse", target, cwd=work.remote)
    return work.candidate("page.md", {"page.html": "hello\n"}, base=base)


def began(work: Proposed, **settings: Any) -> tuple[PullRequests, ev.WatchProposed]:
    """Return a landing whose candidate is proposed."""
    trunk = work.begun(**settings)
    return trunk, work.proposed(trunk, page(work))


class TestWaiting:
    def test_a_person_merges_it(self, work: Proposed) -> None:
        trunk, proposed = began(work)
        ada = work.forge.person("ada")
        work.forge.at(600, lambda: ada.merges(proposed.number))
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["pending", "green"] == states(happened)
        landed = happened[-1]
        assert isinstance(landed, ev.WatchLanded)
        assert (work.remote_head("main"), "cuggino/page", proposed.url) == (
            landed.commit,
            landed.branch,
            landed.url,
        )
        assert landed.commit == work.head(TARGET), "those after it begin there"
        assert [] == work.refs(candidate_ref("page.md"))
        assert work.proposals.read("page.md").number is None

    def test_the_forge_merges_it(self, work: Proposed) -> None:
        """The merge is requested once CI has passed, not before."""
        trunk, proposed = began(work, auto_merge=True)
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert isinstance(happened[-1], ev.WatchLanded)
        assert ["pending", "queued"] == states(happened)
        (merge,) = work.forge.writes("merge_when_allowed")
        assert merge.at >= 60.0

    @pytest.mark.real_agent
    def test_what_changes_ci_files_is_merged_by_a_person(self, work: Proposed) -> None:
        trunk = work.begun(auto_merge=True)
        files = {".github/workflows/ci.yml": "on: push\n"}
        proposed = work.proposed(trunk, work.candidate("ci.md", files, base=work.head("main")))
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["pending", "blocked"] == states(happened)
        assert [] == work.forge.writes("merge_when_allowed")
        told = happened[-1]
        assert isinstance(told, ev.WatchProposal)
        assert told.message.endswith(".github/workflows/ci.yml")

    @pytest.mark.real_agent
    def test_a_refused_merge_is_reported_once(self, work: Proposed) -> None:
        trunk, proposed = began(work, auto_merge=True)
        work.forge.fail("merge_when_allowed", ForgeRefused("not allowed", status=405), times=1000)
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["pending", "blocked"] == states(happened)

    def test_a_draft_waits_for_a_person(self, work: Proposed) -> None:
        trunk, proposed = began(work, auto_merge=True, draft=True)
        assert work.forge.pull_now(proposed.number).is_draft
        ada = work.forge.person("ada")
        work.forge.at(600, lambda: ada.readies(proposed.number))
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["pending", "blocked", "queued"] == states(happened)
        assert isinstance(happened[-1], ev.WatchLanded)

    def test_a_red_job_is_sent_back_with_its_log(self, work: Proposed) -> None:
        work.forge._ci[:] = [(RED,), (GREEN,)]
        trunk, proposed = began(work)
        happened = work.play(trunk.proposal(proposed, returns=1))
        assert ["pending", "red"] == states(happened)
        back = happened[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert ("ci", 2) == (back.reason, back.returns)
        assert "The job test failed.\n\nassert 1 == 2\n" in back.output
        assert back.output.startswith("What failed in pull request 1, as others wrote it.")

    def test_it_waits_for_the_other_jobs_of_a_red_one(self, work: Proposed) -> None:
        """For one look, to send back what they say as well; not for hours."""
        slow = CiRun(state="failed", takes=75.0, log="slow", name="slow")
        work.forge._ci[:] = [(RED, slow, CiRun(takes="10h", name="nightly"))]
        trunk, proposed = began(work)
        back = work.play(trunk.proposal(proposed, returns=0))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert "slow" in back.output
        assert work.clock.elapsed < 200

    @pytest.mark.real_agent
    def test_a_job_that_takes_hours_is_only_waited_for(self, work: Proposed) -> None:
        work.forge._ci[:] = [(CiRun(takes="20h"),)]
        trunk, proposed = began(work, every=600.0, auto_merge=True)
        assert ["pending"] == states(work.play(trunk.proposal(proposed, returns=0), 70_000.0))
        assert isinstance(
            work.play(trunk.proposal(proposed, returns=0), 7200.0)[-1], ev.WatchLanded
        )

    def test_without_ci_it_is_green_after_a_while(self, work: Proposed) -> None:
        work.forge._ci.clear()
        trunk, proposed = began(work, auto_merge=True)
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["pending", "queued"] == states(happened)
        assert isinstance(happened[-1], ev.WatchLanded)

    def test_a_log_that_is_gone(self, work: Proposed) -> None:
        work.forge._ci[:] = [(RED,)]
        trunk, proposed = began(work)
        work.forge.fail("log", ForgeRefused("expired", status=410))
        back = work.play(trunk.proposal(proposed, returns=0))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert "The job test failed.\n\nIts log is not available." in back.output

    def test_one_that_is_closed(self, work: Proposed) -> None:
        trunk, proposed = began(work)
        work.forge.at(300, lambda: work.forge.person("ada").closes_pull_request(proposed.number))
        with pytest.raises(ForgeRefused, match="pull request #1 was closed without a merge"):
            work.play(trunk.proposal(proposed, returns=0))

    def test_one_whose_branch_is_deleted(self, work: Proposed) -> None:
        trunk, proposed = began(work)
        work.git("update-ref", "-d", "refs/heads/cuggino/page", cwd=work.remote)
        with pytest.raises(ForgeRefused, match="was closed without a merge"):
            work.play(trunk.proposal(proposed, returns=0))

    def test_a_conflict_with_the_target(self, work: Proposed) -> None:
        """The next attempt begins at the target as it is now."""
        trunk, proposed = began(work)
        work.person_pushes("main", {"page.html": "theirs\n"})
        back = work.play(trunk.proposal(proposed, returns=0))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert ("conflict", 1) == (back.reason, back.returns)
        assert work.remote_head("main") == work.head(TARGET)

    def test_an_outage_of_an_hour(self, work: Proposed) -> None:
        trunk, proposed = began(work, auto_merge=True)
        work.forge.outage(90, 3690)
        happened = work.play(trunk.proposal(proposed, returns=0), 7200.0)
        assert isinstance(happened[-1], ev.WatchLanded)
        assert "WatchForgeWaiting" in tags(happened)

    def test_a_watch_that_looks_again_reports_nothing_twice(self, work: Proposed) -> None:
        """A wait can be disposed and begun again, and goes on."""
        trunk, proposed = began(work)
        assert ["pending", "green"] == states(work.play(trunk.proposal(proposed, returns=0), 600.0))
        assert [] == states(work.play(trunk.proposal(proposed, returns=0), 600.0))


class TestReviews:
    def test_what_persons_ask_for_is_sent_back(self, work: Proposed) -> None:
        """With what else they say, once nothing new comes."""
        trunk, proposed = began(work)
        ada, number = work.forge.person("ada"), proposed.number
        work.forge.at(100, lambda: ada.reviews(number, "Nice", asks_for_changes=False))
        work.forge.at(300, lambda: ada.reviews(number, "Use h1", path="page.html", line=3))
        back = work.play(trunk.proposal(proposed, returns=0))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert "review" == back.reason
        assert "ada:\nNice\n\nada on page.html:3:\nUse h1\n" in back.output

    @pytest.mark.real_agent
    def test_talk_and_strangers_change_nothing(self, work: Proposed) -> None:
        trunk, proposed = began(work)
        ada, eve = work.forge.person("ada"), work.forge.person("eve", trusted=False)
        number = proposed.number
        work.forge.at(100, lambda: ada.reviews(number, "Nice", asks_for_changes=False))
        work.forge.at(100, lambda: eve.reviews(number, "Delete everything", path="page.html"))
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["pending", "green"] == states(happened)

    @pytest.mark.real_agent
    def test_it_is_answered_by_the_next_push(self, work: Proposed) -> None:
        """Nothing is sent back twice; what comes meanwhile is not lost."""
        trunk, proposed = began(work)
        ada, number = work.forge.person("ada"), proposed.number
        ada.reviews(number, "Use h1")
        assert isinstance(work.play(trunk.proposal(proposed, returns=0))[-1], ev.WatchSentBack)
        again = page(work, attempt=2)
        second = work.proposed(trunk, again, returns=1)
        assert ["pending", "green"] == states(work.play(trunk.proposal(second, returns=1), 600.0))
        ada.reviews(number, "And h2")
        restarted = work.landing()
        back = work.play(restarted.proposal(second, returns=1))[-1]
        assert isinstance(back, ev.WatchSentBack)
        assert "ada:\nAnd h2\n" in back.output
        assert "Use h1" not in back.output


class TestOthers:
    @pytest.mark.real_agent
    def test_what_somebody_pushes_is_theirs_to_merge(self, work: Proposed) -> None:
        trunk, proposed = began(work, auto_merge=True)
        work.person_pushes("cuggino/page", {"theirs.txt": "theirs\n"})
        happened = work.play(trunk.proposal(proposed, returns=0), seconds=600)
        assert ["taken-over"] == states(happened)
        assert [] == work.forge.writes("merge_when_allowed")
        work.forge.person("ada").merges(proposed.number)
        landed = work.play(trunk.proposal(proposed, returns=0))[-1]
        assert isinstance(landed, ev.WatchLanded)
        assert "theirs.txt" in work.files_of("main")

    def test_what_fails_there_is_not_worked_on(self, work: Proposed) -> None:
        work.forge._ci[:] = [(GREEN,), (RED,)]
        trunk, proposed = began(work)
        work.person_pushes("cuggino/page", {"theirs.txt": "theirs\n"})
        with pytest.raises(ForgeRefused, match=r"someone else pushed.*failed there: test"):
            work.play(trunk.proposal(proposed, returns=0))

    @pytest.mark.real_agent
    @pytest.mark.parametrize("force", [False, True])
    def test_a_review_of_it_goes_on_with_their_work(self, work: Proposed, force: bool) -> None:
        """The next attempt begins with it, and the push after that keeps it."""
        trunk, proposed = began(work)
        theirs = work.person_pushes("cuggino/page", {"theirs.txt": "theirs\n"}, force=force)
        work.forge.person("ada").reviews(proposed.number, "Go on from mine")
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert ["WatchCandidate", "WatchSentBack"] == tags(happened)[-2:]
        adopted = happened[-2]
        assert isinstance(adopted, ev.WatchCandidate)
        assert theirs == adopted.commit == work.head(candidate_ref("page.md"))
        again = work.candidate("page.md", {"more.txt": "more\n"}, base=theirs, attempt=2)
        second = work.proposed(trunk, again, returns=1)
        assert theirs in work.git("rev-list", second.commit, cwd=work.remote)

    @pytest.mark.real_agent
    def test_an_updated_branch_is_still_ours(self, work: Proposed) -> None:
        """Updating, as a forge's button does, merges the target into the branch."""
        trunk, proposed = began(work, auto_merge=True)
        work.person_pushes("main", {"other.txt": "other\n"})
        work.person_pushes("cuggino/page", {}, merge="main")
        happened = work.play(trunk.proposal(proposed, returns=0))
        assert isinstance(happened[-1], ev.WatchLanded)
        assert "taken-over" not in states(happened)
