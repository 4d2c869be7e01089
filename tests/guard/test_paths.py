"""Writable paths, in every spelling."""

from __future__ import annotations

import pwd
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from cuggino.guard.paths import STATE_REASON, SYNC_REASON, Paths
from cuggino.guard.policy import Policy


@pytest.fixture
def project(tmp_path: Path) -> Path:
    """Create a project with all protected paths, and links that lead everywhere."""
    root = tmp_path / "home" / "project"
    for folder in ("src", "sub", ".autonoe", ".cuggino/wip", ".git/hooks", ".claude", "docs/specs"):
        (root / folder).mkdir(parents=True)
    (root / "src" / "deep").mkdir()
    for name, target in (
        ("state", ".autonoe"),
        ("out", "/etc"),
        ("dangling", "/home/nobody/nope"),
        ("lib", "src"),
        ("loop", "loop"),
        ("here", "/proc/self/cwd"),
        ("deep", "src/deep"),
        ("status", ".autonoe/status.json"),
        ("chain", "state"),
    ):
        (root / name).symlink_to(target)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "link").symlink_to(root)
    return root


def paths(project: Path, **rules: Any) -> Paths:
    """Return the path rules of a policy."""
    policy = Policy(project=str(project))._replace(**rules)
    return Paths(policy, temporary=[str(project.parent.parent / "scratch")])


SPELLINGS = (
    "{0}", "./{0}", "src/../{0}", "src//..//{0}", ".//./{0}", "lib/../{0}", "{project}/{0}",
    "{project}//src/.././{0}", "{link}/{0}", "../project/{0}", "{project}/../project/{0}",
    "src/deep/../../{0}", "missing/../{0}",
)  # fmt: skip


@pytest.mark.parametrize("spelling", SPELLINGS)
@pytest.mark.parametrize(
    "target",
    [".autonoe/x", ".autonoe", ".git/hooks/pre-commit", ".AUTONOE/x", ".claude/settings.json"],
)
def test_something_protected_is_denied_in_every_spelling(
    project: Path, spelling: str, target: str
) -> None:
    """A path into a protected folder may not be written or removed in any spelling."""
    path = spelling.format(target, project=project, link=project.parent.parent / "link")
    guard = paths(project)
    assert guard.write(path, [str(project)])
    assert guard.remove(path, [str(project)])


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_a_file_of_the_project_is_allowed_in_every_spelling(project: Path, spelling: str) -> None:
    """An ordinary file may be written and removed in every spelling."""
    path = spelling.format("src/a.py", project=project, link=project.parent.parent / "link")
    guard = paths(project)
    assert "" == guard.write(path, [str(project)])
    assert "" == guard.remove(path, [str(project)])


@pytest.mark.parametrize(
    "path",
    [
        "state/x", "chain/x", "status", "sub/.autonoe/x", ".autonoe./x", ".autonoe /x",
        ".Autonoe", "deep/../../.autonoe/x", ".auto\u200bnoe/x", "．autonoe/x",
        "sub/.git/config", ".mcp.json", ".MCP.JSON", ".cuggino/wip/x.plan.md", "lib/.claude/a",
        "/etc/.autonoe/x",
    ],
)  # fmt: skip
def test_names_and_links_do_not_get_around_the_protection(project: Path, path: str) -> None:
    """Links, case, blanks, invisible letters and protected names of other folders are denied."""
    assert paths(project).write(path, [str(project)])


@pytest.mark.parametrize(
    "path",
    [".autonoe-note.md", ".autonoe2/x", ".gitignore", ".github/w.yml", "autonoe/x",
     "src/.mcp.jsonc", "lib/new", "deep/new", "src/.autonoe.md", "a b/c",
     "文档/x", "a~/y"],
)  # fmt: skip
def test_names_that_only_look_like_protected_ones_are_allowed(project: Path, path: str) -> None:
    """A longer name is another name, and links within the project may be written through."""
    assert "" == paths(project).write(path, [str(project)])


