"""Test first, with agents: a loop and a policy built on cuggino.

- `RedGreen`: the loop. One agent writes a test that fails, others work until it passes
- `at_most`: the policy. A session may run so many commands
- `events`: what the loop says beside what its agents say
"""

from red_green.loop import RedGreen
from red_green.policy import at_most

__all__ = ["RedGreen", "at_most"]
