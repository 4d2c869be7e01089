"""What `--json` prints of a stream."""

from __future__ import annotations

import json

import pytest

from cuggino.events import AgentMessage, Event, MessageDelta, PingEvent
from cuggino_cli.follow import OutputOptions

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
def test_text_in_the_making(
    verbose: bool, expected: list[str], capsys: pytest.CaptureFixture[str]
) -> None:
    """Each event is a line; those that say again what is said at the end only with --verbose."""
    output = OutputOptions(verbose=verbose, quiet=False, json=True, color="auto")
    for event in SAID:
        output.write_json(event)
    lines = capsys.readouterr().out.splitlines()
    assert expected == [json.loads(line)["_tag"] for line in lines]
