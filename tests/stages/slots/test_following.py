"""The user's branch follows the landed work, whatever its owner does meanwhile."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest
from reactivex import Observable, operators as ops, timer
from reactivex.subject import Subject

from cuggino import events as ev, run
from cuggino.errors import ConfigError
from cuggino.folders import folder_changes
from cuggino.operators import Flow, emit, flow
from cuggino.operators.merge_now import merge_now
from cuggino.stages.slots import TRUNK, Gate, Trunk
from cuggino.stages.slots.following import changes_of_user
from cuggino.stages.slots.position import Place, place_of
from cuggino.testing import Marbles
from tests.stages.slots.landings import Landings, events, tags


def _place(folder: Path) -> Place:
    def story() -> Flow[None]:
        yield from emit((yield from place_of(folder)))

    place = run(flow(story))
    assert isinstance(place, Place)
    return place


def land(work: Landings, trunk: Trunk, item: str, files: dict[str, str | None]) -> ev.WatchLanded:
    landed = events(trunk.land(work.candidate(item, files)))[-1]
    assert isinstance(landed, ev.WatchLanded), landed
    return landed


def delayed(trunk: Trunk) -> ev.WatchFollowDelayed:
    happened = events(trunk.follow())
    assert isinstance(happened[-1], ev.WatchFollowDelayed), happened
    return happened[-1]


def followed(trunk: Trunk) -> ev.WatchFollowed:
    happened = events(trunk.follow())
    assert isinstance(happened[-1], ev.WatchFollowed), happened
    return happened[-1]


class TestDirtyTree:
    def test_changes_elsewhere_stay(self, work: Landings) -> None:
        """A changed, a staged and an untracked file outside of the landing are not touched."""
        work.commit("More", {"mine.txt": "1\n", "staged.txt": "1\n"})
        trunk = work.opened()
        land(work, trunk, "a.md", {"base.txt": "landed\n", "new/a.txt": "a\n"})
        work.project.write("mine.txt", "changed\n")
        work.project.write("staged.txt", "changed\n")
        work.git("add", "staged.txt")
        work.project.write("new/untracked.txt", "mine\n")
        followed(trunk)
        assert [" M mine.txt", "M  staged.txt", "?? new/untracked.txt"] == (
            work.status().splitlines()
        )
        assert "landed\n" == (work.project.root / "base.txt").read_text()

    @pytest.mark.parametrize("way", ["changed", "staged", "untracked", "ignored"])
    def test_files_in_the_way(self, work: Landings, way: str) -> None:
        """A file of the user in the way delays it, is named, and keeps every byte."""
        work.commit("Ignore", {".gitignore": "*.secret\n"})
        trunk = work.opened()
        path = {"untracked": "new.txt", "ignored": "my.secret"}.get(way, "base.txt")
        candidate = work.candidate("a.md", {"first.txt": "1\n", "zlast.txt": "1\n"})
        work.slot.joinpath(path).write_text("landed\n")
        work.git("add", "--force", path, cwd=work.slot)
        work.git("commit", "--quiet", "--amend", "--no-edit", cwd=work.slot)
        commit = work.git("rev-parse", "HEAD", cwd=work.slot)
        work.git("fetch", "--quiet", str(work.slot), "+HEAD:refs/cuggino/candidates/a.md")
        events(trunk.land(candidate.model_copy(update={"commit": commit})))
        work.project.write(path, "mine\n")
        if way == "staged":
            work.git("add", path)
        before, status = work.head(), work.status()
        event = delayed(trunk)
        assert ("main", work.head(TRUNK)) == (event.branch, event.commit)
        assert "are in the way" in event.reason
        assert (path,) == event.paths
        assert (before, status) == (work.head(), work.status())
        assert "mine\n" == (work.project.root / path).read_text()
        assert not (work.project.root / "first.txt").exists()
        assert [] == work.refs("refs/cuggino/following")
        work.git("reset", "--quiet", "--", path)
        (work.project.root / path).unlink()
        followed(trunk)
        assert "" == work.status()

    def test_the_index_is_locked(self, work: Landings) -> None:
        """Another git command at work delays it; its lock stays."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        lock = work.project.write(".git/index.lock", "")
        assert "another git command is at work" == delayed(trunk).reason
        assert lock.exists()
        lock.unlink()
        followed(trunk)

    def test_a_merge_that_is_not_concluded(self, work: Landings) -> None:
        """A merge of the user with conflicts delays it, and stays as it is."""
        work.git("branch", "other")
        work.commit("Ours", {"base.txt": "ours\n"})
        work.git("checkout", "--quiet", "other")
        work.commit("Theirs", {"base.txt": "theirs\n"})
        work.git("checkout", "--quiet", "main")
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        with pytest.raises(Exception, match="merge"):
            work.git("merge", "--quiet", "other")
        status = work.status()
        assert "your merge" in delayed(trunk).reason
        assert status == work.status()
        work.git("merge", "--abort")
        followed(trunk)

    def test_autostash_is_not_used(self, work: Landings) -> None:
        """The user's changes are never stashed, even if their configuration asks for it."""
        for name, value in (("merge.autoStash", "true"), ("branch.main.mergeOptions", "--squash")):
            work.git("config", name, value)
        trunk = work.opened()
        land(work, trunk, "a.md", {"base.txt": "landed\n"})
        work.project.write("base.txt", "mine\n")
        assert ("base.txt",) == delayed(trunk).paths
        assert "" == work.git("stash", "list")
        work.git("checkout", "--quiet", "base.txt")
        followed(trunk)
        assert work.head(TRUNK) == work.head("main")

    def test_a_file_that_cannot_be_written(self, work: Landings) -> None:
        """A fast-forward that fails half way is put back, and reported with its reason."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n", "z/z.txt": "z\n"})
        work.project.write(".git/info/attributes", "z/z.txt filter=broken\n")
        work.git("config", "filter.broken.smudge", "false")
        work.git("config", "filter.broken.required", "true")
        healed, event = events(trunk.follow())
        assert isinstance(healed, ev.WatchFollowHealed)
        assert isinstance(event, ev.WatchFollowDelayed)
        assert "smudge filter" in event.reason
        assert "" == work.status()
        assert work.head() != work.head(TRUNK)
        work.git("config", "--unset", "filter.broken.required")
        followed(trunk)
        assert "" == work.status()

    def test_git_fails(self, work: Landings) -> None:
        """A failure of git delays the branch, and does not end the watch."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        work.project.write(".git/refs/cuggino/following", "in the way of a folder")
        assert "refs/cuggino/following/from" in delayed(trunk).reason
        (work.project.root / ".git/refs/cuggino/following").unlink()
        followed(trunk)

    def test_hooks_do_not_run(self, work: Landings) -> None:
        """Hooks that just landed with the work do not run when the branch follows."""
        work.commit("Hooks", {"hooks/.keep": ""})
        work.git("config", "core.hooksPath", "hooks")
        trunk = work.opened()
        script = "#!/bin/sh\ntouch ../ran\n"
        hooks: dict[str, str | None] = {
            f"hooks/post-{when}": script for when in ("merge", "checkout")
        }
        land(work, trunk, "a.md", hooks)
        (work.root / "ran").unlink(missing_ok=True)
        followed(trunk)
        assert os.access(work.project.root / "hooks/post-merge", os.X_OK)
        assert not (work.root / "ran").exists()


