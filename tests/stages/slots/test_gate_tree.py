"""What the gate tree shares with its project, and the check on a clean checkout of a commit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.errors import ConfigError, ProcessError
from cuggino.events import CommandOutputEvent, Event, WatchLanded, WatchSentBack
from cuggino.git import slot_home
from cuggino.operators import emit, flow
from cuggino.sandbox import Views
from cuggino.stages import (
    check_folder,
    clean_check_stage,
    enclosed_shell,
    missing_ignored,
)
from cuggino.stages.slots import TRUNK, Gate, Trunk
from tests.sandbox.arena import needs_bubblewrap
from tests.stages.slots.conftest import SlottedProject
from tests.stages.slots.landings import Landings, events, tags

SIGNER = """#!/bin/sh
cat > /dev/null
[ -e "$(dirname "$0")/locked" ] && { echo "no pinentry" >&2; exit 2; }
echo "[GNUPG:] SIG_CREATED " >&2
echo "-----BEGIN PGP SIGNATURE-----"
echo "-----END PGP SIGNATURE-----"
"""


def land(work: Landings, item: str = "a.md", **options: str) -> WatchLanded | WatchSentBack:
    trunk = work.opened(**options)
    last = events(trunk.land(work.candidate(item, {f"{item}.txt": "1\n"})))[-1]
    assert isinstance(last, WatchLanded | WatchSentBack)
    return last


class TestSharing:
    def test_nothing_of_the_project_is_reached(self, work: Landings) -> None:
        """A check that configures, stashes, branches and pushes changes nothing of the user's."""
        work.git("remote", "add", "origin", str(work.slot))
        before = [work.git("config", "--list", "--local"), *work.refs("refs/heads")]
        check = (
            "git config user.name Check; git branch mine; echo x > new; git stash -u; git tag t;"
            "git config core.hooksPath /nowhere; git push origin HEAD:main; git worktree list"
        )
        assert "WatchLanded" == land(work, check_command=f"{check}; true").tag
        assert before == [work.git("config", "--list", "--local"), *work.refs("refs/heads")]
        assert [] == [*work.refs("refs/stash"), *work.refs("refs/tags")]
        assert "WatchLanded" == land(work, "b.md", check_command=f"{check}; true").tag
        assert "Tester" == work.git("log", "-1", "--format=%an", TRUNK)

    @pytest.mark.parametrize("damage", [".git", ""])
    def test_a_damaged_gate_tree(self, work: Landings, damage: str) -> None:
        """A gate tree that is gone is recreated, and its caches stay; more in `test_damage`."""
        work.commit("Ignore", {".gitignore": "cache\n"})
        assert "WatchLanded" == land(work, check_command="echo x >> cache").tag
        shutil.rmtree(work.root / "gate" / damage)
        assert "WatchLanded" == land(work, "b.md", check_command="echo x >> cache").tag
        if damage:
            assert "x\nx\n" == (work.root / "gate/cache").read_text()

    def test_a_folder_of_somebody_else(self, work: Landings) -> None:
        """A folder in the place of the gate tree is not touched, and refused at the start."""
        mine = work.root / "gate" / "mine.txt"
        mine.parent.mkdir()
        mine.write_text("mine\n")
        with pytest.raises(ConfigError, match="gate exists, and is not a slot of cuggino"):
            events(work.trunk().open())
        assert [mine] == list(mine.parent.iterdir())
        mine.unlink()
        assert "WatchLanded" == land(work).tag
        other = Landings(work.root / "other")
        taken = Trunk(Gate(other.project.root, work.root / "gate", check_command="true"))
        with pytest.raises(ConfigError, match="is a slot of another project"):
            events(taken.open())

    def test_a_merge_that_was_killed(self, work: Landings) -> None:
        """An open merge, a lock and foreign files in the gate tree block nothing."""
        land(work)
        gate = work.root / "gate"
        other = work.candidate("x.md", {"base.txt": "other\n"}).commit
        ours = work.candidate("y.md", {"base.txt": "ours\n"}).commit
        work.git("checkout", "--quiet", "--detach", other, cwd=gate)
        with pytest.raises(Exception, match="merge"):
            work.git("merge", ours, cwd=gate)
        (gate / ".git/index.lock").write_text("")
        (gate / "b.md.txt").write_text("in the way\n")
        assert "WatchLanded" == land(work, "b.md").tag

    def test_the_commands_know_where_they_are(self, work: Landings) -> None:
        """The check has the variables of slot 0, and the files that `.worktreeinclude` names."""
        work.commit("Env", {".gitignore": ".env\n", ".worktreeinclude": ".env\n"})
        work.project.write(".env", "SECRET=1\n")
        check = 'test "$CUGGINO_SLOT $PORT" = "0 20000" && grep -q SECRET .env'
        assert "WatchLanded" == land(work, check_command=check).tag

    def test_files_that_differ_from_the_beginning(self, work: Landings) -> None:
        """A file with line ends that `.gitattributes` rejects does not count as changed."""
        work.project.write("dos.txt", "one\r\ntwo\r\n")
        work.commit("Dos")
        work.commit("Attributes only", {"other.txt": ""})
        work.project.write(".gitattributes", "dos.txt text eol=lf\n")
        work.git("add", ".gitattributes")
        work.git("commit", "--quiet", "-m", "Attributes")
        assert "WatchLanded" == land(work).tag
        back = land(work, "b.md", check_command="echo more >> dos.txt")
        assert isinstance(back, WatchSentBack)
        assert ("changed-files", ("dos.txt",)) == (back.reason, back.paths)

    def test_a_merge_driver_of_the_project(self, work: Landings) -> None:
        """Settings that merges depend on are those of the project."""
        work.commit("Attributes", {".gitattributes": "log.txt merge=union\n", "log.txt": "0\n"})
        trunk = work.opened()
        base = work.head()
        one = work.candidate("a.md", {"log.txt": "0\n1\n"}, base=base)
        two = work.candidate("b.md", {"log.txt": "0\n2\n"}, base=base)
        assert ["WatchLanded"] * 2 == [events(trunk.land(each))[-1].tag for each in (one, two)]
        assert "0\n1\n2" == work.git("show", f"{TRUNK}:log.txt")


