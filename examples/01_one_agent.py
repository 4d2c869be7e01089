"""One agent session as a stream of events: messages, tool calls, cost."""

from pathlib import Path

import cuggino
from cuggino.events import AgentMessage, SessionEnded, ToolCall

# "claude" drives the installed Claude Code CLI; a scripted agent needs no key.
agent = cuggino.make_agent("scripted:one_agent.toml", cwd=Path(__file__).parent)
options = cuggino.SpawnOptions(
    prompt="Greet the world in greeting.txt.",
    cwd=Path.cwd(),
    role="implementing",
    dangerously_skip_permissions=True,
)

for event in cuggino.iterate(agent.spawn(options)):
    match event:
        case AgentMessage():
            print("says:", event.text)
        case ToolCall():
            print("uses:", event.name)
        case SessionEnded():
            print(f"ends: {event.outcome}, ${event.cost_usd:.2f}")
        case _:  # pings, thoughts, tool results, ...
            pass

print("file:", Path("greeting.txt").read_text(encoding="utf-8").strip())

# prints:
# says: I write the greeting.
# uses: Write
# says: There it is.
# ends: completed, $0.02
# file: Hello, world!
