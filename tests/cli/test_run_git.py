"""`cuggino run` in a repository: dirty files, refused commits, gates, unchecked approvals."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Literal

import pytest

from cuggino.config import Config, save_config
from cuggino.events import RunEnded
from cuggino.runs import Runs
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.cli.rounds import APPROVES, PLANS, implements, reviews, works
from tests.git_project import GitProject, isolate_git
from tests.limits import LIMIT
from tests.processes.subscribers import eventually


@pytest.fixture
def repository(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., GitProject]:
    """Make a repository of these files, in one commit, the working directory."""

    def make(files: Mapping[str, str], **config: Any) -> GitProject:
        isolate_git(monkeypatch, tmp_path / "home")
        made = GitProject(tmp_path / "project")
        for name, text in {".specs/a.md": "# A\n", ".gitignore": IGNORED, **files}.items():
            made.write(name, text)
        settings = {"agent": "scripted:scenario.toml", "commit": True, "sandbox": "off", **config}
        save_config(made.root, Config.model_validate(settings))
        made.git("add", "--all")
        made.git("commit", "--quiet", "--message", "first")
        monkeypatch.chdir(made.root)
        return made

    return make


IGNORED = ".cuggino/\nscenario.toml\n"
"""What git ignores: an agent's scenario is no part of the work."""


@pytest.fixture
def project(repository: Callable[..., GitProject]) -> GitProject:
    """A project with two files that a person has changed."""
    made = repository({"mine.txt": "old\n", "both.txt": "old\n"}, guard="off")
    scenario(made)
    made.write("mine.txt", "mine\n")
    made.write("both.txt", "mine\n")
    return made


def scenario(project: GitProject, command: str = "true") -> None:
    work = f"echo work >>both.txt; echo work >new.txt; {command}"
    project.write("scenario.toml", PLANS + works(work) + APPROVES)


def changes(project: GitProject) -> set[str]:
    return set(project.git("show", "--format=", "--name-only").split())


def test_a_persons_file_stays_out(project: GitProject, cli: Cli) -> None:
    """It is named at the start; a file that both changed is named and committed."""
    said = cli("run", "--focus", "all", "--quiet")
    assert "Uncommitted before the run, so left out of commits: both.txt, mine.txt\n" in said
    assert "The next commit will include your uncommitted changes: both.txt\n" in said
    assert {"both.txt", "new.txt"} == changes(project)
    assert "mine\nwork\n" == project.git("show", "HEAD:both.txt")
    assert " M mine.txt\n" in project.git("status", "--porcelain")


def test_everything_as_before(project: GitProject, cli: Cli) -> None:
    """`--dirty commit` commits a person's files with the first task."""
    assert "ncommitted" not in cli("run", "--focus", "all", "--quiet", "--dirty", "commit")
    assert {"both.txt", "mine.txt", "new.txt"} == changes(project)


def test_refused(project: GitProject, cli: Cli) -> None:
    """`--dirty refuse` ends the run before an agent works; resumed, it looks again."""
    said = cli.both("run", "--focus", "all", "--dirty", "refuse", code=2)
    assert "there are uncommitted changes: both.txt, mine.txt" in said.err
    assert "--dirty keep" in said.err
    assert not (project.root / "new.txt").exists()
    assert 2 == main(["run", "--resume", "--dirty", "refuse"])
    assert "left out of commits: both.txt, mine.txt" in cli("run", "--resume", "--dirty", "keep")
    assert {"both.txt", "new.txt"} == changes(project)


def test_refused_until_it_is_clean(project: GitProject, cli: Cli) -> None:
    """A refused run is resumed once a person has committed; of a clean tree nothing is said."""
    assert 2 == main(["run", "--focus", "all", "--dirty", "refuse"])
    project.git("commit", "--quiet", "--all", "--message", "mine")
    cli.printed()
    assert "ncommitted" not in cli("run", "--resume", "--dirty", "refuse")
    assert {"both.txt", "new.txt"} == changes(project)