class TestHooksAndSignatures:
    def test_hooks_run_at_the_merge(self, work: Landings) -> None:
        """The project's hooks see the merge, and may complete its message."""
        work.project.hook("pre-merge-commit", "echo merging >> ../hooks-ran")
        work.project.hook("commit-msg", 'echo "Reviewed-by: Hook" >> "$1"')
        assert "WatchLanded" == land(work).tag
        assert "merging\n" == (work.root / "hooks-ran").read_text()
        assert "Reviewed-by: Hook" in work.git("log", "-1", "--format=%B", TRUNK)
        assert "WatchLanded" == land(work, "b.md").tag

    def test_a_hook_that_refuses(self, work: Landings) -> None:
        """A hook that refuses the merge sends the item back with its words."""
        work.project.hook("pre-merge-commit", "echo 'lines are too long'; exit 1")
        back = land(work)
        assert isinstance(back, WatchSentBack)
        assert "check" == back.reason
        assert "lines are too long" in back.output

    def test_landings_are_signed(self, work: Landings) -> None:
        """Merges are signed as the user's commits are; without a key nothing lands."""
        signer = work.root / "signer"
        signer.write_text(SIGNER)
        signer.chmod(0o755)
        for name, value in (("gpg.program", str(signer)), ("commit.gpgSign", "true")):
            work.git("config", name, value)
        assert "WatchLanded" == land(work).tag
        assert "BEGIN PGP SIGNATURE" in work.git("cat-file", "commit", TRUNK)
        (work.root / "locked").write_text("")
        before = work.head(TRUNK)
        candidate = work.candidate("b.md", {"b.txt": "b\n"})
        with pytest.raises(ProcessError) as failed:
            events(work.opened().land(candidate))
        assert "gpg failed to sign" in failed.value.message
        assert before == work.head(TRUNK)
        (work.root / "locked").unlink()
        assert "WatchLanded" == events(work.opened().land(candidate))[-1].tag


def test_hooks_and_check_in_an_enclosure(work: Landings) -> None:
    """Code written by agents runs at the gate without reaching the project; the key signs."""
    gate = work.root / "gate"
    gate.mkdir()
    needs_bubblewrap(gate)
    signer = work.root / "signer"
    signer.write_text(SIGNER)
    signer.chmod(0o755)
    for name, value in (("gpg.program", str(signer)), ("commit.gpgSign", "true")):
        work.git("config", name, value)
    work.commit("Ignore", {".gitignore": "hooked\n"})
    attack = f"touch {work.project.root}/escaped"
    work.project.hook("pre-merge-commit", f"{attack}; touch hooked; exit 0")
    views = Views()
    trunk = work.opened(
        views=views,
        shell=enclosed_shell(views),
        check_command=f"{attack}; test -e hooked && test -e a.txt",
    )
    assert "WatchLanded" == events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))[-1].tag
    assert "BEGIN PGP SIGNATURE" in work.git("cat-file", "commit", TRUNK)
    assert "WatchFollowed" == events(trunk.follow())[-1].tag
    assert "" == work.status()


