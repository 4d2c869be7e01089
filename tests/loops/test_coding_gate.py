"""The files that an approval rests on: changed during a run, by an agent or by a person."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from reactivex import Observable, concat, defer, empty, of, operators as ops

from cuggino import run
from cuggino.events import ApprovalBlocked, Event, GateChanged, SpecsChanged
from cuggino.stages import ChangedTests, changed_tests
from tests.git_project import GitProject, isolate_git
from tests.loops.coding_loop import CodingLoop, marbles, says, tags

CHECK = "./check.sh"


def changing(action: Callable[[], object], said: object) -> Observable[Any]:
    """Return an agent or a command that performs the action before it emits anything."""

    def act(_scheduler: object) -> Observable[Any]:
        action()
        return empty()

    return concat(defer(act), of(said))


def loop(
    folder: Path,
    change: Callable[[], object],
    *reviews: Event,
    meanwhile: Callable[[], object] = lambda: None,
) -> CodingLoop:
    """A loop whose first implementing agent makes a change, and a person `meanwhile`."""
    t = marbles()
    (folder / "check.sh").write_text("make test\n", encoding="utf-8")
    done = t.events["d"]
    return CodingLoop(
        folder,
        planning=[of(t.events["c"])] * len(reviews),
        implementing=[changing(change, done), *[of(done)] * (len(reviews) - 1)],
        reviewing=[of(review) for review in reviews],
        commands={CHECK: [changing(meanwhile, b"fine"), *[of(b"fine")] * 2 * len(reviews)]},
    )


def story(played: CodingLoop, **options: Any) -> tuple[str, list[Event]]:
    """Run the loop; return the names of its events, and the events."""
    seen = marbles().record(played.run(check_command=CHECK, **options))
    return tags(seen), [value for _, kind, value in seen if kind == "next"]


def weaken(folder: Path) -> Callable[[], object]:
    return lambda: (folder / "check.sh").write_text("exit 0\n", encoding="utf-8")


class TestTheCheckItself:
    def test_reported(self, tmp_path: Path) -> None:
        """A changed check is an event and is reported to the reviewer, who decides."""
        played = loop(tmp_path, weaken(tmp_path), says("APPROVED", "yes"))
        names, events = story(played)
        expected = GateChanged(iteration=1, paths=("check.sh",), check=("check.sh",))
        assert [expected] == [event for event in events if isinstance(event, GateChanged)]
        assert "`check.sh`" in played.prompts("reviewing")[0]
        assert "ReviewingStart GateChanged CheckCommandStarted" in names
        assert names.endswith("Approved LoopApproved")

    def test_unexplained(self, tmp_path: Path) -> None:
        """With `gate: block`, an unexplained change of the check blocks the approval."""
        played = loop(tmp_path, weaken(tmp_path), says("APPROVED", "a"), says("APPROVED", "b"))
        names, events = story(played, gate="block", max_iterations=2)
        blocked = ApprovalBlocked(iteration=1, exit_code=0, changed=("check.sh",))
        assert blocked in events
        assert names.endswith("ApprovalBlocked LoopMaxIterations")
        assert "`check.sh`" in played.prompts("planning")[1]

    def test_restored(self, tmp_path: Path) -> None:
        """A check that is as it was again blocks nothing."""
        played = loop(tmp_path, weaken(tmp_path), says("APPROVED", "a"), says("APPROVED", "b"))

        def restore(event: Event) -> None:
            if isinstance(event, ApprovalBlocked):
                (tmp_path / "check.sh").write_text("make test\n", encoding="utf-8")

        running = played.run(check_command=CHECK, gate="block")
        seen = marbles().record(running.pipe(ops.do_action(restore)))
        assert tags(seen).endswith("Approved LoopApproved")

    @pytest.mark.parametrize("where", ["focus", "specification", "approval"])
    def test_explained(self, tmp_path: Path, where: str) -> None:
        """A change that the focus, a specification or the reviewer names is approved."""
        text = "check.sh now runs the new tests, too"
        approval = text if where == "approval" else "yes"
        played = loop(tmp_path, weaken(tmp_path), says("APPROVED", approval))
        if where == "specification":
            (tmp_path / ".specs" / "a.md").write_text(text, encoding="utf-8")
        focus = {"focus": text} if where == "focus" else {}
        names, _ = story(played, gate="block", **focus)
        assert names.endswith(
            "GateChanged CheckCommandStarted CheckCommandOutput Approved LoopApproved"
        )

    def test_explained_by_the_agent_itself(self, tmp_path: Path) -> None:
        """A specification that changes during the run explains nothing."""

        def explain() -> None:
            (tmp_path / ".specs" / "a.md").write_text("check.sh is easier now", encoding="utf-8")

        played = loop(tmp_path, weaken(tmp_path), says("APPROVED", "yes"), meanwhile=explain)
        names, _ = story(played, gate="block", max_iterations=1)
        assert "ApprovalBlocked" in names
        assert "LoopApproved" not in names

    def test_names_and_files_that_are_no_text(self, tmp_path: Path) -> None:
        """A specification with bytes for a name, or without a readable end, ends no run."""
        spec = tmp_path / ".specs" / os.fsdecode(b"na\xffve.md")
        again = [says("APPROVED", "yes")] * 2
        played = loop(tmp_path, lambda: None, *again, meanwhile=lambda: spec.write_bytes(b"\xff"))
        (tmp_path / ".specs" / "gone.md").symlink_to("nowhere")
        (tmp_path / ".specs" / "zero.md").symlink_to("/dev/zero")
        names, _ = story(played, journal=True)
        assert "GateChanged" in names
        assert names.endswith("Approved LoopApproved")

    def test_listed_paths(self, tmp_path: Path) -> None:
        """`gatePaths` adds files, by a glob too; a new file counts."""
        (tmp_path / "ci").mkdir()
        played = loop(tmp_path, (tmp_path / "ci" / "new.yml").touch, says("APPROVED", "yes"))
        _, events = story(played, gate_paths=["ci/*.yml"])
        assert GateChanged(iteration=1, paths=("ci/new.yml",), check=("ci/new.yml",)) in events


def test_removed_tests(tmp_path: Path) -> None:
    """Tests that are gone are reported; other files are not."""
    played = loop(tmp_path, lambda: None, says("APPROVED", "yes"))
    played.removed = ["src/a.py", "tests/test_a.py"]
    _, events = story(played, gate="block")
    assert GateChanged(iteration=1, paths=("tests/test_a.py",)) in events


def test_skipped_tests(tmp_path: Path) -> None:
    """Newly skipped tests are reported, and the reviewer's prompt names them."""
    played = loop(tmp_path, lambda: None, says("APPROVED", "yes"))
    played.weakened = ["tests/test_a.py"]
    _, events = story(played, gate="block")
    expected = GateChanged(iteration=1, paths=("tests/test_a.py",), weakened=("tests/test_a.py",))
    assert expected in events
    assert "newly skipped in, `tests/test_a.py`" in played.prompts("reviewing")[0]


