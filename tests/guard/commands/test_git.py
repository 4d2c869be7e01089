"""git commands: the protected paths that they take away, slots, and verifying sessions."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path
from typing import Literal

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from cuggino.guard.commands.base import Call, Site, Trail, plain_word
from cuggino.guard.commands.git import taken
from cuggino.guard.paths import Paths
from cuggino.guard.policy import Level, Policy
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.shfmt import find_shfmt
from cuggino.guard.tools import judge
from tests.guard.judging import reason_of

PROTECTED = (".autonoe", ".cuggino.json", "docs/specs")
VERBS = (
    *("stash", "stash -u", "stash push", "stash push -u", "stash push -a", "stash save -u"),
    *("checkout", "checkout other", "checkout HEAD~1", "checkout -f", "checkout -f other"),
    *("restore", "restore -s other", "restore -SW -s HEAD~1", "restore -S", "reset --hard other"),
    *("clean -fd", "clean -fdx", "clean -ffdX", "clean -d", "rm -rf", "rm -rf --cached"),
    *("reset", "mv", "mv -f", "mv -k", "switch other", "switch -f other", "worktree add"),
    *("sparse-checkout set", "checkout-index -f", "checkout-index -f -a", "commit -m x", "add"),
)
SPECS = (
    *("", ".", "./", "*", "src", "docs", "docs/", "docs/specs", "docs/*", "d?cs", "[d]ocs", ":/"),
    *(".autonoe", ".autonoe/", ".autonoe/status.json", ".auto*", "*.json", "**/*.json", "*s*"),
    *(":(top).autonoe", ":/.autonoe", ":(glob)**/status.json", ":(glob).autonoe/*", ":(glob)*"),
    *(":(icase).AUTONOE", ":(icase,glob)DOCS/**", ":(literal).autonoe", ":(attr:x)docs", ":"),
    *(":!src", ":^docs", ":(exclude).autonoe", ":(exclude,top)docs", ":!*.json", ":!.auto*"),
    *("src/../docs", "../.autonoe", "../docs/specs", ":(top,icase)Docs/Specs", "new", "../new"),
    *("{root}/docs", "{root}/.cuggino.json", "{root}", ".cuggino.jso[n]", "\\.autonoe"),
)
BEFORE = (
    *((), ("-C", "src"), ("-C", "src", "-C", ".."), ("--git-dir=.git", "--work-tree=.")),
    *(("--literal-pathspecs",), ("--icase-pathspecs",), ("-C", "docs/specs"), ("-c", "a.b=c")),
)
LINES = st.tuples(
    st.sampled_from(BEFORE),
    st.sampled_from(VERBS),
    st.sampled_from(("", "--")),
    st.lists(st.sampled_from(SPECS), max_size=3),
)


def git(project: Path, *args: str) -> None:
    env = {**os.environ, "GIT_CONFIG_GLOBAL": "/dev/null", "GIT_CONFIG_SYSTEM": "/dev/null"}
    subprocess.run(["git", *args], cwd=project, env=env, capture_output=True, timeout=20)


def write(project: Path, text: str, *names: str) -> None:
    for name in names:
        (project / name).parent.mkdir(parents=True, exist_ok=True)
        (project / name).write_text(text, encoding="utf-8")


@pytest.fixture(scope="module", params=["tracked", "untracked", "ignored"])
def template(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a repository whose protected files are tracked and changed, untracked or ignored."""
    project = tmp_path_factory.mktemp("template") / "project"
    write(project, "1", "src/a", "src/b", "docs/a", "a")
    own = (".autonoe/status.json", ".cuggino.json", "docs/specs/a.md")
    git(project, "init", "-q", "--template=", "-b", "main")
    git(project, "config", "user.email", "a@b.c")
    git(project, "config", "user.name", "a")
    if request.param == "tracked":
        write(project, "one", *own)
    if request.param == "ignored":
        write(project, ".autonoe/\n/.cuggino.json\ndocs/specs\n", ".gitignore")
    git(project, "add", "-A")
    git(project, "commit", "-qm", "1")
    git(project, "checkout", "-qb", "other")
    write(project, "two", *own, "src/a")
    git(project, "add", "-f", *(("src",) if request.param == "ignored" else (".",)))
    git(project, "commit", "-qm", "2")
    git(project, "checkout", "-qf", "main")
    write(project, "three", "src/a")
    git(project, "commit", "-qam", "3")
    write(project, "changed!", *own, "src/new")
    return project