class TestBranches:
    def test_a_branch_per_item(self, work: Landings) -> None:
        """Items land on branches of their own, independent of each other; the user's stays."""
        before = work.head()
        trunk = work.opened(land_on="branch")
        one = work.candidate("010 a.md", {"a.txt": "a\n"})
        two = work.candidate("020-b.md", {"b.txt": "b\n"})
        landed = [events(trunk.land(each))[-1] for each in (one, two, one)]
        names = ["cuggino/010%20a", "cuggino/020-b", "cuggino/010%20a"]
        assert names == [getattr(each, "branch", None) for each in landed]
        assert before == work.head() == work.head(TRUNK) == work.head("main")
        assert one.commit == work.head("cuggino/010%20a")
        assert ["a.txt", "base.txt"] == work.git(
            "ls-tree", "--name-only", "cuggino/010%20a"
        ).split()
        assert [] == events(trunk.follow())

    def test_the_branch_is_of_what_was_checked(self, work: Landings) -> None:
        """After a commit of the user, the item's branch is the checked merge with it."""
        trunk = work.opened(land_on="branch", check_command="ls > ../checked")
        candidate = work.candidate("a.md", {"a.txt": "a\n"})
        mine = work.commit("Mine", {"mine.txt": "1\n"})
        happened = events(trunk.land(candidate))
        assert "WatchTrunkMoved" == happened[0].tag
        assert "a.txt\nbase.txt\nmine.txt\n" == (work.root / "checked").read_text()
        parents = work.git("log", "-1", "--format=%P", "cuggino/a").split()
        assert [mine, candidate.commit] == parents

    @pytest.mark.real_agent
    def test_a_branch_that_exists(self, work: Landings) -> None:
        """A branch of that name is a person's, and stays."""
        work.git("branch", "cuggino/a")
        trunk = work.opened(land_on="branch")
        landed = events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))[-1]
        assert "cuggino/a-2" == getattr(landed, "branch", None)
        assert work.head() == work.head("cuggino/a")
        work.git("branch", "-m", "cuggino/a-2", "other")
        work.git("branch", "-m", "cuggino/a", "cuggino-old")
        work.git("branch", "cuggino")
        landed = events(trunk.land(work.candidate("b.md", {"b.txt": "b\n"})))[-1]
        assert "cuggino-b" == getattr(landed, "branch", None)

    def test_an_item_after_another_builds_on_its_branch(self, work: Landings) -> None:
        """And so does its own branch, of which the check passed."""
        trunk = work.opened(land_on="branch", check_command="ls > ../checked")
        events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        base = run(trunk.head(["a.md"]))
        assert base == work.head("cuggino/a") == run(work.trunk(land_on="branch").head(["a.md"]))
        assert work.head() == run(trunk.head()) == run(trunk.head(["other.md"]))
        landed = events(trunk.land(work.candidate("b.md", {"b.txt": "b\n"}, base=base)))[-1]
        assert "cuggino/b" == getattr(landed, "branch", None)
        assert "a.txt\nb.txt\nbase.txt\n" == (work.root / "checked").read_text()
        work.git("merge-base", "--is-ancestor", "cuggino/a", "cuggino/b")

    def test_an_item_after_several_builds_on_all(self, work: Landings) -> None:
        """Their branches and the user's are merged, without any work tree."""
        trunk = work.opened(land_on="branch")
        for name in "ab":
            events(trunk.land(work.candidate(f"{name}.md", {f"{name}.txt": f"{name}\n"})))
        work.commit("Mine", {"mine.txt": "1\n"})
        base = run(trunk.head(["a.md", "b.md"]))
        files = work.git("ls-tree", "--name-only", str(base)).split()
        assert ["a.txt", "b.txt", "base.txt", "mine.txt"] == files
        assert ("", "main") == (work.status(), work.git("branch", "--show-current"))
        landed = events(trunk.land(work.candidate("c.md", {"c.txt": "c\n"}, base=base)))[-1]
        assert "cuggino/c" == getattr(landed, "branch", None)

    def test_branches_that_conflict(self, work: Landings) -> None:
        """The reason names the items and the files."""
        trunk = work.opened(land_on="branch")
        for name in "ab":
            events(trunk.land(work.candidate(f"{name}.md", {"base.txt": f"{name}\n"})))
        with pytest.raises(
            ProcessError, match=r"builds on a\.md and b\.md, which conflict: base\.txt"
        ):
            run(trunk.head(["a.md", "b.md"]))

    @pytest.mark.parametrize("how", ["merged", "squashed", "deleted"])
    def test_a_branch_is_what_the_user_made_of_it(self, work: Landings, how: str) -> None:
        """Later work contains an item that the user merged, not one whose branch they deleted."""
        trunk = work.opened(land_on="branch")
        events(trunk.land(work.candidate("a.md", {"a.txt": "a\n"})))
        base = str(run(trunk.head(["a.md"])))
        second = work.candidate("b.md", {"b.txt": "b\n"}, base=base)
        if how != "deleted":
            work.git("merge", "--quiet", *(["--squash"] if how == "squashed" else []), "cuggino/a")
        if how == "squashed":
            work.commit("Squash")
        work.git("branch", "--quiet", "--delete", "--force", "cuggino/a")
        assert work.head() == run(trunk.head(["a.md"]))
        landed = events(trunk.land(second))[-1]
        assert "cuggino/b" == getattr(landed, "branch", None)
        files = work.git("ls-tree", "--name-only", "cuggino/b").split()
        assert [*(["a.txt"] if how != "deleted" else []), "b.txt", "base.txt"] == files

    def test_branches_that_are_settled_are_forgotten(self, work: Landings) -> None:
        """Those that are merged or gone; others stay for what comes after them."""
        trunk = work.opened(land_on="branch")
        for name in "abc":
            events(trunk.land(work.candidate(f"{name}.md", {f"{name}.txt": f"{name}\n"})))
        work.git("merge", "--quiet", "cuggino/a")
        work.git("branch", "--quiet", "--delete", "--force", "cuggino/b")
        work.opened(land_on="branch")
        assert ["refs/cuggino/branches/c.md"] == work.refs("refs/cuggino/branches")

    def test_a_red_item_has_no_branch(self, work: Landings) -> None:
        """Work that fails the check gets no branch."""
        trunk = work.opened(land_on="branch")
        assert "WatchSentBack" == events(trunk.land(work.candidate("a.md", {"red": ""})))[-1].tag
        assert ["refs/heads/main"] == work.refs("refs/heads")


