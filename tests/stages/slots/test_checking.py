"""The check on a clean checkout of a commit, and the ignored files that such a checkout lacks."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import run
from cuggino.events import CommandOutputEvent, Event
from cuggino.operators import emit, flow
from cuggino.sandbox import Views
from cuggino.stages import check_folder, clean_check_stage, missing_ignored, slot_home
from tests.sandbox.arena import needs_bubblewrap
from tests.stages.slots.conftest import SlottedProject
from tests.stages.slots.landings import events, tags


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