def test_weakened_since_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Test files that gain skip markers or lose tests are found, committed or not."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    project.git("config", "diff.noprefix", "true")
    marker = "@pytest.mark.skip\n"
    test = "def test_a():\n    assert one()\n"
    old = {
        "tests/test_ü a.py": test,
        "tests/test_b.py": test,
        "tests/test_moved.py": marker + test + test,
        "tests/test_freed.py": marker + test,
        "tests/test_emptied.py": test,
        "tests/test_renamed.py": test,
        "src/app.py": test,
        "web/a.test.ts": "it('a', f)\n",
    }
    new = {
        "tests/test_ü a.py": marker + test,
        "tests/test_b.py": test.replace("one", "skip"),
        "tests/test_moved.py": test + marker + test,
        "tests/test_freed.py": test,
        "tests/test_emptied.py": "",
        "tests/test_renamed.py": test.replace("test_a", "test_other"),
        "src/app.py": marker + test,
        "web/a.test.ts": "it.only('a', f)\n",
    }
    for files in (old, new):
        for name, text in files.items():
            project.write(name, text)
        project.git("add", "-A")
        project.git("commit", "--quiet", "--message=x")
    base = project.git("rev-parse", "HEAD~1").strip()
    expected = ["tests/test_emptied.py", "tests/test_ü a.py", "web/a.test.ts"]
    assert ChangedTests([], expected) == run(changed_tests(project.root, base))
    project.git("reset", "--quiet", "--soft", "HEAD~1")
    assert ChangedTests([], expected) == run(changed_tests(project.root, base))
    below = ["test_emptied.py", "test_ü a.py"]
    assert ChangedTests([], below) == run(changed_tests(project.root / "tests", base))


