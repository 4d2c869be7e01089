"""A recorded run as a test of your prompts and policies: no agent, no tokens, no network.

Run the tests with `pytest examples/10_recorded.py`, or run this file as a script. You would record
your own agent once (`cuggino run --record tests/greeting.jsonl ...`) and keep the recording with
the tests; this example records a scripted agent.
"""

import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.errors import ReplayDiverged
from cuggino.testing import replay

FOCUS = "the greeting"


@contextmanager
def project() -> Iterator[Path]:
    """Create the project as it was when the run was recorded."""
    with tempfile.TemporaryDirectory() as folder:
        (Path(folder) / ".specs").mkdir()
        (Path(folder) / ".specs" / "greeting.md").write_text("greeting.txt greets the world.\n")
        yield Path(folder)


PLACE = tempfile.TemporaryDirectory()
CASSETTE = Path(PLACE.name) / "greeting.jsonl"

with project() as folder:
    agent = ScriptedAgent(Path(__file__).with_name("recorded.toml"))
    runtime = cuggino.Runtime.live(cwd=folder, agent=agent, record=CASSETTE)
    cuggino.run(runtime.run(focus=FOCUS))


def divergence(folder: Path, config: cuggino.Config | None = None) -> str:
    """Return where a replay differs from the recording; "" if it does not."""
    try:
        replay(CASSETTE, lambda runtime: runtime.run(focus=FOCUS), cwd=folder, config=config)
    except ReplayDiverged as error:
        return error.message
    return ""


def test_prompts_and_policies_are_as_they_were() -> None:
    """The replay takes the recorded course and leaves the same file."""
    with project() as folder:
        events = replay(CASSETTE, lambda runtime: runtime.run(focus=FOCUS), cwd=folder)
        assert isinstance(events[-1], cuggino.LoopTerminalEvent)
        assert (folder / "greeting.txt").read_text() == "Hello, world!\n"


def test_a_changed_prompt() -> None:
    """A changed template fails the replay and names the session and the line."""
    with project() as folder:
        prompts = folder / ".cuggino" / "prompts"
        prompts.mkdir(parents=True)
        (prompts / "planning.md").write_text("Plan {{focus}}, and be brief.\n")
        place = "the system prompt of session 1 (planning 1) differs in line 1"
        assert place in divergence(folder)


def test_a_stricter_policy() -> None:
    """A stricter guard would have denied a recorded call."""
    with project() as folder:
        config = cuggino.Config(guard="full", profile=["node"])
        assert "ran in the recording, and is denied now" in divergence(folder, config)


if __name__ == "__main__":
    for test in (
        test_prompts_and_policies_are_as_they_were,
        test_a_changed_prompt,
        test_a_stricter_policy,
    ):
        test()
        print("passed:", test.__doc__)

# prints:
# passed: The replay takes the recorded course and leaves the same file.
# passed: A changed template fails the replay and names the session and the line.
# passed: A stricter guard would have denied a recorded call.