def contents(project: Path) -> dict[str, dict[str, bytes]]:
    """Return the files of each protected path."""
    found: dict[str, dict[str, bytes]] = {}
    for name in PROTECTED:
        place = project / name
        files = [place] if place.is_file() else place.rglob("*")
        found[name] = {str(file): file.read_bytes() for file in files if file.is_file()}
    return found


def site_of(project: Path) -> Site:
    policy = Policy(str(project), protected=PROTECTED[:2], read_only=PROTECTED[2:], level="roles")
    return Site(
        *(policy, Paths(policy, temporary=[]), frozenset({str(project)}), frozenset(), frozenset()),
        *(Trail(), lambda _words, _site: "", lambda _text, _site: ""),
    )


@pytest.mark.real_agent
@settings(
    deadline=None,
    max_examples=80,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)
@example(line=((), "clean -ffdX", "", ["\\.autonoe"]))
@example(line=((), "clean -ffdX", "", ["src", ":^docs"]))
@example(line=(("-C", "src"), "clean -fdx", "", [":(top).autonoe", ":!src"]))
@example(line=((), "mv", "", ["{root}/docs", ":^docs"]))
@example(line=((), "checkout other", "", [":!src"]))
@example(line=(("-C", "docs/specs"), "rm -rf", "", []))
@given(line=LINES)
def test_whatever_git_takes_away_is_named(
    line: tuple[tuple[str, ...], str, str, list[str]], template: Path, tmp_path: Path
) -> None:
    """No protected path changes that the function does not name, whatever the pathspecs are."""
    project = tmp_path / "project"
    shutil.rmtree(project, ignore_errors=True)
    shutil.copytree(template, project, copy_function=shutil.copy2)
    before, verb, mark, specs = line
    args = [*before, *verb.split(), *filter(None, [mark])]
    args += [spec.replace("{root}", str(project)) for spec in specs]
    named = taken(Call("git", tuple(map(plain_word, args)), site_of(project))).named
    old = contents(project)
    git(project, *args)
    new = contents(project)
    assert {name for name in PROTECTED if old[name] != new[name]} <= set(named)


TAKES = (
    *("git stash push -u -- .autonoe", "git stash -u -- .autonoe", "git stash push .autonoe"),
    *("git stash push -u -- ':/' ':!src'", "git stash push -u ':(icase).AUTO*'", "git stash -u"),
    *("cd src && git stash push -u -- ../docs", "git -C src stash push -u ':(top)docs'"),
    *("git --git-dir=.git --work-tree=. stash push -u docs", "git stash", "bash -c 'git stash'"),
    *("git checkout -- docs", "git checkout other docs/specs"),
    *("git restore -s other ':(glob)d*/**'", "git rm -r docs", "git mv docs x"),
    *("git mv src .autonoe", "git worktree add .autonoe/x", "git checkout --pathspec-from-file=a"),
    "git sparse-checkout set src",
)
KEEPS = (
    *("git stash push -u -- src", "git stash push -- . ':!.autonoe' ':!.cuggino.json' ':!docs'"),
    *("git checkout -- src", "git checkout other", "git switch other"),
    *("git restore --staged docs", "git reset -- .autonoe", "git rm --cached docs/specs/a.md"),
    *("git mv src/a src/c", "git stash pop", "git add .", "git commit -am x"),
    *("git worktree add src/x", "git stash list", "git merge other"),
)


@pytest.mark.parametrize("template", ["tracked"], indirect=True)
def test_commands_that_take_protected_files_away_are_denied(template: Path) -> None:
    """A command is denied for what it loses, unless a sandbox keeps it from writing there."""
    policy = site_of(template).policy
    assert [*TAKES] == [command for command in (*TAKES, *KEEPS) if reason_of(command, policy)]
    confined = policy._replace(confined=True)
    assert [] == [command for command in TAKES if reason_of(command, confined)]