def test_a_rewritten_history(project: GitProject, cli: Cli) -> None:
    """The end of a run and its summary report that its start commit is lost."""
    base = project.git("rev-parse", "HEAD").strip()
    scenario(project, "git checkout -q --orphan x && git commit -q -m x")
    project.git("commit", "--quiet", "--all", "--message", "mine")
    lost = project.git("rev-parse", "HEAD").strip()
    assert base != lost
    said = cli("run", "--focus", "all")
    assert f"The commit that the run began with, {lost[:12]}, is no longer in the history" in said
    assert f"  Rewritten  {lost[:12]}, the start of the run, left the history\n" in said


@pytest.mark.real_agent
def test_the_set_survives_kill_9(project: GitProject) -> None:
    """A resumed run knows the files that were dirty before its first process."""
    scenario(project, "test -e go || sleep 60")
    command = [sys.executable, "-m", "cuggino_cli", "run", "--json"]
    with subprocess.Popen(
        [*command, "--focus", "all"], stdout=subprocess.PIPE, env={**os.environ}
    ) as first:
        assert first.stdout is not None
        told: list[str] = []
        while "DirtyFilesKept" not in told:  # the agent may work before it is printed
            told.append(json.loads(first.stdout.readline())["_tag"])
        assert eventually(lambda: (project.root / "new.txt").exists())
        first.send_signal(signal.SIGKILL)
        told += [json.loads(line)["_tag"] for line in first.stdout]
    assert 1 == told.count("DirtyFilesKept")
    project.write("go")
    second = subprocess.run(
        [*command, "--resume"], stdout=subprocess.PIPE, check=True, timeout=LIMIT
    )
    events = [json.loads(line) for line in second.stdout.splitlines()]
    assert "DirtyFilesKept" not in [event["_tag"] for event in events]
    (mixed,) = [event for event in events if event["_tag"] == "DirtyFilesCommitted"]
    assert ["both.txt"] == mixed["paths"]
    assert {"both.txt", "new.txt", "go"} == changes(project)
    assert " M mine.txt\n" in project.git("status", "--porcelain")


HELLO = PLANS + implements("app.py", "print('hello')") + APPROVES
REFUSED = "the work is not committed: git commit exited with code 1: no: app.py has no tests"


@pytest.fixture
def hello(repository: Callable[..., GitProject]) -> GitProject:
    """A repository with a specification and an agent that needs one round."""
    return repository({".gitignore": ".cuggino/\n", "scenario.toml": HELLO})


@pytest.mark.real_agent
def test_refused_by_a_hook(hello: GitProject, cli: Cli) -> None:
    """A run whose commits are refused exits with 1; mended and resumed, it commits and ends."""
    hello.hook("pre-commit", "echo 'no: app.py has no tests' >&2; exit 1")
    assert REFUSED in " ".join(cli.err("run", "--focus", "a", code=1).split())
    assert 1 == hello.count()

    hello.hook("pre-commit", "exit 0")
    tags = [json.loads(line)["_tag"] for line in cli("run", "--resume", "--json").splitlines()]
    assert ["CommitPerformed", "LoopApproved"] == tags[-2:]
    assert not {"PlanningStart", "ImplementingStart", "ReviewingStart"} & set(tags)
    assert "Say hello\n" == hello.message()
    assert "app.py" in hello.committed()


@pytest.mark.parametrize(
    ("hinder", "reason"),
    [
        ("identity", "no user.name and user.email to commit with, but commit is on"),
        ("lock", "the repository is locked (.git/index.lock), but commit is on"),
        ("conflict", "unresolved merge conflicts in app.py, but commit is on"),
        ("signature", "commits cannot be signed: "),
        ("owner", "detected dubious ownership in repository at"),
        (".git", ".git cannot be written, but commit is on"),
        ("specs", "holds no specification"),
        (".specs", ".specs cannot be read"),
    ],
)
def test_what_is_known_before(
    hinder: str, reason: str, hello: GitProject, monkeypatch: pytest.MonkeyPatch, cli: Cli
) -> None:
    """A run that could not commit, or has nothing to build, starts no agent; doctor reports it."""
    match hinder:
        case "identity":
            hello.git("config", "--remove-section", "user")
            hello.git("config", "user.useConfigOnly", "true")
        case "lock":
            hello.write(".git/index.lock", "")
        case "conflict":
            blob = hello.git("rev-parse", "HEAD:.gitignore").strip()
            stages = "".join(f"100644 {blob} {stage}\tapp.py\n" for stage in (1, 2, 3))
            subprocess.run(
                ["git", "update-index", "--index-info"],
                cwd=hello.root,
                input=stages.encode(),
                check=True,
            )
        case "signature":
            hello.git("config", "commit.gpgSign", "true")
            hello.git("config", "gpg.format", "ssh")
            hello.git("config", "user.signingKey", str(hello.root / "none"))
        case "owner":
            monkeypatch.setenv("GIT_TEST_ASSUME_DIFFERENT_OWNER", "1")
        case "specs":
            (hello.root / ".specs" / "a.md").unlink()
        case _:  # root may do anything
            access = os.access
            denies = lambda path, mode: Path(path).name != hinder and access(path, mode)  # noqa: E731
            monkeypatch.setattr(os, "access", denies)
    assert reason in " ".join(cli.err("run", "--focus", "a").split())
    assert not (hello.root / ".cuggino").exists()
    told = " ".join("".join(cli.both("doctor", code=1)).split())
    assert reason.removesuffix(", but commit is on") in told


