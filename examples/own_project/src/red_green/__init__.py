"""Test first, with agents: a loop and a policy built on cuggino.

- `RedGreen`: the loop. One agent writes a test that fails, others work until it passes
- `at_most`: the policy. It limits the number of commands in a session
- `events`: the loop's own events, in addition to those of its agents
"""

from red_green.loop import RedGreen
from red_green.policy import at_most

__all__ = ["RedGreen", "at_most"]
