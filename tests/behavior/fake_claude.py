"""A `claude` for other tools: plays one session of a scenario, and counts it."""

import json
import os
import subprocess
import sys
import time
from pathlib import Path

if "--version" in sys.argv:
    print("2.1.0 (Claude Code)")
    sys.exit(0)
folder = Path(os.environ["BEHAVIOR_FOLDER"])
agent = json.loads((folder / "agent.json").read_text())
streams = "stream-json" in sys.argv
with (folder / "calls").open("a") as calls:
    calls.write("x")


def _line(kind: str, **fields: object) -> None:
    print(json.dumps({"type": kind, "session_id": "s", **fields}), flush=True)


def _end(text: str, code: int = 0, **more: object) -> None:
    """Print what the model says and the result, in the format that was asked for, and exit."""
    usage = {"input_tokens": 100, "output_tokens": 10}
    usage |= {"cache_read_input_tokens": 0, "cache_creation_input_tokens": 0}
    block = {"type": "text", "text": text}
    if streams:
        said = {"id": f"m{os.getpid()}", "role": "assistant", "content": [block], "usage": usage}
        _line("assistant", message=said)
    if streams or "json" in sys.argv:
        result = {"subtype": "success", "result": text, "is_error": code != 0, "usage": usage}
        _line("result", **result, total_cost_usd=agent["usd"], **more)
    else:
        print(text, flush=True)
    with (folder / "ended").open("a") as ended:
        ended.write("x")
    sys.exit(code)


if streams:
    _line("system", subtype="init")
ended = folder / "ended"
sessions = len(ended.read_text()) if ended.exists() else 0
act = agent["acts"][min(sessions, len(agent["acts"]) - 1)]
signal = agent["signal"]
match act["ends"]:
    case "hang":
        time.sleep(3600)
    case "crash" | "half JSON":
        if act["ends"] == "half JSON":
            print('{"type": "assistant", "mes', end="", flush=True)
        ended.write_text("x" * (sessions + 1))
        sys.exit(act["ends"] == "crash")
    case "429" | "quota":
        if streams:
            info = {"status": "rejected", "rateLimitType": "five_hour"}
            if act["ends"] == "quota":
                info["resetsAt"] = int(time.time()) + agent["resets_in"]
            _line("rate_limit_event", rate_limit_info=info)
        _end("You've hit your limit", 1, api_error_status=429)
    case "529":
        _end("API Error: 529 overloaded_error", 1, api_error_status=529)
    case _:
        pass
subprocess.run(["/bin/sh", "-c", act["command"]], check=False)
if agent["commits"]:
    subprocess.run("git add -A && git commit -qm work > /dev/null", shell=True, check=False)
structured = {"success": True, "summary": "work", "key_changes_made": [], "key_learnings": []}
structured["should_fully_stop"] = act["says"] == "done"
words = {
    "done": f"All of it.\n{signal}",
    "more": "More to do.",
    "quote": f"I will end with\n```\n{signal}\n```\nonce it is done.",
    "nothing": "That is that.",
}
_end(words[act["says"]], structured_output=structured)