@pytest.mark.parametrize(
    "path",
    ["../x", "/etc/passwd", "out/x", "dangling", "out/../etc/x", "lib/../../x", "here/x", "..",
     "/proc/self/cwd/src/x", "/dev/sda", "/dev/tcp/a/1", "/dev/fd/3", "/dev/stdin", "/",
     "{project}x",      "{project}/../x", "src/../../x", "/var/tmp/x",
     str(Path("/proc/self", "root", "etc/x"))],
)  # fmt: skip
def test_paths_outside_the_project(project: Path, path: str) -> None:
    """Nothing outside the project and temporary folders may be written (AUT-170)."""
    path = path.format(project=project)
    expected = f"Path '{path}' escapes project directory"
    assert expected in paths(project).write(path, [str(project)])


@pytest.mark.parametrize("path", ["loop", "loop/x", "src/../loop/x"])
def test_a_circular_link_is_denied(project: Path, path: str) -> None:
    """A circular link is denied with AUT-170's message."""
    expected = "Symlink target escapes project directory"
    assert expected in paths(project).write(path, [str(project)])


@pytest.mark.parametrize(
    "path", ["", "~/x", "~", "~root/x", "a\x00b", "a\nb", "a\rb", "\x1b[0m", "\ud800", "a" * 5000]
)
def test_unusual_paths_are_denied(project: Path, path: str) -> None:
    """Control characters, lone surrogates, tildes and empty text are denied."""
    assert paths(project).write(path, [str(project)])
    assert paths(project).remove(path, [str(project)])


def test_devices_may_be_written_but_not_removed(project: Path) -> None:
    """The usual devices may be written but not removed."""
    guard = paths(project)
    for path in ("/dev/null", "/dev/stdout", "/dev/stderr", "/dev/tty", "/dev/fd/1", "/dev/fd/2"):
        assert "" == guard.write(path, [])
        assert guard.remove(path, [])


def test_scratch_files_are_allowed_with_absolute_paths(project: Path) -> None:
    """Files in a temporary folder may be written, but the folder itself must stay."""
    scratch = project.parent.parent / "scratch"
    guard = paths(project)
    assert "" == guard.write(f"{scratch}/a/b", [])
    assert "" == guard.remove(f"{scratch}/a", [])
    assert guard.remove(str(scratch), [])
    assert guard.write(f"{scratch}/.autonoe/x", [])


def test_a_project_in_a_temporary_folder(tmp_path: Path) -> None:
    """Next to a project in a temporary folder nothing is scratch, in any spelling."""
    project = tmp_path / "own" / "project"
    project.mkdir(parents=True)
    guard = Paths(Policy(project=str(project)), temporary=[str(tmp_path)])
    assert "" == guard.write(str(tmp_path / "x"), [])
    assert guard.write(str(tmp_path / "own" / "x"), [])
    for path in ("../x", "../../x", f"{project}/../../x"):
        assert "escapes" in guard.write(path, [str(project)])
    assert frozenset() == guard.enter("../..", [str(project)])
    assert guard.remove(str(tmp_path / "own"), [])


def test_a_relative_path_must_be_allowed_in_every_folder(project: Path) -> None:
    """A relative path is denied if one possible folder forbids it, or if the folder is unknown."""
    guard = paths(project)
    assert "" == guard.write("x", [str(project), str(project / "src")])
    assert guard.write("x", [str(project), str(project / ".autonoe")])
    assert "Cannot tell in which folder" in guard.write("x", [])
    assert "" == guard.write(f"{project}/x", [])
    assert guard.write("x", ["src"])


@pytest.mark.parametrize(
    "path", [".", "..", "/", "{project}", "src/..", "{link}", "docs", "docs/specs"]
)
def test_folders_with_protected_content_may_not_be_removed(project: Path, path: str) -> None:
    """Removing a folder removes its protected content, so it is denied."""
    path = path.format(project=project, link=project.parent.parent / "link")
    assert paths(project, read_only=("docs/specs",)).remove(path, [str(project)])