def _with_submodule(work: Landings) -> Path:
    library = work.root / "library"
    work.git("clone", "--quiet", str(work.slot), str(library))
    for name, value in (("user.name", "L"), ("user.email", "l@example.org")):
        work.git("config", name, value, cwd=library)
    allow = ("-c", "protocol.file.allow=always")
    work.git(*allow, "submodule", "--quiet", "add", str(library), "lib")
    work.commit("Library")
    return work.project.root / "lib"


class TestSubmodules:
    @pytest.mark.real_agent
    def test_the_gate_has_them(self, work: Landings) -> None:
        """Submodules of the project are checked out at the gate, in the landed version."""
        lib = _with_submodule(work)
        assert "WatchLanded" == land(work, check_command="test -f lib/base.txt").tag
        (lib / "more.txt").write_text("more\n")
        work.git("add", "--all", cwd=lib)
        work.git("-c", "user.name=L", "-c", "user.email=l@x", "commit", "-qm", "More", cwd=lib)
        commit = work.git("rev-parse", "HEAD", cwd=lib)
        trunk = work.opened(check_command="test -f lib/more.txt")
        candidate = work.candidate("b.md", {})
        work.git("update-index", "--cacheinfo", f"160000,{commit},lib", cwd=work.slot)
        work.git("commit", "--quiet", "--amend", "--allow-empty", "-m", "b", cwd=work.slot)
        new = work.git("rev-parse", "HEAD", cwd=work.slot)
        work.git("fetch", "--quiet", str(work.slot), "+HEAD:refs/cuggino/candidates/b.md")
        landed = events(trunk.land(candidate.model_copy(update={"commit": new})))[-1]
        assert "WatchLanded" == landed.tag
        events(trunk.follow())
        assert "" == work.status()
        assert work.head(TRUNK) == work.head()