DENIED = (
    *("git push", "git push origin HEAD:main", "git push ../../project HEAD:refs/heads/main"),
    *("git send-pack ../../project main", "git -C ../../project push . HEAD:main"),
    *("git lfs push origin main", "git -C ../../project commit -am x"),
    *("git -C ../../project stash", "git -C ../../project update-ref refs/heads/main HEAD"),
    *("git -C ../../project config core.hooksPath x", "git -C ../../project config user.name x"),
    *("git -C ../../project fetch ../slots/slot-1 HEAD:refs/heads/x", "git -C ../../project gc"),
    *("git -C ../slot-2 reset --hard", "cd ../../project && git commit -am x"),
    "cd .. && git -C slot-2 checkout -b x",
    "git --git-dir=../../project/.git commit --allow-empty -m x",
    "git --work-tree=../../project checkout -f",
    "GIT_DIR=../../project/.git git commit --allow-empty -m x",
    "env GIT_DIR=../../project/.git git commit --allow-empty -m x",
    "export GIT_DIR=../../project/.git; git commit --allow-empty -m x",
    *("git config --global user.name x", "git config -f ../../project/.git/config user.name x"),
    *("git clone . ../x", "git clone . ../slot-2/x", "git worktree add ../x", "git init ../x"),
    *("echo x > ../slot-2/a.txt", "cd .. && echo x > slot-2/a.txt"),
    "cp a.txt ../../project/a.txt",
)
ALLOWED = (
    *("git stash", "git stash pop", "git config user.name x"),
    *("git -C ../../project config --get user.name", "git commit -am x", "git -C src commit -m x"),
    *("git checkout -b x", "git merge x", "git fetch ../../project main"),
    *("git -C ../../project log", "git -C ../slot-2 diff HEAD", "git clone . vendor/x"),
)


def slot_policy(folder: Path, level: Level, *, destructive: bool) -> Policy:
    slot = folder / "slots" / "slot-1"
    for place in (slot / ".git", slot / "src", slot.parent / "slot-2", folder / "project" / ".git"):
        place.mkdir(parents=True)
    return role_policy(
        "implementing",
        project=slot,
        level=level,
        allow_destructive=destructive,
        apart=(slot.parent, folder / "project"),
    )


@pytest.mark.parametrize("destructive", [False, True])
def test_nothing_outside_of_the_slot_changes(tmp_path: Path, destructive: bool) -> None:
    """Neither the user's project nor another slot, also if destructive commands are allowed."""
    found = slot_policy(tmp_path, "roles", destructive=destructive)
    assert [] == [command for command in DENIED if not reason_of(command, found)]
    assert [] == [command for command in ALLOWED if reason_of(command, found)]


def test_the_full_guard_pushes_nothing_either(tmp_path: Path) -> None:
    """It denies the same commands."""
    found = slot_policy(tmp_path, "full", destructive=True)
    assert [] == [command for command in DENIED if not reason_of(command, found)]


def test_the_project_of_a_slot_may_be_a_folder_of_it(tmp_path: Path) -> None:
    """git works in the whole repository of the slot, as it does in that of a project."""
    found = slot_policy(tmp_path, "roles", destructive=False)
    inner = found._replace(project=f"{found.project}/src")
    assert "" == reason_of("cd .. && git commit -am x", inner)
    assert reason_of("cd ../.. && git -C slot-2 commit -am x", inner)


def test_outside_of_slots_it_is_as_before(tmp_path: Path) -> None:
    """The rules are those of slots alone."""
    found = slot_policy(tmp_path, "roles", destructive=True)._replace(apart=())
    assert "" == reason_of("git push origin HEAD:main", found)


CHANGES = (
    *("git stash", "git stash pop", "git checkout .", "git checkout main", "git switch main"),
    *("git reset --hard", "git reset --har HEAD", "git reset --keep x", "git reset --merge"),
    *("git reset $MODE", "git restore .", "git merge x", "git rebase main", "git pull", "git am x"),
    *("git cherry-pick x", "git revert x", "git apply x", "git rm a", "git mv a b", "git clean -f"),
    *("git read-tree x", "ls && git stash", "sh -c 'git stash'", "git -C . stash"),
)
RECORDS = (
    *("git add .autonoe-note.md", "git commit -m note", "git commit -am sync"),
    *("git reset", "git reset HEAD a.txt", "git reset --mixed", "git tag v1", "git fetch"),
    *("git status", "git log -3", "git diff", "git stash list", "git apply --check x"),
)


def verdict(command: str, role: Literal["verify", "sync"], project: Path) -> str:
    policy = role_policy(role, project=project, level="full")
    call = {"command": command}
    return judge(policy, "Bash", call, str(project.resolve()), shfmt=find_shfmt()).decision


@pytest.mark.parametrize("role", ["verify", "sync"])
@pytest.mark.parametrize("command", CHANGES)
def test_replacing_files_is_denied(
    command: str, role: Literal["verify", "sync"], tmp_path: Path
) -> None:
    """A command that would replace the verified files is denied."""
    assert "deny" == verdict(command, role, tmp_path)


@pytest.mark.parametrize("role", ["verify", "sync"])
@pytest.mark.parametrize("command", RECORDS)
def test_inspecting_and_committing_the_note_is_allowed(
    command: str, role: Literal["verify", "sync"], tmp_path: Path
) -> None:
    """Inspecting and committing the note are allowed."""
    assert "allow" == verdict(command, role, tmp_path)