class TestPersonsMoves:
    def test_another_branch_is_checked_out(self, work: Landings) -> None:
        """The branch follows without its files while another one is checked out."""
        trunk = work.opened()
        work.git("checkout", "--quiet", "-b", "feature")
        mine = work.commit("Mine", {"mine.txt": "1\n"})
        work.project.write("base.txt", "dirty\n")
        land(work, trunk, "a.md", {"base.txt": "landed\n"})
        assert "main" == followed(trunk).branch
        assert work.head(TRUNK) == work.head("main")
        assert mine == work.head() == work.head("feature")
        assert "dirty\n" == (work.project.root / "base.txt").read_text()
        assert [] == events(trunk.follow())

    def test_checked_out_elsewhere(self, work: Landings) -> None:
        """A branch that is checked out in another work tree does not move below it."""
        trunk = work.opened()
        work.git("checkout", "--quiet", "-b", "feature")
        work.git("worktree", "add", "--quiet", "../other", "main")
        before = work.head("main")
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        assert delayed(trunk).reason.startswith("main is checked out in ")
        assert before == work.head("main")
        assert "" == work.git("status", "--porcelain", cwd=work.root / "other")

    def test_detached_head(self, work: Landings) -> None:
        """Looking at an old commit stops nothing: the branch follows, HEAD stays."""
        before = work.commit("More", {"more.txt": "1\n"})
        trunk = work.opened()
        work.git("checkout", "--quiet", "--detach", "HEAD~1")
        at = work.head()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        followed(trunk)
        assert (at, work.head(TRUNK)) == (work.head(), work.head("main"))
        assert before != work.head("main")

    def test_detached_at_the_start(self, work: Landings) -> None:
        """Without a branch nothing follows, until one is made."""
        work.git("checkout", "--quiet", "--detach")
        at = work.head()
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        event = delayed(trunk)
        assert ("", "HEAD is detached, and no branch follows") == (event.branch, event.reason)
        assert at == work.head() == work.head("main")
        work.git("checkout", "--quiet", "-b", "work")
        assert "work" == followed(trunk).branch
        assert work.head(TRUNK) == work.head("work")
        assert at == work.head("main")

    def test_a_rebase_in_progress(self, work: Landings) -> None:
        """In the middle of a rebase of the branch nothing moves it."""
        work.git("branch", "upstream")
        work.commit("Mine", {"base.txt": "mine\n"})
        trunk = work.opened()
        work.git("checkout", "--quiet", "upstream")
        work.commit("Theirs", {"base.txt": "theirs\n"})
        work.git("checkout", "--quiet", "main")
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        with pytest.raises(Exception, match="rebase"):
            work.git("rebase", "--quiet", "upstream")
        before = work.head("main")
        assert "main is being rebased" == delayed(trunk).reason
        assert before == work.head("main")
        work.git("rebase", "--abort")
        followed(trunk)
        assert "" == work.status()

    def test_a_commit_on_top(self, work: Landings) -> None:
        """A commit of the user on what has followed is the trunk from now on."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        followed(trunk)
        mine = work.commit("Mine", {"mine.txt": "1\n"})
        moved = events(trunk.follow())
        assert ["WatchTrunkMoved"] == tags(moved)
        assert mine == work.head(TRUNK) == getattr(moved[0], "commit", "")
        land(work, trunk, "b.md", {"b.txt": "b\n"})
        followed(trunk)
        assert ["b", "Mine", "a", "Start"] == work.first_parents("main")

    def test_commits_on_both_sides(self, work: Landings) -> None:
        """Commits of the user beside a landing are merged and checked like a candidate."""
        trunk = work.opened(check_command="ls >> ../checked")
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        landed = work.head(TRUNK)
        mine = work.commit("Mine", {"mine.txt": "1\n"})
        (work.root / "checked").unlink()
        happened = events(trunk.follow())
        assert [
            "CheckCommandStarted",
            "CheckCommandOutput",
            "WatchTrunkMoved",
            "WatchFollowed",
        ] == tags(happened)
        assert "a.txt\nbase.txt\nmine.txt\n" == (work.root / "checked").read_text()
        assert [landed, mine] == work.git("log", "-1", "--format=%P").split()
        assert work.head(TRUNK) == work.head("main")
        assert "" == work.status()

    def test_a_commit_that_conflicts(self, work: Landings) -> None:
        """A commit of the user that conflicts with a landing waits for the user's merge."""
        trunk = work.opened(check_command="echo checked >> ../checks")
        land(work, trunk, "a.md", {"base.txt": "landed\n"})
        mine = work.commit("Mine", {"base.txt": "mine\n"})
        event = delayed(trunk)
        assert ("base.txt",) == event.paths
        assert "commits on main conflict with what has landed" in event.reason
        assert mine == work.head()
        land(work, trunk, "b.md", {"b.txt": "b\n"})
        with pytest.raises(Exception, match="merge"):
            work.git("merge", TRUNK)
        work.project.write("base.txt", "mine, landed\n")
        work.git("commit", "--quiet", "--all", "--no-edit")
        assert ["WatchTrunkMoved"] == tags(events(trunk.follow()))
        assert work.head() == work.head(TRUNK)

    def test_a_commit_that_breaks_the_check(self, work: Landings) -> None:
        """A merge that fails the check is dropped, and not checked again until something moves."""
        trunk = work.opened(check_command="echo x >> ../checks; test ! -e a.txt -o ! -e mine.txt")
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        work.commit("Mine", {"mine.txt": "mine\n"})
        assert "the check fails on main merged with what has landed" == delayed(trunk).reason
        checks = (work.root / "checks").read_text()
        assert delayed(trunk) == delayed(trunk)
        assert checks == (work.root / "checks").read_text()
        work.git("rm", "--quiet", "mine.txt")
        work.git("commit", "--quiet", "-m", "Mend")
        followed(trunk)

    def test_a_reset(self, work: Landings) -> None:
        """A landing that the user removes from the branch is not put back."""
        trunk = work.opened()
        old = work.head()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        followed(trunk)
        waiting = work.candidate("b.md", {"b.txt": "b\n"})
        removed = work.head(TRUNK)
        work.git("reset", "--quiet", "--hard", old)
        happened = events(trunk.follow())
        assert ["WatchTrunkMoved"] == tags(happened)
        moved = happened[0]
        assert isinstance(moved, ev.WatchTrunkMoved)
        assert (old, removed) == (moved.commit, moved.was)
        kept = work.refs("refs/cuggino/kept")
        assert [removed] == [work.head(ref) for ref in kept]
        assert kept[0] in moved.reason
        assert "WatchLanded" == events(trunk.land(waiting, title="Add b"))[-1].tag
        followed(trunk)
        assert ["Add b", "Start"] == work.first_parents("main")
        assert ["b.txt", "base.txt"] == work.git("ls-files").split()

    @pytest.mark.real_agent
    def test_a_reset_before_it_has_followed(self, work: Landings) -> None:
        """Work that had not followed lands again on the rewritten branch; removed work does not."""
        trunk = work.opened()
        start = work.head()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        followed(trunk)
        work.project.write("b.txt", "mine\n")
        land(work, trunk, "b.md", {"b.txt": "b\n"})
        land(work, trunk, "c.md", {"c.txt": "c\n"})
        assert ("b.txt",) == delayed(trunk).paths
        work.git("reset", "--quiet", "--hard", start)
        (work.project.root / "b.txt").unlink()
        happened = events(trunk.follow())
        assert ["rewritten", "b.md has landed again", "c.md has landed again"] == [
            "rewritten" if "rewritten" in event.reason else event.reason
            for event in happened
            if isinstance(event, ev.WatchTrunkMoved)
        ]
        assert "WatchFollowed" == happened[-1].tag
        assert ["c", "b", "Start"] == work.first_parents("main")
        assert ["b.txt", "base.txt", "c.txt"] == work.git("ls-files").split()
        assert [] == work.refs("refs/cuggino/again")

    def test_what_cannot_land_again(self, work: Landings) -> None:
        """A landing that conflicts with the rewritten branch is kept and named."""
        work.commit("Second", {"base.txt": "second\n"})
        trunk = work.opened()
        land(work, trunk, "a.md", {"base.txt": "second, and landed\n"})
        landed = work.head(TRUNK)
        work.git("reset", "--quiet", "--hard", "HEAD~1")
        happened = events(trunk.follow())
        kept = [event for event in happened if isinstance(event, ev.WatchWorkKept)]
        assert ["a.md"] == [event.filename for event in kept]
        assert landed == work.head(kept[0].ref)
        assert "conflict" in kept[0].reason
        assert work.head() == work.head(TRUNK)

    @pytest.mark.real_agent
    def test_rebase_and_gc(self, work: Landings) -> None:
        """Rebased history without the old objects: work goes on, and bytes of the user stay."""
        work.git("branch", "upstream")
        work.commit("Mine", {"mine.txt": "1\n"})
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        followed(trunk)
        waiting = work.candidate("b.md", {"b.txt": "b\n"})
        land(work, trunk, "c.md", {"c.txt": "c\n"})
        work.git("checkout", "--quiet", "upstream")
        work.commit("Upstream", {"upstream.txt": "1\n"})
        work.git("checkout", "--quiet", "main")
        work.git("rebase", "--quiet", "upstream")
        work.git("reflog", "expire", "--expire=now", "--all")
        work.git("gc", "--quiet", "--prune=now")
        assert "WatchLanded" == events(trunk.land(waiting))[-1].tag
        followed(trunk)
        assert ["b", "c", "Work on a.md", "Mine", "Upstream", "Start"] == (
            work.first_parents("main")
        )
        assert ["a.txt", "b.txt", "base.txt", "c.txt", "mine.txt", "upstream.txt"] == (
            work.git("ls-files").split()
        )
        assert "" == work.status()

    def test_the_branch_is_renamed(self, work: Landings) -> None:
        """A branch with another name now goes on following under it."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        work.git("branch", "-m", "main", "master")
        assert "master" == followed(trunk).branch
        land(work, trunk, "b.md", {"b.txt": "b\n"})
        work.git("branch", "-m", "master", "trunk")
        assert ["WatchFollowed"] == tags(events(work.trunk().open()))
        assert ["b", "a", "Start"] == work.first_parents("trunk")
        assert [] == work.refs("refs/cuggino/kept")

    def test_the_branch_is_gone(self, work: Landings) -> None:
        """A branch that was deleted is not made again."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        work.git("checkout", "--quiet", "--detach")
        work.git("branch", "--quiet", "-D", "main")
        assert "the branch main is gone" == delayed(trunk).reason
        assert [] == work.refs("refs/heads")

    @pytest.mark.parametrize("settled", [True, False])
    def test_a_start_on_another_branch(self, work: Landings, settled: bool) -> None:
        """The next start uses the branch checked out then; the old branch has its landings."""
        trunk = work.opened()
        start = work.head()
        land(work, trunk, "a.md", {"a.txt": "a\n"})
        if settled:
            followed(trunk)
        work.git("checkout", "--quiet", "-b", "feature", start)
        mine = work.commit("Mine", {"mine.txt": "1\n"})
        happened = events(work.trunk().open())
        assert tags(happened) == [*(["WatchFollowed"] * (not settled)), "WatchTrunkMoved"]
        assert ["a", "Start"] == work.first_parents("main")
        assert mine == work.head(TRUNK) == work.head()
        assert [] == work.refs("refs/cuggino/kept")
        again = work.opened()
        land(work, again, "b.md", {"b.txt": "b\n"})
        assert "feature" == followed(again).branch


