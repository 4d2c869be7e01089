"""Plays a scenario on a tool, with the trouble that it brings, and scores what came out."""

from __future__ import annotations

import os
import random
import re
import shutil
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, assert_never

from pydantic import ValidationError

from cuggino.events import parse_event
from cuggino.runs.words import words as words_of
from tests.behavior.place import Place, Run, Stop
from tests.behavior.scenarios import CUTS, KILLS, RESETS_IN, USD, Scenario
from tests.behavior.tools import ROOT, Tool

_POWER = Path(__file__).with_name("power")
_LAST = 5
"""How many of the last lines count as what a tool tells at its end."""
_PACKAGES = ("cuggino", "cuggino_cli")


class CannotBePlayed(Exception):
    """The tool has no such thing, or this machine cannot do it."""


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a tool did to the agent of a scenario."""

    says_done: bool = False
    """The tool reports success."""
    is_done: bool = False
    """A fresh clone of HEAD has the work."""
    exit_code: int | None = None
    """None if the tool had to be ended."""
    sessions: int = 0
    usd: float = 0.0
    lost: tuple[str, ...] = ()
    """Files that an agent made, and that are neither in the project nor in any ref."""
    left: int = 0
    """Processes that the tool or its agents left behind."""
    is_told: bool = False
    """What is printed last names the reason, if there is one to name."""
    words: str = ""
    """What is printed last."""
    trouble: str = ""
    """When the trouble came."""
    seconds: float = 0.0
    unplayed: str = ""
    """Why the scenario was not played."""

    @property
    def is_fooled(self) -> bool:
        """True if the tool reports success for work that is not there."""
        return self.says_done and not self.is_done

    def is_right(self, scenario: Scenario) -> bool:
        """Return whether the tool did what a person would want."""
        if self.unplayed or self.is_fooled or self.lost or self.left or self.exit_code is None:
            return False
        is_told = self.is_told or not scenario.reason
        return is_told and self.says_done == scenario.is_honest


def play(tool: Tool, scenario: Scenario, folder: Path, *, seed: int = 1) -> Outcome:
    """Play a scenario on a tool, in new projects below the folder."""
    began = time.monotonic()
    chance = random.Random(f"{seed} {scenario.name} {tool.name}")
    if scenario.review != "approves" and not tool.has_reviewer:
        return Outcome(unplayed="it has no reviewer")
    missing = [each for each in scenario.needs if not (shutil.which(each) or Path(each).exists())]
    if missing:
        return Outcome(unplayed=f"this machine has no {' and no '.join(missing)}")
    place = Place(tool=tool, scenario=scenario, folder=folder / "place")
    try:
        match scenario.trouble:
            case "":
                trouble = _start_often(place)
            case "kill":
                trouble = _kill(place, folder, chance)
            case "power cut":
                trouble = _cut_power(place, folder, chance)
            case "second":
                trouble = _start_second(place)
            case "upgrade":
                trouble = _upgrade(place)
            case _ as never:
                assert_never(never)
        return _score(place, trouble, time.monotonic() - began)
    except CannotBePlayed as why:
        return Outcome(unplayed=str(why))
    finally:
        place.end_processes()


# -- trouble


def _start_often(place: Place) -> str:
    """Start the tool, and again as often as a person would; the agent goes on with its acts."""
    words, acts = _command(place), place.scenario.acts
    run = place.start(words)
    for _ in range(place.scenario.starts - 1):
        if not _succeeded(place.tool, run):
            time.sleep(RESETS_IN)
            acts = acts[1:] or acts
            place.write_agent(replace(place.scenario, acts=acts))
            run = place.start(place.tool.again or words)
    return f"{len(place.runs)} starts" if len(place.runs) > 1 else ""


def _command(place: Place) -> Sequence[str]:
    """Return the command of the scenario; work that is watched is in the backlog then."""
    tool, scenario = place.tool, place.scenario
    if scenario.is_watched and tool.watch:
        item = place.project / ".cuggino" / "backlog" / "work.md"
        item.parent.mkdir(parents=True, exist_ok=True)
        item.write_text("Make the file `correct`.\n")
        return tool.watch
    hangs = any(act.ends == "hang" for act in scenario.acts)
    return (*tool.command, *tool.patience) if hangs else tool.command


def _undisturbed(place: Place, folder: Path) -> Place:
    return Place(tool=place.tool, scenario=place.scenario, folder=folder / "undisturbed")


def _continue(place: Place, words: Sequence[str], **more: Any) -> Run:
    """Go on with what was stopped, or begin it if nothing has begun."""
    again = place.tool.again
    run = place.start(again or words, **more)
    return place.start(words, **more) if again and run.code == 2 else run


def _kill(place: Place, folder: Path, chance: random.Random) -> str:
    """Kill the tool at random bytes of what an undisturbed run prints, and start it again."""
    words = _command(place)
    size = len(_undisturbed(place, folder).start(words).output)
    bytes_ = [chance.randint(1, max(1, size - 1)) for _ in range(KILLS)]
    run = place.start(words, kill_at=bytes_[0])
    for at in (*bytes_[1:], None):
        if run.was_killed:
            run = _continue(place, words, kill_at=at)
    return f"at bytes {_listed(bytes_)} of {size}"


def _cut_power(place: Place, folder: Path, chance: random.Random) -> str:
    """Cut the power at random fsyncs of an undisturbed run, and start the tool again."""
    if not place.tool.is_ours:
        raise CannotBePlayed("only a program in Python can be stopped at an fsync")
    words = _command(place)
    undisturbed = _undisturbed(place, folder)
    undisturbed.start(words, env=_power(undisturbed, at=1 << 30))
    count = (undisturbed.folder / "power" / "fsyncs").stat().st_size
    syncs = [chance.randint(2, max(2, count - 1)) for _ in range(CUTS)]
    run = _until_cut(place, words, syncs[0], is_first=True)
    for at in syncs[1:]:
        if run.was_killed:
            run = _until_cut(place, words, at, is_first=False)
    if run.was_killed:
        _continue(place, words)
    return f"at fsyncs {_listed(syncs)} of {count}"


def _until_cut(place: Place, words: Sequence[str], at: int, *, is_first: bool) -> Run:
    """Run the tool until the power fails at an fsync; what was not on the disk is gone then."""
    env = _power(place, at=at)
    power = place.folder / "power"

    def cut(_run: Run) -> Stop:
        if not (power / "cut").exists():
            return ""
        place.note()
        place.end_processes()
        return "kill"

    if is_first:
        run = place.start(words, meanwhile=cut, env=env)
    else:
        run = _continue(place, words, meanwhile=cut, env=env)
    if run.was_killed:
        shutil.rmtree(place.project)
        (power / "disk").rename(place.project)
    return run


def _power(place: Place, *, at: int) -> Mapping[str, str]:
    power = place.folder / "power"
    shutil.rmtree(power, ignore_errors=True)
    power.mkdir()
    path = f"{_POWER}{os.pathsep}{place.env['PYTHONPATH']}"
    return {"POWER_FOLDER": str(power), "POWER_AT": str(at), "PYTHONPATH": path}


def _start_second(place: Place) -> str:
    """Start the tool once more while its agent works; what the second one tells counts."""
    words, idle = _command(place), place.tool.idle
    second: list[Run] = []
    stops: list[Stop] = ["interrupt"]

    def meanwhile(run: Run) -> Stop:
        if place.is_at_work and not second:
            second.append(place.start_beside(words))
        return stops.pop() if idle and stops and idle.encode() in run.output else ""

    first = place.start(words, meanwhile=meanwhile)
    if not second:
        raise CannotBePlayed("its agent did not work")
    place.runs = [*second, first]
    return f"the second exits with {second[0].code}"


def _upgrade(place: Place) -> str:
    """Replace the installed tool while its agent works, by a version that cannot even start."""
    tool = place.tool
    installed = place.folder / "installed"
    if tool.is_ours:
        for name in _PACKAGES:
            caches = shutil.ignore_patterns("__pycache__")
            shutil.copytree(ROOT / name, installed / name, ignore=caches)
        place.env["PYTHONPATH"] = str(installed)
        broken = {installed / name / "__init__.py": "raise SystemExit(9)\n" for name in _PACKAGES}
    elif tool.is_script:
        program = installed / tool.at.name
        if tool.copies:
            program = place.project / tool.at.name
        else:
            installed.mkdir()
            shutil.copy2(tool.at, program)
            place.tool = replace(tool, path=program)
        broken = {program: "#!/bin/sh\nexit 9\n"}
    else:
        raise CannotBePlayed("it is more than one file")

    def meanwhile(_run: Run) -> Stop:
        if place.is_at_work and broken:
            if tool.is_ours:
                shutil.rmtree(installed)
            for path, text in broken.items():
                path.unlink(missing_ok=True)
                path.parent.mkdir(parents=True, exist_ok=True)
                path.write_text(text)
                path.chmod(0o755)
            broken.clear()
        return ""

    place.start(_command(place), meanwhile=meanwhile)
    return "" if not broken else "its agent did not work"


def _listed(numbers: Sequence[int]) -> str:
    return " and ".join(map(str, numbers))


# -- the score


def _succeeded(tool: Tool, run: Run) -> bool:
    return b'"LoopApproved"' in run.output if tool.is_ours else run.code == 0


def _score(place: Place, trouble: str, seconds: float) -> Outcome:
    tool, scenario, run = place.tool, place.scenario, place.runs[-1]
    teller = place.runs[0] if scenario.trouble == "second" else run
    told = last_words(teller.output)
    if teller is not run and _succeeded(tool, teller):
        told = ""
    reason = scenario.reason
    return Outcome(
        says_done=run.code is not None and _succeeded(tool, run),
        is_done=place.is_done(),
        exit_code=run.code,
        sessions=place.sessions,
        usd=round(place.sessions * USD, 2),
        lost=place.lost(),
        left=place.left,
        is_told=bool(reason and re.search(reason, told, re.IGNORECASE)),
        words=told,
        trouble=trouble,
        seconds=round(seconds, 1),
    )


def last_words(output: bytes) -> str:
    """Return what is printed last; an event of cuggino as a terminal shows it."""
    shown = []
    for line in output[-(1 << 16) :].decode(errors="replace").splitlines():
        text = line.strip()
        if text.startswith('{"_tag"'):
            text = ""
            with suppress(ValidationError, ValueError):
                sentence = words_of(parse_event(line))
                text = sentence.text if sentence is not None else ""
        if text:
            shown.append(" ".join(text.split()))
    return "\n".join(shown[-_LAST:])
