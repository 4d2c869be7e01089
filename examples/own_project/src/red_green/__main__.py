"""`red-green WISH`: make a wish come true in this folder, test first."""

import argparse
from pathlib import Path

import cuggino
from cuggino.events import AgentMessage, CheckCommandOutput, Event, SupervisionEvent

from red_green.events import Attempt, Ended, TestsRestored
from red_green.loop import RedGreen


def main() -> int:
    """Run the loop and print its events; return 0 when the wish came true."""
    parser = argparse.ArgumentParser(prog="red-green", description=__doc__)
    parser.add_argument("wish")
    parser.add_argument("--agent", default="claude", help="a name that cuggino knows")
    parser.add_argument("--check", default="python -m pytest -q")
    parser.add_argument("--budget", type=float, help="US dollars")
    given = parser.parse_args()
    here = Path.cwd()
    loop = RedGreen(
        agent=cuggino.make_agent(given.agent, cwd=here),
        cwd=here,
        check=given.check,
        budget=given.budget,
    )
    last = cuggino.run(loop.run(given.wish), show)
    return 0 if isinstance(last, Ended) and last.green else 1


def show(event: Event) -> None:
    """Print a line about the event, if it matters to the user."""
    match event:
        case AgentMessage(text=text):
            print(text)
        case Attempt(number=number, of=of):
            print(f"-- attempt {number} of {of}")
        case CheckCommandOutput(exit_code=code):
            print("-- the check passes" if code == 0 else f"-- the check exits with {code}")
        case TestsRestored(files=files):
            print(f"-- restored: {', '.join(files)}")
        case Ended(green=green, reason=reason, cost_usd=cost):
            print(f"-- {'it came true' if green else reason} (${cost:.2f})")
        case SupervisionEvent():
            print(f"-- {event.tag}")
        case _:
            pass


if __name__ == "__main__":
    raise SystemExit(main())
