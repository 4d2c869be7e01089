"""A watch over a long backlog, killed a few times, with figures about its growth."""

from __future__ import annotations

import random
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.endurance.agent import answer_path
from tests.endurance.place import Command, Place
from tests.endurance.trials import archived, watch_place

_TROUBLED = {3: "issue", 5: "check", 7: "rounds", 18: "stall", 19: "crash"}
"""The kind of the items in each twenty that are not good."""
PARKED = ("stall", "crash")
_SUBJECTS = {"rounds": ("feat", "fix"), "check": ("feat", "fix"), "crash": ()}
_LOOK = 0.1
EARLY = 10
"""The item of a process after which it is first measured: it has seen everything once."""


@dataclass(frozen=True)
class Sample:
    """Resources that a watch uses after an item."""

    items: int
    """Items of this process."""
    rss: float
    """MiB."""
    descriptors: int
    threads: int


@dataclass
class Watched:
    """The result of a watch on the backlog."""

    items: int
    seconds: float = 0.0
    cpu: float = 0.0
    """Of the last process, without its children."""
    kills: int = 0
    answered: int = 0
    samples: list[Sample] = field(default_factory=list)
    """Of the last process."""
    problems: list[str] = field(default_factory=list)


def kinds(count: int) -> dict[str, str]:
    """Return the items of a backlog, each with its kind."""
    return {f"word-{n:04}": _TROUBLED.get(n % 20, "good") for n in range(1, count + 1)}


def watch_backlog(root: Path, *, items: int, kills: int, seed: int) -> Watched:
    """Work through such a backlog, killed so often within its first third."""
    wanted = kinds(items)
    place = watch_place(
        root,
        wanted,
        maxRetries=0,
        maxAttempts=2,
        retrySeconds=1,
        reviewPatience=2,
    )
    chance, watched = random.Random(seed), Watched(items)
    most = max(kills, items // 3)
    moments = sorted(chance.sample(range(1, most + 1), kills))
    began = time.monotonic()
    while True:
        with place.start("watch") as watch:
            at = moments.pop(0) if moments else None
            killed = _accompany(watch, place, watched, wanted, at)
            if killed:
                time.sleep(chance.uniform(0, 0.5))  # the moment is the case
                watched.kills += watch.is_running
                watch.kill()
            else:
                if (code := watch.interrupt()) != 130 or "Traceback" in watch.errors:
                    watched.problems.append(f"the watch ended with {code}: {watch.errors}")
                break
    watched.seconds = time.monotonic() - began
    watched.problems += [*place.problems(), *_unaccounted(place, wanted)]
    return watched


def _accompany(
    watch: Command, place: Place, watched: Watched, wanted: dict[str, str], kill_at: int | None
) -> bool:
    """Answer questions and take samples; return True when it is to be killed, False at its end."""
    watched.samples.clear()
    seen = len(_settled(place))
    before = seen
    while watch.is_running:
        for issue in list(place.workspace.spec_issues.glob("*")):
            _answer(place, wanted, issue.read_text(errors="replace"))
            watched.answered += 1
        settled = len(_settled(place))
        if settled > seen:
            seen = settled
            with watch.process.oneshot():
                used = watch.process
                rss, threads = used.memory_info().rss / 2**20, used.num_threads()
                watched.samples.append(Sample(settled - before, rss, used.num_fds(), threads))
                watched.cpu = sum(used.cpu_times()[:2])
        if kill_at is not None and settled >= kill_at:
            return True
        if not any(place.workspace.backlog.iterdir()):
            return False
        time.sleep(_LOOK)
    return False


def _answer(place: Place, wanted: dict[str, str], question: str) -> None:
    """Answer a question as a person would: in the specifications, then by `cuggino issues`."""
    name = next(name for name in wanted if name in question)
    answer = answer_path(place.folder, name)
    answer.parent.mkdir(exist_ok=True)
    answer.write_text(f"As it stands: {name}.\n")
    place.git("add", ".specs")
    place.git("commit", "--quiet", "--no-verify", "-m", f"docs: {name}", "--", ".specs")
    place.cuggino("issues", "resolve", "1")


def _settled(place: Place) -> list[str]:
    """Return the names of the items that have left the backlog."""
    workspace = place.workspace
    return [
        *(path.name for path in workspace.archive.glob("*approved-*")),
        *(path.name for path in workspace.parked.glob("*.md")),
    ]


def _unaccounted(place: Place, wanted: dict[str, str]) -> Iterator[str]:
    """Yield the items that are not exactly where they should be, and commits lost or doubled."""
    workspace = place.workspace
    approved = Counter(name for name in archived(place) if name.startswith("approved-"))
    expected = Counter(f"approved-{name}.md" for name, kind in wanted.items() if kind not in PARKED)
    if approved != expected:
        yield f"archive: lost {expected - approved}, too many {approved - expected}"
    parked = {name: [path.name for path in workspace.parked.glob(f"*{name}*")] for name in wanted}
    for name, kind in wanted.items():
        if bool(parked[name]) != (kind in PARKED):
            yield f"{name} ({kind}) is parked as {parked[name]}"
    for folder in (workspace.backlog, workspace.spec_issues):
        for path in folder.glob("*"):
            yield f"{path.name} is left in {folder.name}"
    commits = Counter(place.git("log", "--format=%s").splitlines())
    subjects = Counter(
        f"{tag}: {name}"
        for name, kind in wanted.items()
        for tag in (*_SUBJECTS.get(kind, ("feat",)), *(("docs",) if kind == "issue" else ()))
    )
    subjects["begin"] = 1
    if commits != subjects:
        yield f"commits: lost {subjects - commits}, too many {commits - subjects}"
    for name, kind in wanted.items():
        path = place.folder / "words" / f"{name}.txt"
        text = path.read_text() if path.exists() else None
        correct = {"stall": "draft\n", "crash": None}.get(kind, f"{name}\n")
        if text != correct:
            yield f"{name} ({kind}) has the text {text!r}"