CHECK = "#!/bin/sh\ngrep -q hello app.py\n"
TEST = "def test_hello():\n    assert 1\n"


@pytest.fixture
def gated(repository: Callable[..., GitProject]) -> GitProject:
    """A repository with a check, a test and a specification."""
    specs = "# Hello\n\nThe old check goes away.\n"
    return repository({".specs/a.md": specs, "check.sh": CHECK, "tests/test_hello.py": TEST})


def played(
    gated: GitProject, scenario: str, *, gate: Literal["block", "clean", "context"] = "context"
) -> int:
    """Run the scenario once around; return the exit code."""
    gated.write("scenario.toml", scenario)
    config = Config(
        agent="scripted:scenario.toml",
        check_command="sh check.sh",
        gate=gate,
        commit=True,
        max_iterations=1,
        sandbox="off",
    )
    save_config(gated.root, config)
    return main(["run", "--focus", "a"])


WEAKENS = implements("check.sh", "exit 0\n")


def test_a_check_that_the_agent_rewrites(gated: GitProject, cli: Cli) -> None:
    """With `gate: block` the approval does not count, and the run prints why, measured."""
    assert 11 == played(gated, PLANS + WEAKENS + APPROVES, gate="block")
    printed = " ".join(cli.printed().out.split())
    assert "[Check] Completed (exit 0)" in printed
    assert "C1: fails with the versions of the start of check.sh" in printed
    assert "does not count: the check fails with the versions of the start of check.sh" in printed


def test_a_change_that_the_reviewer_accepts(gated: GitProject, cli: Cli) -> None:
    """With `gate: block` an approval counts that quotes what the specification says of it."""
    accepts = reviews("<APPROVED>C1: the old check goes away</APPROVED>")
    assert 0 == played(gated, PLANS + WEAKENS + accepts, gate="block")
    assert "Changed check.sh" in " ".join(cli.printed().out.split())


@pytest.mark.parametrize(
    ("agent", "path"),
    [
        (WEAKENS, "check.sh"),
        (implements("tests/test_hello.py", f"@pytest.mark.skip\n{TEST}"), "tests/test_hello.py"),
    ],
    ids=["check", "skipped test"],
)
def test_reported_by_default(agent: str, path: str, gated: GitProject, cli: Cli) -> None:
    """Without a gate the reviewer decides; the run and its summary name what was changed."""
    assert 0 == played(gated, PLANS + agent + APPROVES)
    printed = " ".join(cli.printed().out.split())
    assert f"[Loop] Files that approvals depend on changed: {path}" in printed
    assert f"Changed {path} (check, tests or specs)" in printed


@pytest.mark.parametrize(
    ("path", "code", "told"),
    [
        ("app.py", 0, "[Loop] Implementation approved!"),
        ("local.txt", 11, "does not count: the check exited with 1 on a clean checkout"),
    ],
)
def test_a_clean_checkout(path: str, code: int, told: str, gated: GitProject, cli: Cli) -> None:
    """With `gate: clean` the last check runs on what HEAD has, without what git ignores."""
    gated.write(".gitignore", ".cuggino/\nscenario.toml\nlocal.txt\n")
    gated.write("check.sh", f"test -f {path}\n")
    gated.git("commit", "--quiet", "--all", "--message=a check")
    assert code == played(gated, PLANS + implements(path, "hello\n") + APPROVES, gate="clean")
    printed = " ".join(cli.printed().out.split())
    assert "[Check] Running: sh check.sh (on a clean checkout)" in printed
    assert told in printed