def test_a_shallow_clone(work: Landings) -> None:
    """A project without its whole history can land."""
    for n in range(3):
        work.commit(f"{n}", {"base.txt": f"{n}\n"})
    source = f"file://{work.project.root}"
    work.git("clone", "--quiet", "--depth=2", source, str(work.root / "shallow"))
    work.project.root = work.root / "shallow"
    for name, value in (("user.name", "Tester"), ("user.email", "tester@example.org")):
        work.git("config", name, value)
    trunk = work.opened()
    for item in ("a", "b"):
        candidate = work.candidate(f"{item}.md", {f"{item}.txt": "1\n"})
        assert "WatchLanded" == events(trunk.land(candidate))[-1].tag
    assert "WatchFollowed" == events(trunk.follow())[-1].tag
    assert ["b", "a", "2", "1"] == work.first_parents()


@pytest.mark.skipif(shutil.which("git-lfs") is None, reason="git-lfs is not installed")
def test_large_files(work: Landings) -> None:
    """Files of Git LFS are whole at the gate and in the user's tree."""
    for where in (work.project.root, work.slot):
        work.git("lfs", "install", "--local", cwd=where)
    work.commit("LFS", {".gitattributes": "*.bin filter=lfs diff=lfs merge=lfs -text\n"})
    trunk = work.opened(check_command="test $(wc -c < big.bin) = 5000")
    candidate = work.candidate("a.md", {"big.bin": "x" * 5000})
    # As `publish_candidate` does.
    shutil.copytree(
        work.slot / ".git/lfs/objects", work.project.root / ".git/lfs/objects", dirs_exist_ok=True
    )
    assert "WatchLanded" == events(trunk.land(candidate))[-1].tag
    assert "WatchFollowed" == events(trunk.follow())[-1].tag
    assert "x" * 5000 == (work.project.root / "big.bin").read_text()
    assert "" == work.status()
    assert "oid sha256" in work.git("show", "HEAD:big.bin")


# -- the check on a clean checkout of a commit, and the ignored files that such a checkout lacks


def folder_of(project: SlottedProject) -> Path:
    return check_folder(slot_home(project.root))


def checked(
    project: SlottedProject, check: str, *, within: str = "", **options: Any
) -> list[Event]:
    """Return the events of the check on a commit, by default that at HEAD."""
    given: dict[str, Any] = {"commit": project.head(), "folder": folder_of(project), **options}
    return events(clean_check_stage(project.root / within, check_command=check, **given))


def last_of(happened: list[Event]) -> CommandOutputEvent:
    last = happened[-1]
    assert isinstance(last, CommandOutputEvent)
    return last


def outcome(project: SlottedProject, check: str, **options: Any) -> tuple[int | None, str]:
    last = last_of(checked(project, check, **options))
    return last.exit_code, last.output


class TestCommit:
    @pytest.mark.parametrize(
        ("check", "expected"),
        [
            pytest.param("cat app.py; exit 3", (3, "one\n"), id="exit-code"),
            pytest.param("cat new.py", (1, "cat: new.py: No such file"), id="not-committed"),
            pytest.param("cat .env", (1, "cat: .env: No such file"), id="ignored"),
            pytest.param("cat .specs/app.md", (0, "# App\n"), id="specifications"),
            pytest.param("git remote; git branch --list", (0, "* (HEAD detached"), id="no-remote"),
            pytest.param("echo $CUGGINO_SLOT $MINE", (0, "0 mine\n"), id="variables"),
        ],
    )
    def test_only_the_commit_counts(
        self, project: SlottedProject, check: str, expected: tuple[int, str]
    ) -> None:
        """Changes, new files and ignored files of the project are not there."""
        for path in ("app.py", "new.py", ".env"):
            project.write(path, "uncommitted\n")
        project.write(".specs/app.md", "# App\n")
        code, output = outcome(project, check, env={"MINE": "mine"})
        assert expected[0] == code
        assert output.startswith(expected[1])

    def test_a_commit_without_a_ref(self, project: SlottedProject) -> None:
        """A commit object that git's plumbing has made is checked like any other."""
        tree = project.git("rev-parse", f"{project.head()}:lib").strip()
        made = project.git("commit-tree", tree, "-m", "Only the library").strip()
        assert (0, "util.py\n") == outcome(project, "ls", commit=made)
        assert (0, "app.py\nlib\n") == outcome(project, "ls")

    def test_a_project_within_its_repository(self, project: SlottedProject) -> None:
        """The commands run in the project's folder of the checkout."""
        assert (0, "util.py\n") == outcome(project, "ls", within="lib")

    @pytest.mark.parametrize("views", [None, Views()])
    def test_a_slot(self, project: SlottedProject, views: Views | None) -> None:
        """A commit that only a slot has is checked in the slot's own gate tree, in a view, too."""
        if views is not None:
            needs_bubblewrap(project.root)
        slot = project.slot(1)
        project.prepare(slot)
        (slot.folder / "app.py").write_text("two\n")
        commit = project.commit("work", slot.root)
        folder = check_folder(slot.root.parent, 1)
        stage = clean_check_stage(
            slot.folder,
            commit=commit,
            folder=folder,
            check_command="git show HEAD:app.py",
            views=views,
        )
        assert "two\n" == last_of(events(stage)).output


