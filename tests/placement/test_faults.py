"""Workers that come back, messages that make no sense, and a shared repository out of reach."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from reactivex import Observable, concat, defer, operators as ops
from reactivex.subject import ReplaySubject

from cuggino.agents.base import SpawnOptions
from cuggino.errors import ClusterLost, ConfigError, Fenced, StorageError
from cuggino.events import WatchItemRetry
from cuggino.placement.wire import Failed, decode, encode
from cuggino.testing import Do, Item, Say, Write
from cuggino.testing.acts import session_of
from tests.placement.agent import PLAYS, sessions
from tests.placement.linked import Attempt, ClusterProject

FULL = ["planning", "implementing", "reviewing"]


@pytest.mark.real_agent
def test_fence(project: ClusterProject) -> None:
    """A worker that was cut off and comes back cannot push over the attempt that took over."""
    taken: ReplaySubject[str] = ReplaySubject()
    ended: ReplaySubject[str] = ReplaySubject()

    def zombie(options: SpawnOptions) -> Observable[object]:
        cut = [Do(lambda _: project.link.cut(project.link.attempts[0]))]
        work: Sequence[Item] = [Write("zombie.txt", "z\n"), Say("<DONE>Do it wrong</DONE>")]
        claimed = taken.pipe(ops.take(1), ops.ignore_elements())
        return concat(session_of(cut, options), claimed, defer(lambda _: session_of(work, options)))

    def owner(options: SpawnOptions) -> Observable[object]:
        taken.on_next("taken")
        work: Sequence[Item] = [Write("one.txt", "one\n"), Say("<DONE>Do one</DONE>")]
        over = ended.pipe(ops.take(1), ops.ignore_elements())
        return concat(over, defer(lambda _: session_of(work, options)))

    PLAYS["one", "implementing"] = [zombie, owner]
    project.link.when_text('{"error"', lambda _: ended.on_next("ended"))
    project.item("one")
    project.watch()
    assert ["one"] == project.landed()
    first, second = project.link.attempts
    failed = decode(first.said[-1])
    assert isinstance(failed, Failed)
    assert isinstance(failed.error, Fenced)
    assert not any('"_tag":"WatchCandidate"' in text for text in first.said)
    assert any('"_tag":"WatchCandidate"' in text for text in second.said)
    assert "zombie.txt" not in project.git.committed()
    assert ["planning", "implementing", "implementing", "reviewing"] == sessions("one")


NONSENSE = [
    "no JSON",
    "[]",
    '{"_tag":"ImplementingStart","iteration":"many"}',
    '{"_tag":"WatchLanded","filename":"one.md","commit":"1","trunk_was":"2"}',
    '{"_tag":"WatchSlotPrepared","filename":"two.md","slot":1,"folder":"/","base":"1"}',
    json.dumps({"file": "../settings", "start": None, "content": "c"}),
    json.dumps({"gone": "journal/01a20886-dc05-752e-872a-41b48325e2ab.jsonl"}),
    json.dumps({"limits": ["never"]}),
]


@pytest.mark.real_agent
@pytest.mark.parametrize("text", [NONSENSE[0]])
def test_nonsense(project: ClusterProject, text: str) -> None:
    """An invalid message fails its item in one sentence, and ends the attempt on its worker."""

    def say(attempt: Attempt) -> None:
        for one in (text,):
            attempt.texts.on_next(one)

    project.link.when("PlanningStart", say)
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, WatchItemRetry)
    assert retry.message.startswith("the worker w1 has sent an invalid message: ")
    assert "\n" not in retry.message
    assert ["one"] == project.link.cancelled
    project.watch()
    assert ["one"] == project.landed()


def test_full_disk(project: ClusterProject) -> None:
    """A worker that cannot write is the failure of one item, not of all."""
    full = encode(Failed(StorageError("write", "there is no space left")))
    project.link.when("PlanningStart", lambda attempt: attempt.texts.on_next(full))
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, WatchItemRetry)
    assert ("on the worker w1: there is no space left", True) == (retry.message, retry.counted)


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_another_commit(project: ClusterProject) -> None:
    """A candidate must be the commit that the shared repository has."""

    def name_another(attempt: Attempt) -> None:
        text = json.loads(attempt.said[-1])
        text["commit"] = project.git.git("rev-parse", "HEAD").strip()
        attempt.texts.on_next(json.dumps(text, separators=(",", ":")))
        attempt.texts.on_completed()

    project.link.when("WatchCandidate", name_another)
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, WatchItemRetry)
    assert "is not the candidate that the worker has named" in retry.message
    assert "" == project.git.git("for-each-ref", "refs/cuggino/candidates")
    project.watch()
    assert ["one"] == project.landed()
    assert FULL == sessions("one")


def test_no_remote(project: ClusterProject) -> None:
    """A project without a shared repository is refused before anything begins."""
    project.git.git("remote", "remove", "origin")
    project.item("one")
    with pytest.raises(ConfigError, match=r"^there is no remote origin, ") as caught:
        project.watch()
    assert 2 == caught.value.exit_code
    assert "git remote add origin" in (caught.value.hint or "")


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_remote_out_of_reach(project: ClusterProject, tmp_path: Path) -> None:
    """A shared repository that cannot be read at the start is one error; nothing is lost."""
    away = tmp_path / "away"
    project.remote.rename(away)
    project.item("one")
    with pytest.raises(ConfigError, match=r"^the shared repository cannot be read: git ls-remote"):
        project.watch()
    away.rename(project.remote)
    project.watch()
    assert ["one"] == project.landed()


def moved(project: ClusterProject) -> Callable[[Attempt], object]:
    return lambda _: project.remote.rename(project.place / "away")


@pytest.mark.parametrize("tag", ["WatchSlotPrepared", "LoopApproved"])
@pytest.mark.real_agent  # watches on several machines: with the second command
def test_remote_lost_at_work(project: ClusterProject, tag: str) -> None:
    """An item whose work cannot be pushed fails, keeps its work, and lands later."""
    project.link.when(tag, moved(project))
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, WatchItemRetry)
    assert retry.message.startswith(("git push exited with", "git fetch exited with"))
    assert "\n" not in retry.message
    (project.place / "away").rename(project.remote)
    before = sessions("one")
    project.watch()
    assert ["one"] == project.landed()
    assert (before, FULL) == (FULL[: len(before)], list(dict.fromkeys(sessions("one"))))


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_refused_push(project: ClusterProject) -> None:
    """A server that refuses the refs is named as the cause, not another attempt."""
    hook = project.remote / "hooks" / "pre-receive"
    hook.write_text(
        "#!/bin/sh\nwhile read old new ref; do case $ref in */work/*) exit 1;; esac; done\n"
    )
    hook.chmod(0o755)
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, WatchItemRetry)
    why = "the shared repository refuses refs/cuggino/work/one.md: pre-receive hook declined"
    assert why == retry.message
    assert 1 == len(project.link.attempts)


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_lost_scheduler(project: ClusterProject) -> None:
    """Without a scheduler the watch ends; what was done is resumed by the next one."""
    project.link.when("ReviewingStart", lambda attempt: attempt.cut("scheduler"))
    project.item("one")
    with pytest.raises(ClusterLost):
        project.watch()
    project.link.attempts[0].is_over = True
    project.watch()
    assert ["one"] == project.landed()
    assert 1 == sessions("one").count("planning")


@pytest.mark.real_agent
def test_killed_git(project: ClusterProject) -> None:
    """Locks that a killed worker left in its clone block nothing."""
    project.item("one")
    project.watch()
    git = project.place / "workers" / "w1" / "1" / "project" / ".git"
    for name in ("refs/cuggino/trunk.lock", "packed-refs.lock", "config.lock"):
        (git / name).parent.mkdir(parents=True, exist_ok=True)
        (git / name).touch()
    project.item("two")
    project.watch()
    assert ["one", "two"] == project.landed()


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_worker_in_a_repository(project: ClusterProject) -> None:
    """A worker whose folder is in an unrelated repository leaves that repository alone."""
    workers = project.place / "workers"
    workers.mkdir()
    project.git.git("init", "-q", str(workers))
    (workers / "work.txt").write_text("precious\n")
    project.item("one")
    project.watch()
    assert ["one"] == project.landed()
    assert "precious\n" == (workers / "work.txt").read_text()


@pytest.mark.real_agent  # watches on several machines: with the second command
def test_repository_in_the_slot(project: ClusterProject) -> None:
    """Work that no commit can hold is the failure of its item, as in a slot."""

    def clone(options: SpawnOptions) -> Sequence[Item]:
        def nested(_: SpawnOptions) -> None:
            folder = options.cwd / "vendored"
            project.git.git("init", "-q", str(folder))
            (folder / "a").write_text("a\n")
            identity = ("-c", "user.name=A", "-c", "user.email=a@example.org")
            project.git.git("add", "a", cwd=folder)
            project.git.git(*identity, "commit", "-q", "-m", "a", cwd=folder)

        return [Do(nested), Write("one.txt", "one\n"), Say("<DONE>Do one</DONE>")]

    PLAYS["one", "implementing"] = [clone]
    project.item("one")
    retry = project.watch()[-1]
    assert isinstance(retry, WatchItemRetry)
    assert retry.message.startswith("the work holds files that cannot land")
    assert retry.message.endswith(": vendored")