def test_two_work_trees_of_a_repository(work: Landings) -> None:
    """A second watch in a linked work tree takes over the trunk; the first one names the cause."""
    first = work.opened()
    work.git("worktree", "add", "--quiet", "-b", "linked", "../linked")
    second = Trunk(Gate(work.root / "linked", work.root / "gate-2", check_command="true"))
    events(second.open())
    candidate = work.candidate("a.md", {"a.txt": "a\n"})
    for stream in (first.follow(), first.land(candidate)):
        with pytest.raises(ConfigError, match="belongs to linked by now"):
            events(stream)
    assert "WatchLanded" == events(second.land(candidate))[-1].tag
    assert "linked" == followed(second).branch


def test_a_linked_work_tree_and_a_subfolder(work: Landings) -> None:
    """The project may be a folder of a linked work tree."""
    work.commit("Web", {"web/index.html": "1\n", "web/.specs/spec.md": "spec\n"})
    work.git("worktree", "add", "--quiet", "-b", "linked", "../linked")
    project = work.root / "linked" / "web"
    check = "test -f index.html -a -f .specs/spec.md"
    trunk = Trunk(Gate(project, work.root / "gate", check_command=check))
    events(trunk.open())
    land(work, trunk, "a.md", {"web/a.html": "a\n"})
    assert "linked" == followed(trunk).branch
    assert (project / "a.html").exists()
    assert not (work.project.root / "web/a.html").exists()


