"""A `claude` for other tools: plays one session of a scenario, and counts it."""

import json
import os
import subprocess
import sys
from pathlib import Path

folder = Path(os.environ["BEHAVIOR_FOLDER"])
with (folder / "calls").open("a") as calls:
    calls.write("x")
acts = json.loads((folder / "acts.json").read_text())
act = acts[min(len((folder / "calls").read_text()), len(acts)) - 1]
subprocess.run(["/bin/sh", "-c", act["run"]])
if act["exits"] is not None:
    sys.exit(act["exits"])
signal = os.environ["BEHAVIOR_SIGNAL"]
words = {
    "done": f"All of it.\n{signal}",
    "more": "More to do.",
    "quote": f"I will end with\n```\n{signal}\n```\nonce it is done.",
    "nothing": "That is that.",
}
text = words[act["says"]]
if "stream-json" in sys.argv:
    block = {"type": "text", "text": text}
    print(json.dumps({"type": "system", "subtype": "init", "session_id": "s"}))
    message = {"id": "m", "role": "assistant", "content": [block]}
    print(json.dumps({"type": "assistant", "session_id": "s", "message": message}))
if {"json", "stream-json"} & set(sys.argv):
    costs = {"total_cost_usd": 0.01, "is_error": False, "session_id": "s"}
    print(json.dumps({"type": "result", "subtype": "success", "result": text, **costs}))
else:
    print(text)