@pytest.fixture
def reviewed(repository: Callable[..., GitProject]) -> GitProject:
    return repository({"scenario.toml": PLANS + implements("a.txt", "a\n") + APPROVES})


def _run(reviewed: GitProject, *options: str, **settings: Any) -> None:
    config = {"agent": "scripted:scenario.toml", "maxIterations": 1, "sandbox": "off", **settings}
    save_config(reviewed.root, Config.model_validate(config))
    assert 0 == main(["run", "--focus", "a", *options])


def _printed(cli: Cli, *args: str) -> str:
    cli.printed()
    assert main([*args]) in (0, 3)  # 3: `status` found nothing at work
    return " ".join(cli.printed().out.split())


def test_unchecked(reviewed: GitProject, cli: Cli) -> None:
    """With a check that does not decide, each view says so."""
    _run(reviewed, checkCommand="test -d .specs")
    ended = " ".join(cli.printed().out.split())
    assert "[Loop] Implementation approved, unchecked" in ended
    assert "[Summary] Approved, unchecked" in ended
    assert 'set checkCommand and "gate": "block"' in ended
    assert "[Check] An approval counts even if `test -d .specs` fails (gate: context)" in ended
    (run,) = Runs(reviewed.root).all()
    for args in (["runs"], ["runs", "show", run.short_id], ["status"]):
        assert "approved, unchecked" in _printed(cli, *args), args
    assert "Approved, unchecked" in _printed(cli, "runs", "replay", run.short_id)
    for args in (["runs", "list", "--json"], ["runs", "show", run.short_id, "--json"]):
        found = json.loads(_printed(cli, *args))
        assert ("approved", False) == (found["state"], found["checked"])
    last = json.loads(_printed(cli, "status", "--json"))["last"]
    assert ("approved", False) == (last["state"], last["checked"])
    assert "approved, unchecked" in _page(reviewed, cli)


def test_checked(reviewed: GitProject, cli: Cli) -> None:
    """With a gate, an approval is one, and nothing is said of it."""
    _run(reviewed, checkCommand="test -d .specs", gate="block")
    assert "unchecked" not in cli.printed().out
    found = json.loads(_printed(cli, "runs", "list", "--json"))
    assert ("approved", True) == (found["state"], found["checked"])
    assert "unchecked" not in _printed(cli, "runs") + _page(reviewed, cli)


def test_events(reviewed: GitProject, cli: Cli) -> None:
    """The events of a run say that its check does not decide, and that it cannot fail."""
    check = "test -d .specs || true"
    _run(reviewed, "--json", checkCommand=check)
    events = [json.loads(line) for line in cli.printed().out.splitlines()]
    tags = [event["_tag"] for event in events]
    assert tags.index("CheckCannotFail") < tags.index("IterationStart")
    assert tags.count("CheckCannotFail") == tags.count("CheckDoesNotDecide") == 1
    found = next(event for event in events if event["_tag"] == "CheckCannotFail")
    assert (check, "`|| true` hides the failure of `test -d .specs`") == (
        found["command"],
        found["why"],
    )
    assert False is events[-1]["checked"]


def test_older_journals(reviewed: GitProject, cli: Cli) -> None:
    """A journal without the field shows the plain word: it is unknown whether a check decided."""
    _run(reviewed)
    ended = " ".join(cli.printed().out.split())
    assert "[Summary] Approved, unchecked" in ended and "An approval counts" not in ended
    (path,) = (reviewed.root / ".cuggino/journal").glob("*.jsonl")
    lines = [json.loads(line) for line in path.read_text().splitlines()]
    for line in lines:
        line["event"].pop("checked", None)
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert None is RunEnded.model_validate(lines[-1]["event"]).checked
    assert "unchecked" not in _printed(cli, "runs") + _page(reviewed, cli)
    found = json.loads(_printed(cli, "runs", "list", "--json"))
    assert ("approved", None) == (found["state"], found["checked"])


def _page(reviewed: GitProject, cli: Cli) -> str:
    page = reviewed.root.parent / "page.html"
    _printed(cli, "report", "--output", str(page))
    return page.read_text(encoding="utf-8")
