"""The protected paths that git commands take away, compared with what git does."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings, strategies as st

from cuggino.guard.commands.base import Call, Site, Trail, plain_word
from cuggino.guard.commands.git import taken
from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
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
    *(
        "git checkout -- docs",
        "git checkout other docs/specs",
        "git restore -s other ':(glob)d*/**'",
    ),
    *("git rm -r docs", "git mv docs x", "git mv src .autonoe", "git worktree add .autonoe/x"),
    *("git checkout --pathspec-from-file=a", "git sparse-checkout set src"),
)
KEEPS = (
    *("git stash push -u -- src", "git stash push -- . ':!.autonoe' ':!.cuggino.json' ':!docs'"),
    *("git checkout -- src", "git checkout other", "git switch other", "git restore --staged docs"),
    *(
        "git reset -- .autonoe",
        "git rm --cached docs/specs/a.md",
        "git mv src/a src/c",
        "git stash pop",
    ),
    *(
        "git add .",
        "git commit -am x",
        "git worktree add src/x",
        "git stash list",
        "git merge other",
    ),
)


@pytest.mark.parametrize("template", ["tracked"], indirect=True)
def test_commands_that_take_protected_files_away_are_denied(template: Path) -> None:
    """A command is denied for what it loses, unless a sandbox keeps it from writing there."""
    policy = site_of(template).policy
    assert [*TAKES] == [command for command in (*TAKES, *KEEPS) if reason_of(command, policy)]
    confined = policy._replace(confined=True)
    assert [] == [command for command in TAKES if reason_of(command, confined)]