def test_specs_that_git_does_not_have(work: Landings) -> None:
    """The check at the gate sees specifications that are not committed."""
    work.commit("Spec", {".specs/tracked.md": "committed\n"})
    work.project.write(".specs/tracked.md", "not committed\n")
    work.project.write(".specs/more/new.md", "new\n")
    trunk = work.opened(check_command="cat .specs/tracked.md .specs/more/new.md > ../seen")
    land(work, trunk, "a.md", {"a.txt": "a\n"})
    assert "committed\nnew\n" == (work.root / "seen").read_text()


class TestChangesOfTheUser:
    """When a branch that was delayed is let follow again."""

    @pytest.mark.parametrize(
        "change",
        [
            "git checkout --quiet -- base.txt",
            "git commit --quiet --all --message mine",
            "git checkout --quiet -b other",
            "git update-ref refs/heads/main HEAD~1",
            "rm base.txt",
        ],
    )
    def test_they_are_seen(self, work: Landings, change: str) -> None:
        """A branch that is switched or moved, a commit, and what becomes of a file in the way."""
        work.commit("Second", {"second.txt": "1\n"})
        trunk = work.opened()
        land(work, trunk, "a.md", {"base.txt": "a\n"})
        work.project.write("base.txt", "mine\n")
        changed = trunk.changed(delayed(trunk), folder_changes)

        def act(_: object) -> None:
            subprocess.run(["sh", "-c", change], cwd=work.project.root, check=True)

        acting = timer(0).pipe(ops.do_action(act), ops.ignore_elements())
        run(merge_now(changed, acting).pipe(ops.take(1)))

    def test_what_others_do_is_none(self, work: Landings) -> None:
        """Watched folders are those of git and of the files in the way, if they are there."""
        trunk = work.opened()
        land(work, trunk, "a.md", {"sub/new.txt": "a\n"})
        work.project.write("sub/new.txt", "mine\n")
        event = delayed(trunk).model_copy(update={"paths": ("sub/new.txt", "gone/x.txt")})
        root = work.project.root
        t, signs, watched = Marbles(), Subject[object](), list[Path]()

        def changes(folder: Path) -> Observable[object]:
            watched.append(folder)
            return signs

        git = root / ".git"
        place = _place(root)
        t.scheduler.schedule_absolute(5, lambda *_: signs.on_next("another file"))
        t.scheduler.schedule_absolute(10, lambda *_: (root / "sub/new.txt").unlink())
        t.scheduler.schedule_absolute(20, lambda *_: signs.on_next("that file"))
        seen = t.record(changes_of_user(place, event, changes), until=60)
        assert [21.0] == [when for when, kind, _ in seen if kind == "next"]
        assert [git, git / "refs/heads", root / "sub"] == watched
        assert not (root / "gone").exists()
