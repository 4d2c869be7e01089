"""The hook: the program that an agent's program runs before each tool call.

It is run by path with only the standard library (`python -I -S hook.py ORDERS`, one process per
call) and reads the call as JSON from standard input. `ORDERS` is a JSON object, see
`guard.Guard.hook_command`; its `adapter` is the module that knows the agent's protocol:
`answer(data, orders, settings)` returns what is printed, and the verdict, which is appended to the
log of the session if there is one. On any failure the program exits with an error and prints
nothing, which callers must treat as a denial.
"""

from __future__ import annotations

import gc
import json
import os
import signal
import sys

ALARM_SECONDS = 45
"""Seconds after which the program ends itself, before an agent times out and allows the call."""


def main() -> None:
    """Answer the call on standard input; see the module."""
    # The default action terminates the program at any point, without an answer.
    signal.signal(signal.SIGALRM, signal.SIG_DFL)
    signal.alarm(ALARM_SECONDS)
    given = json.loads(sys.argv[1])
    # The path is isolated, so append the package, after all others.
    sys.path.append(given["package"])
    from cuggino.agents.base.calls import Orders
    from cuggino.guard.policy import Policy

    data = json.loads(sys.stdin.buffer.read())
    orders = Orders(Policy.from_json(given["policy"]), given["shfmt"], given["token"])
    __import__(given["adapter"])  # importlib would take a millisecond
    adapter = sys.modules[given["adapter"]]
    output, verdict = adapter.answer(data, orders, given["settings"])
    if given["log"]:
        line = json.dumps(verdict).encode() + b"\n"
        log = os.open(given["log"], os.O_WRONLY | os.O_APPEND | os.O_CLOEXEC)
        if os.write(log, line) != len(line):
            raise OSError("the verdict could not be written whole")
    sys.stdout.write(json.dumps(output) + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    # Garbage collection and cleanup are not worth the time in such a short process.
    gc.disable()
    main()
    os._exit(0)