def test_removed_since_a_commit(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Removed files are found, committed or not, and tests whose new name is not one of a test."""
    isolate_git(monkeypatch, tmp_path / "home")
    project = GitProject(tmp_path / "project")
    for name in ("one", "two", "three"):
        project.write(f"tests/test_{name}.py", f"{name}\n" * 20)
    project.git("add", "-A")
    project.git("commit", "--quiet", "--message=begin")
    base = project.git("rev-parse", "HEAD").strip()
    project.write("tests/test_four.py", "four\n" * 20)
    project.git("add", "-A")
    project.git("commit", "--quiet", "--message=four")
    base = project.git("rev-parse", "HEAD").strip()
    project.git("mv", "tests/test_one.py", "tests/test_1.py")
    project.git("mv", "tests/test_four.py", "tests/old_four.py")
    project.git("rm", "--quiet", "tests/test_two.py")
    project.git("commit", "--quiet", "--message=less")
    (project.root / "tests" / "test_three.py").unlink()
    gone = ["test_four.py", "test_three.py", "test_two.py"]
    whole = [f"tests/{name}" for name in gone]
    assert ChangedTests(whole, []) == run(changed_tests(project.root, base))
    assert ChangedTests(gone, []) == run(changed_tests(project.root / "tests", base))
    nothing = ChangedTests([], [])
    assert nothing == run(changed_tests(project.root, None)) == run(changed_tests(tmp_path, base))


class TestSpecifications:
    def test_changed_before_the_next_round(self, tmp_path: Path) -> None:
        """The prompts of the next planner and of the reviewer name the changed specifications."""
        spec = tmp_path / ".specs" / "new.md"
        played = loop(
            tmp_path,
            lambda: None,
            says("REQUEST_CHANGES", "redo"),
            says("APPROVED", "yes"),
            meanwhile=lambda: spec.write_text("more", encoding="utf-8"),
        )
        names, events = story(played)
        assert SpecsChanged(iteration=2, paths=(".specs/new.md",)) in events
        assert GateChanged(iteration=1, paths=(".specs/new.md",)) in events
        assert 1 == names.count("SpecsChanged") == names.count("GateChanged")
        planner = played.prompts("planning")[1]
        assert "`.specs/new.md`" in planner
        assert "redo" in planner
        assert names.endswith("LoopApproved")

    def test_approved_meanwhile(self, tmp_path: Path) -> None:
        """An approval of work that was planned by older specifications leads to another round."""
        spec = tmp_path / ".specs" / "new.md"
        played = loop(
            tmp_path,
            lambda: None,
            says("APPROVED", "a"),
            says("APPROVED", "b"),
            meanwhile=lambda: spec.write_text("more", encoding="utf-8"),
        )
        names, _ = story(played)
        assert "Approved SpecsChanged IterationStart" in names
        assert names.endswith("Approved LoopApproved")
        assert "`.specs/new.md`" in played.prompts("planning")[1]
