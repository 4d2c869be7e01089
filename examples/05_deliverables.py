"""Deliverables: an agent breaks a specification down, others work on it, and one verifies."""

from pathlib import Path

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import (
    DeliverableStatusChanged,
    DeliverEnded,
    DeliverSessionEnded,
    DeliverSessionStarted,
)

Path("SPEC.md").write_text("A greeting, also in the language of the user.\n")
agent = ScriptedAgent(Path(__file__).with_name("deliverables.toml"))
runtime = cuggino.Runtime.live(cwd=".", agent=agent)
options = runtime.deliver_options(verify=True, max_sessions=10, session_pause=0.1)

for event in cuggino.iterate(runtime.deliver(options)):
    match event:
        case DeliverSessionStarted():
            print(f"{event.session}: {event.instruction}")
        case DeliverableStatusChanged():
            print(f"   {event.description}: {event.status}")
        case DeliverSessionEnded(cost_usd=float(cost)):
            print(f"   ${cost:.2f}")
        case DeliverEnded():
            print(f"{event.reason}, {event.passed} of {event.total} passed, ${event.cost_usd:.2f}")
        case _:
            pass

# prints:
# 1: initializer
#    $0.02
# 2: coding
#    A greeting: passed
#    $0.05
# 3: coding
#    A greeting in the language of the user: blocked
#    $0.03
# 4: verify
#    $0.01
# all_verified, 1 of 2 passed, $0.11
