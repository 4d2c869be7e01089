"""Output of `--json`."""

from __future__ import annotations

import json

import pytest

from cuggino.events import AgentMessage, Event, MessageDelta, PingEvent
from cuggino_cli.follow.output import OutputOptions

SAID: tuple[Event, ...] = (
    PingEvent(timestamp=1.0),
    MessageDelta(text="Go", message_id="m"),
    AgentMessage(text="Go", message_id="m"),
)


@pytest.mark.parametrize(
    ("verbose", "expected"),
    [
        (False, ["PingEvent", "AgentMessage"]),
        (True, ["PingEvent", "MessageDelta", "AgentMessage"]),
    ],
)
def test_partial_events_need_verbose(
    verbose: bool, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each event is one line; partial messages are printed only with `--verbose`."""
    output = OutputOptions(verbose=verbose, quiet=False, json=True, color="auto")
    for event in SAID:
        output.write_json(event)
    lines = capsys.readouterr().out.splitlines()
    assert expected == [json.loads(line)["_tag"] for line in lines]