class TestCommands:
    def test_events(self, project: SlottedProject) -> None:
        """The setup runs before the check, and a failing one in its place."""
        both = checked(project, "cat made", setup_command="echo yes > made", iteration=4)
        setup = ["SetupCommandStarted", "SetupCommandOutput"]
        assert [*setup, "CheckCommandStarted", "CheckCommandOutput"] == tags(both)
        assert ("yes\n", 4) == (last_of(both).output, last_of(both).iteration)
        failing = checked(project, "true", setup_command="exit 9")
        assert setup == tags(failing)
        assert 9 == last_of(failing).exit_code

    def test_cold(self, project: SlottedProject) -> None:
        """Nothing exists before a subscription, and each subscription checks again."""
        folder = folder_of(project)
        stage = clean_check_stage(
            project.root, commit=project.head(), folder=folder, check_command="ls; touch new cache"
        )
        assert not folder.parent.exists()
        seen = [last_of(events(stage)).output for _ in range(2)]
        assert ["app.py\nlib\n"] * 2 == seen

    def test_caches_stay(self, project: SlottedProject) -> None:
        """Ignored files of a check are there for the next one."""
        assert (0, "1\n") == outcome(project, "mkdir -p cache; echo x >> cache/a; wc -l < cache/a")
        assert (0, "2\n") == outcome(project, "mkdir -p cache; echo x >> cache/a; wc -l < cache/a")

    @pytest.mark.parametrize(
        "damage",
        [
            "echo broken > .git/index",
            "echo broken > .git/config",
            "echo broken > .git/HEAD",
            "rm -rf .git/objects",
            "rm .git/HEAD",
            "touch .git/index.lock",
            "git init -q --bare lib/.git; rm app.py",
            "git remote add origin /nowhere; echo two > app.py; git commit -qam two",
        ],
    )
    def test_damage(self, project: SlottedProject, damage: str) -> None:
        """Whatever a check or a kill has left, the next check is that of its commit."""
        checked(project, damage)
        again = "git remote; cat app.py; ls lib; git status --porcelain"
        assert (0, "one\nutil.py\n") == outcome(project, again)

    def test_view(self, project: SlottedProject) -> None:
        """The commands have the view of commands: the user's project is read-only."""
        needs_bubblewrap(project.root)
        check = f"touch {project.root}/app.py; touch {project.root.parent}/beside; echo ran > here"
        code, _ = outcome(project, check, views=Views())
        assert 0 == code
        assert not (project.root.parent / "beside").exists()


class TestMissing:
    @pytest.mark.parametrize(
        ("within", "expected"),
        [
            pytest.param("", {".env", "data/", "lib/secret.key", "lib/deep/"}, id="project"),
            pytest.param("lib", {"secret.key", "deep/"}, id="folder"),
        ],
    )
    def test_ignored_files(self, project: SlottedProject, within: str, expected: set[str]) -> None:
        """Ignored files that a checkout lacks, folders as one entry, without caches."""
        project.write(".gitignore", "*.key\n.env\n/data\n__pycache__\n*.pyc\n/both\n.cuggino/\n")
        for path in (
            *(".env", "data/one", "data/two", "lib/secret.key", "lib/deep/a.key", "both/x"),
            *("lib/__pycache__/a.pyc", "old.pyc", ".cuggino/journal/x", "untracked"),
        ):
            project.write(path)
        checkout = project.root.parent / "checkout"
        project.git("clone", "--quiet", str(project.root), str(checkout))
        (checkout / "both").mkdir()
        found: list[tuple[str, ...]] = []

        def story() -> Any:
            missing = yield from missing_ignored(project.root / within, checkout / within)
            yield from emit(missing)

        run(flow(story), found.append)
        assert [expected] == [set(paths) for paths in found]
