"""The loop with real processes: a scripted agent that edits files, and pytest as the check."""

import sys
from pathlib import Path

import cuggino
from cuggino.events import CheckCommandOutput, Event
from cuggino.pytest_plugin import MakeScripted
from red_green import RedGreen
from red_green.events import Ended

SCENARIO = '''
[[planning]]
cost_usd = 0.01
[[planning.steps]]
write = "tests/test_slug.py"
text = """
from slug import slug


def test_slug():
    assert slug("A blue Page") == "a-blue-page"
"""
[[planning.steps]]
say = "<PREPARED>Words become lower case, with hyphens between them</PREPARED>"

[[implementing]]
cost_usd = 0.02
[[implementing.steps]]
write = "slug.py"
text = "def slug(text): return text.lower()"
[[implementing.steps]]
say = "<DONE>Lower case</DONE>"

[[implementing]]
cost_usd = 0.02
[[implementing.steps]]
write = "slug.py"
text = "def slug(text): return '-'.join(text.lower().split())"
[[implementing.steps]]
say = "<DONE>With hyphens</DONE>"
'''


def test_a_wish_comes_true(tmp_path: Path, cuggino_scripted: MakeScripted) -> None:
    """The project's own check passes at the second attempt."""
    check = f"{sys.executable} -m pytest -q -p no:cacheprovider --rootdir=. --import-mode=prepend ."
    loop = RedGreen(agent=cuggino_scripted(SCENARIO), cwd=tmp_path, check=f"PYTHONPATH=. {check}")
    events: list[Event] = []
    last = cuggino.run(loop.run("slugs of titles"), events.append)
    codes = [event.exit_code for event in events if isinstance(event, CheckCommandOutput)]
    assert codes == [5, 2, 1, 0]  # no test yet, nothing to import, one that fails, one that passes
    assert isinstance(last, Ended)
    assert (last.green, last.attempts, round(last.cost_usd, 2)) == (True, 2, 0.05)