def test_possible_folders_after_entering(project: Path) -> None:
    """After entering a link there are two possible folders: by name and by target."""
    guard = paths(project)
    home = [str(project)]
    assert frozenset({f"{project}/src"}) == guard.enter("src", home)
    assert frozenset({f"{project}/deep", f"{project}/src/deep"}) == guard.enter("deep", home)
    behind = guard.enter("deep", home)
    assert frozenset({str(project), f"{project}/src"}) == guard.enter("..", behind)
    assert frozenset() == guard.enter("~", home)
    assert frozenset({"/"}) == guard.enter("/", home)
    assert frozenset() == guard.enter("src", [])
    assert frozenset() == guard.enter("a\nb", home)


def test_a_grant_allows_only_its_file(project: Path) -> None:
    """A planner may write its plan although it is protected."""
    plan = ".cuggino/wip/x.plan.md"
    guard = paths(project, role="planning", writable=(), granted=(plan,))
    home = [str(project)]
    assert "" == guard.write(plan, home)
    assert "" == guard.write(f"{project}/src/../{plan}", home)
    assert "" == guard.remove(plan, home)
    for path in ("src/a.py", ".cuggino/wip/y.plan.md", ".cuggino/wip", f"{plan}x", ".", "x.md"):
        assert f"the planning agent may write only {plan}" in guard.write(path, home)
    assert "" == guard.write(str(project.parent.parent / "scratch" / "notes"), home)


def test_a_link_does_not_widen_a_grant(project: Path) -> None:
    """A role cannot widen its grant by replacing the file with a link."""
    (project / ".cuggino" / "wip" / "x.plan.md").symlink_to("../../src/a.py")
    (project / "specs").symlink_to("src")
    guard = paths(project, writable=("specs",), granted=(".cuggino/wip/x.plan.md",))
    assert guard.write(".cuggino/wip/x.plan.md", [str(project)])
    assert guard.write("specs/a.py", [str(project)])


def test_a_role_without_files(project: Path) -> None:
    """The audit agent may write nothing in the project."""
    guard = paths(project, role="audit", writable=())
    expected = "the audit agent may write nothing in the project"
    assert expected in guard.write("src/a.py", [str(project)])


def test_read_only_paths(project: Path) -> None:
    """An implementer may not write the specifications, by a link or in another case either."""
    (project / "s").symlink_to("docs/specs")
    guard = paths(project, role="implementing", read_only=("docs/specs/",))
    for path in ("docs/specs/a.md", "s/a.md", "DOCS/Specs/a.md", "docs/specs", "s"):
        assert "the implementing agent must not change docs/specs/" in guard.write(
            path, [str(project)]
        )
    assert "" == guard.write("docs/other.md", [str(project)])


def test_sync_sessions_write_the_note_and_scratch_files_only(project: Path) -> None:
    """A sync session may write only the project's note, no other file of that name (AUT-223)."""
    guard = paths(project, mode="sync")
    home = [str(project)]
    assert "" == guard.write(".autonoe-note.md", home)
    assert SYNC_REASON == guard.write("src/.autonoe-note.md", home)
    assert SYNC_REASON == guard.write("src/a.py", home)
    assert STATE_REASON == guard.write(".autonoe/x", home)
    assert guard.write("/etc/.autonoe-note.md", home)


def test_a_protected_entry_may_be_a_path(project: Path) -> None:
    """An entry with a slash protects that place and keeps its parents from being removed."""
    guard = paths(project, protected=("src/deep/",))
    home = [str(project)]
    assert guard.write("src/deep/x", home)
    assert guard.write("deep/x", home)
    assert guard.remove("src", home)
    assert "" == guard.write("src/other", home)
    assert "" == guard.write("sub/deep/x", home)


def test_tmpdir(project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """`TMPDIR` is writable unless it contains a home folder."""
    guarded = Policy(project=str(project))
    own = "/var/lib/cuggino-scratch"
    monkeypatch.setenv("TMPDIR", own)
    assert "" == Paths(guarded).write(f"{own}/x", [])
    home = SimpleNamespace(pw_dir=f"{own}/home")
    monkeypatch.setattr(pwd, "getpwuid", lambda _uid: home)
    assert Paths(guarded).write(f"{own}/x", [])
    monkeypatch.setenv("TMPDIR", "/")
    assert Paths(guarded).write("/etc/x", [])
    assert "" == Paths(guarded).write("/tmp/x", [])
