"""The night itself: the watch, who looks at it, and what happens to it."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psutil
from playwright.sync_api import Error as BrowserError, Page as Tab, sync_playwright

from cuggino.storage import served_page
from tests import real_claude, real_codex
from tests.endurance.place import Command, Place
from tests.model_responses import ResponsesServer
from tests.model_script import SUBSCRIPTION, Tool
from tests.model_server import ModelServer
from tests.soak.items import CHECK, Model, backlog
from tests.web.chromium import program

_LOOK = 0.5
_SAMPLE = 5.0
_TURNS = 8
"""Requests of an item, about: two for each of three sessions, and what is repeated."""
_QUIET = 180.0
"""Seconds without a settled item after which the log says so."""
_DULL = {"PingEvent", "MessageDelta", "UsageUpdate", "AgentMessage", "ToolCall", "ToolResult"}
_DROPS = 10
"""The backlog grows by so many items at a time."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """The planned contents of the night."""

    minutes: float
    items: int
    slots: int
    kills: int
    crashes: int
    disk_minutes: float
    seed: int


@dataclass(frozen=True)
class Sample:
    """Resources that the watch uses."""

    process: int
    at: float
    """Seconds since that process began."""
    rss: float
    """MiB."""
    descriptors: int
    threads: int


@dataclass
class Night:
    """The record of the night."""

    place: Place
    items: Mapping[str, str]
    model: Model
    began: float = field(default_factory=time.monotonic)
    seconds: float = 0.0
    kills: list[str] = field(default_factory=list)
    crashes: list[str] = field(default_factory=list)
    ends: list[str] = field(default_factory=list)
    """How watches ended that nobody had killed."""
    answers: int = 0
    approvals: int = 0
    ready: int = 0
    """Files that agents have waited for."""
    disk_full: str = ""
    samples: list[Sample] = field(default_factory=list)
    followed: int = 0
    """Lines that `follow` has printed."""
    looks: int = 0
    """Looks at the page in which it showed the watch."""
    console: list[str] = field(default_factory=list)
    """Complaints of the browser."""
    problems: list[str] = field(default_factory=list)

    def say(self, text: str) -> None:
        """Print a line of the log."""
        minute, second = divmod(int(time.monotonic() - self.began), 60)
        print(f"{minute:02}:{second:02}  {text}", flush=True)

    @property
    def settled(self) -> list[str]:
        """Return the items that have left the backlog, archived or parked."""
        workspace = self.place.workspace
        archived = [path.name for path in workspace.archive.glob("*-approved-word-*")]
        parked = [path.name for path in workspace.parked.glob("word-*.md")]
        return [*(name.partition("-approved-")[2] for name in archived), *parked]


def spend(plan: Plan, root: Path, outputs: Path, *, disk: Path | None) -> Night:
    """Let the night pass in a new project; `disk` is the file system to fill, if there is one.

    What the watch prints is in `outputs`.
    """
    claude, codex = real_claude.install_claude(), real_codex.install_codex()
    items = backlog(plan.items)
    settings = {
        "agent": "claude",
        "agentPath": str(claude),
        "agents": {"reviewing": {"agent": "codex", "path": str(codex)}},
        "fallback": [{"agent": "codex", "path": str(codex)}],
        "slots": plan.slots,
        "commit": True,
        "checkCommand": "sh check.sh",
        "gate": "block",
        "settleSeconds": 1,
        "retrySeconds": 2,
        "maxAttempts": 8,
        "waitForQuota": True,
        "journalRuns": 1000,
        "notify": "none",
        "approve": ["landing"],
    }
    files = {
        ".cuggino.json": json.dumps(settings),
        ".gitignore": ".cuggino/\nready/\n",
        ".specs/words.md": "A file for each word.\n",
        "check.sh": CHECK,
        "lines": "begin\n",
        "broken": "",
        "words/begin.txt": "begin\n",
    }
    place = Place(root, files)
    place.workspace.open()
    place.outputs = outputs
    slots = place.folder.with_name(f"{place.folder.name}.cuggino-slots")
    pace = plan.minutes * 60 * plan.slots / (plan.items * _TURNS) * 0.6
    model = Model(slots, pace, plan.seed)
    with (
        ModelServer(model.script("claude", _bash)) as anthropic,
        ResponsesServer(model.script("codex", real_codex.bash)) as openai,
    ):
        temporary = place.env["TMPDIR"]
        own = real_claude.clean_env(place.root / "home", anthropic.url)
        place.env = {
            **{name: value for name, value in place.env.items() if not name.startswith("CUGGINO_")},
            **own,
            **real_codex.clean_env(place.root / "home", openai.url),
            **SUBSCRIPTION,
            "TMPDIR": temporary,
            "CLAUDE_CODE_TMPDIR": temporary,
            "XDG_STATE_HOME": str(place.root / "state"),
            "CUGGINO_CONFIG": _trusting(place),
        }
        night = Night(place, items, model)
        night.say(f"{len(items)} items, {plan.slots} slots, a reply every {pace:.1f} s")
        _pass(night, plan, disk)
        night.seconds = time.monotonic() - night.began
    return night


def _trusting(place: Place) -> str:
    path = place.root / "home" / "cuggino.json"
    path.write_text(json.dumps({"trust": "off"}))
    return str(path)


def _bash(command: str) -> Tool:
    return Tool("Bash", {"command": command})


def _pass(night: Night, plan: Plan, disk: Path | None) -> None:
    """Watch until every item is settled, with all that happens meanwhile."""
    chance = random.Random(plan.seed)
    total = len(night.items)
    kill_at = sorted(chance.sample(range(1, max(total - 2, plan.kills + 2)), plan.kills))
    crash_at = sorted(chance.sample(range(1, max(total - 2, plan.crashes + 2)), plan.crashes))
    full_at = total // 2 if disk is not None else total + 1
    waiting = list(night.items.items())
    limit = night.began + plan.minutes * 60 * 3 + 600
    over = threading.Event()
    with ExitStack() as stack:
        stack.enter_context(_beside(_follow, night, over))
        stack.enter_context(_beside(_at_the_page, night, over))
        stack.enter_context(_beside(_beside_the_slots, night, over))
        stack.callback(over.set)
        while len(set(night.settled)) < total and time.monotonic() < limit:
            with night.place.start("watch", "--serve") as watch:
                night.say(f"the watch begins, {len(set(night.settled))} of {total} settled")
                began, sampled = time.monotonic(), 0.0
                seen = (0, began)
                while watch.is_running:
                    settled = len(set(night.settled))
                    while waiting and total - len(waiting) - settled < _DROPS:
                        name, text = waiting.pop(0)
                        (night.place.workspace.backlog / name).write_text(text)
                    if time.monotonic() - sampled >= _SAMPLE:
                        sampled = time.monotonic()
                        _sample(night, watch, began)
                    if settled > seen[0]:
                        seen = settled, time.monotonic()
                    elif time.monotonic() - seen[1] > _QUIET:
                        night.say(f"nothing was settled for long: {' '.join(_recent(watch))}")
                        seen = settled, time.monotonic()
                    if settled >= total or time.monotonic() >= limit:
                        break
                    if kill_at and settled >= kill_at[0]:
                        time.sleep(chance.uniform(0, 2))  # the moment is the case
                        if watch.is_running:
                            watch.kill()
                            night.kills.append(f"after {settled} items")
                            night.say(f"killed the watch after {settled} items")
                        kill_at.pop(0)
                        break
                    if crash_at and settled >= crash_at[0] and _crash(night, chance):
                        crash_at.pop(0)
                    if settled >= full_at and disk is not None:
                        full_at = total + 1
                        _fill(night, watch, disk, plan.disk_minutes * 60)
                    time.sleep(_LOOK)
                else:
                    end = f"{watch.wait()}: {watch.errors.strip()[-300:]}"
                    night.ends.append(end)
                    night.say(f"the watch has ended by itself: {end}")
                if watch.is_running:
                    _interrupt(night, watch)
            night.place.age_temporary_files()
        _with_hands(night)
    if missing := sorted(set(night.items) - set(night.settled)):
        night.problems.append(f"not settled in time: {', '.join(missing)}")


def _with_hands(night: Night) -> None:
    """Let a run with two hands write words; it is killed when its first task has landed."""
    place, night.model.has_hands = night.place, True
    with place.start("run", "four words", "--hands", "2") as run:
        night.say("a run with hands begins")
        while run.is_running and "WatchLanded" not in run.tags():
            time.sleep(_LOOK)
        if run.is_running:
            run.kill()
            night.kills.append("in a run with hands")
            night.say("killed the run with hands after its first task")
    place.age_temporary_files()
    with place.start("run", "--resume") as run:
        code = run.wait()
        night.say(f"the run with hands has ended with {code}")
        if code:
            night.problems.append(f"the run with hands ended with {code}: {run.errors}")


def _interrupt(night: Night, watch: Command) -> None:
    code = watch.interrupt()
    night.say(f"interrupted the watch: exit code {code}")
    if code != 130:
        night.problems.append(f"the watch ended with {code}: {watch.errors}")


def _recent(watch: Command) -> list[str]:
    return [tag for tag in watch.tags() if tag not in _DULL][-20:]


def _sample(night: Night, watch: Command, began: float) -> None:
    with suppress(psutil.Error), watch.process.oneshot():
        used = watch.process
        rss, threads = used.memory_info().rss / 2**20, used.num_threads()
        at = time.monotonic() - began
        night.samples.append(Sample(used.pid, at, rss, used.num_fds(), threads))


def _crash(night: Night, chance: random.Random) -> bool:
    """Kill one of the agents at work."""
    agents = []
    for line in night.place.processes:
        pid, _, command = line.partition(" ")
        if "stream-json" in command or "codex" in command.partition(" exec ")[0][-40:]:
            agents.append((int(pid), command))
    if not agents:
        return False
    number, command = chance.choice(agents)
    with suppress(ProcessLookupError):
        os.kill(number, signal.SIGKILL)
        night.crashes.append(command[:60])
        night.say(f"killed an agent: {command[:60]}")
    return True


def _fill(night: Night, watch: Command, disk: Path, seconds: float) -> None:
    """Fill the disk for a while."""
    ballast = disk / "ballast"
    with suppress(OSError), ballast.open("wb", buffering=0) as file:
        while True:
            file.write(bytes(1 << 20))
    night.say(f"the disk is full, for {seconds:.0f} s")
    until = time.monotonic() + seconds
    while time.monotonic() < until and watch.is_running:
        time.sleep(_LOOK)
    state = "works on" if watch.is_running else f"has ended: {watch.errors.strip()[-300:]}"
    time.sleep(max(0.0, until - time.monotonic()))
    ballast.unlink()
    night.disk_full = f"{seconds:.0f} s, the watch {state}"
    night.say(f"the disk has room again; the watch {state}")


@contextmanager
def _beside(work: object, night: Night, over: threading.Event) -> Iterator[None]:
    """Do something in a thread until the night is over."""

    def run() -> None:
        try:
            assert callable(work)
            work(night, over)
        except Exception as error:
            night.problems.append(f"{getattr(work, '__name__', '')}: {error!r}")

    thread = threading.Thread(target=run)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()


def _follow(night: Night, over: threading.Event) -> None:
    """Keep `cuggino follow` attached."""
    place = night.place
    while not over.is_set():
        command = [sys.executable, "-m", "cuggino_cli", "follow", "--json"]
        with (place.outputs / "followed").open("ab") as out:
            following = subprocess.Popen(
                command, cwd=place.folder, env=place.env, stdout=out, stderr=subprocess.DEVNULL
            )
        while following.poll() is None and not over.wait(_LOOK):
            pass
        if following.poll() is None:
            following.send_signal(signal.SIGINT)
            following.wait()
        over.wait(1)
    night.followed = (place.outputs / "followed").read_bytes().count(b"\n")


def _beside_the_slots(night: Night, over: threading.Event) -> None:
    """Approve each landing, and make the files that agents wait for."""
    workspace = night.place.workspace
    while not over.wait(2):
        for issue in workspace.issues():
            if issue.is_approval:
                with suppress(subprocess.CalledProcessError):  # it was withdrawn, or the watch died
                    night.place.cuggino("approve", issue.path.stem)
                    night.approvals += 1
        night.ready += night.model.make_ready()


def _at_the_page(night: Night, over: threading.Event) -> None:
    """Keep the page open in a browser, and answer questions there."""
    state = Path(night.place.env["XDG_STATE_HOME"]) / "cuggino"
    options = ["--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"]
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program(), args=options)
        tab = browser.new_page()
        tab.on("pageerror", lambda error: night.console.append(str(error)))
        url: str | None = None
        while not over.wait(1):
            served = served_page(night.place.folder, state=state)
            if served is None:
                continue
            try:
                if served != url:
                    tab.goto(served)
                    url = served
                _look(night, tab, served)
            except BrowserError as error:  # the watch was killed, and the page with it
                url = None
                night.console += [f"{error}"] if "Timeout" in str(error) else []
        browser.close()


def _look(night: Night, tab: Tab, url: str) -> None:
    """Look at the page without loading it again, and answer the first question."""
    night.looks += tab.locator("#state").count()
    waits = tab.locator(".card.waits").filter(has=tab.get_by_label("Your answer"))
    if not waits.count():
        return
    text = waits.first.inner_text()
    item = next((name for name in night.items if name.partition("-issue")[0] in text), None)
    waits.first.get_by_label("Your answer").fill("With the letters of its name.")
    if item is not None:
        night.model.answered.add(item)
    waits.first.get_by_role("button", name="Answer").click()
    tab.goto(url)
    night.answers += 1
    night.say(f"answered the question of {item} at the page")
