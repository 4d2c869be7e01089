"""The sessions that many rules look at: one of usual work, gone on with, and one of long texts."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from cuggino.testing.conformance_acts import CannotPlay, Outcome, Run, Say, Write
from cuggino.testing.conformance_arena import Arena
from cuggino.testing.conformance_rules import Rules, capabilities, nothing_left, succeeded

ODD = """/do it -- "quoted" 'words', $HOME, `code`, @file, %s, {braces}, \\n, <tag>, ü, 漢字, 👍🏽 .
--second-line=of it
Last line"""
"""A text that begins like a command of a terminal, and holds what is often taken for something."""

ODD_SYSTEM = f"--system {ODD}\nof the system"

LONG = (
    "This text is long enough to be written in more than one piece, and holds what is easily lost: "
    "  two spaces, a\ttab,\n\na blank line, `code`, <b>tags</b>, ü, 漢字, 👍🏽 and a backslash \\. "
    "It goes on for a while so that a stream that is cut after some pieces is cut within it."
)

WORDS = tuple(f"word {number}" for number in range(26))
"""What the markers of `MARKED` hold, in order."""

# Each begins one character later than the one before, whatever the length of the pieces.
MARKED = "".join(f"{'x' * (7 + n % 5)} <NOTE>{word}</NOTE>\n" for n, word in enumerate(WORDS))
"""Text with markers, the last that the model says."""

VALUE = "it's 'here'"
"""Of the variable `CONFORMANCE` in the environment of the session."""

COMMANDS = (
    "echo \"$CONFORMANCE\" > env.txt; pwd -P > pwd.txt; printf '%s\\n' \"a 'quoted' word\"",
    "echo two",
    "echo three",
    "echo some words; exit 3",
)
WORK = (
    (Say(LONG), Run(COMMANDS[0])),
    (Run(COMMANDS[1]), Run(COMMANDS[2])),
    Write("new.txt", "new\n"),
    Run(COMMANDS[3]),
    Say(MARKED),
)
"""The turns of the usual session: with its calls 0, 1 and 2, 3, 4."""

AGAIN = "It was plum."
"""What the model says when the usual session is gone on with."""


def work(rules: Rules, arena: Arena) -> Outcome:
    """The usual session, which did well."""

    def go_on(place: Path, session_id: str | None) -> Outcome | None:
        return arena.session(
            [Say(AGAIN)],
            prompt="Which word?",
            cwd=place,
            system_prompt=ODD_SYSTEM,
            resume_session_id=session_id,
        )

    def play() -> Outcome:
        place = arena.folder / "a folder"
        place.mkdir()
        first = arena.session(
            WORK,
            prompt=ODD,
            cwd=place,
            system_prompt=ODD_SYSTEM,
            env={"CONFORMANCE": VALUE},
        )
        if capabilities(arena).resume and first.error is None and first.ended.session_id:
            # What goes wrong with it is the matter of other rules.
            with suppress(AssertionError, CannotPlay):
                rules.once("resumed", lambda: go_on(place, first.ended.session_id))
        return first

    return succeeded(rules.once("work", play))


def resumed(rules: Rules, arena: Arena) -> Outcome:
    """The usual session gone on with by its id, which did well."""
    first = work(rules, arena)
    assert first.ended.session_id, f"no session_id is told: {first}"
    again: Outcome | None = rules.once("resumed", lambda: None)
    assert again is not None, "the session was not gone on with"
    return succeeded(again)


@dataclass(frozen=True, slots=True)
class LongSession:
    """A session whose prompts are long, and what was left of it."""

    prompt: str
    system_prompt: str
    outcome: Outcome
    left: str
    """What was left behind, in words; empty for nothing."""


def long_session(rules: Rules, arena: Arena) -> LongSession:
    """A session with long prompts, and the other model if there is one; it did well."""

    def play() -> LongSession:
        prompt, system_prompt = long_text("prompt"), long_text("system")
        outcome: Outcome | None = None
        left = ""
        try:
            with nothing_left():
                outcome = arena.session(
                    [Run("echo one"), Say("Over.")],
                    prompt=prompt,
                    system_prompt=system_prompt,
                    model=arena.other_model,
                )
        except AssertionError as error:
            if outcome is None:
                raise
            left = str(error)
        return LongSession(prompt, system_prompt, outcome, left)

    played = rules.once("long", play)
    succeeded(played.outcome)
    return played


def long_text(first: str) -> str:
    """300 kB that begin with a dash, in which a part that is missing or doubled would be seen.

    Ordinary words for the most part, as a model can read so many of these at once.
    """
    words = "the cousin who can build it for you has a look at all of this and goes on with it"
    lines = [f"{first} {number}: {words}" for number in range(3100)]
    return "--dashes first\n" + "\n".join(lines) + '\n"é" 漢 \\ $X `y` 👍\nthe end'
