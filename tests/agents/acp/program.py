"""A scripted Agent Client Protocol program, started by tests with a script.

It uses the standard library only: `python -IS program.py SCRIPT`. Received messages are logged
beside the script, one JSON object per line. A script is a JSON object:

- `initialize`, `session`: more of these results; None refuses the method
- `turns`: for each prompt a list of steps (`Step`); without one left, a turn ends at once
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

OPTIONS = [
    {"optionId": "always", "name": "Always", "kind": "allow_always"},
    {"optionId": "once", "name": "Once", "kind": "allow_once"},
    {"optionId": "no", "name": "No", "kind": "reject_once"},
]
MODE = {
    "id": "mode",
    "category": "mode",
    "type": "select",
    "currentValue": "auto",
    "options": [{"value": "auto", "name": "Auto"}, {"value": "ask", "name": "Ask"}],
}


class Program:
    """One process."""

    def __init__(self, script: Path) -> None:
        self.script: dict[str, Any] = json.loads(script.read_text(encoding="utf-8"))
        self.log = script.with_suffix(".log").open("a", encoding="utf-8")
        self.options = [self.script.get("mode", MODE), *self.script.get("options", [])]
        self.turns: list[Any] = list(self.script.get("turns", []))
        self.number = 0

    def send(self, message: dict[str, Any]) -> None:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()

    def read(self) -> dict[str, Any]:
        line = sys.stdin.readline()
        if not line:
            time.sleep(self.script.get("lingers", 0))  # the script asks for it
            sys.exit(0)
        self.log.write(line)
        self.log.flush()
        message: dict[str, Any] = json.loads(line)
        return message

    def serve(self) -> None:
        while True:
            self.receive(self.read())

    def receive(self, message: dict[str, Any]) -> None:
        method, number = message.get("method"), message.get("id")
        if self.script.get("silent") == method:
            return
        if (error := self.script.get("errors", {}).get(method)) is not None:
            self.send({"id": number, "error": error})
            return
        params = message.get("params", {})
        match method:
            case "initialize":
                capabilities = {
                    "loadSession": True,
                    "sessionCapabilities": {"resume": {}},
                    "mcpCapabilities": {"http": True},
                }
                given = {"protocolVersion": 1, "agentCapabilities": capabilities}
                self.send({"id": number, "result": given | self.script.get("initialize", {})})
            case "session/new" | "session/resume" | "session/load":
                for update in self.script.get("replayed", []):
                    self.update(update)
                name = params.get("sessionId", "s1")
                given = {"sessionId": name, "configOptions": self.options}
                self.send({"id": number, "result": given | self.script.get("session", {})})
            case "session/set_config_option":
                for option in self.options if not self.script.get("keeps") else []:
                    if option["id"] == params["configId"]:
                        option["currentValue"] = params["value"]
                self.send({"id": number, "result": {"configOptions": self.options}})
            case "session/prompt":
                self.play(number)
            case _:
                pass

    def update(self, update: dict[str, Any], session: str = "s1") -> None:
        params = {"sessionId": self.script.get("name", session), "update": update}
        self.send({"method": "session/update", "params": params})

    def play(self, number: Any) -> None:
        steps = self.turns.pop(0) if self.turns else []
        end = self.steps(steps)
        end = {"result": {"stopReason": "end_turn"}} if end is None else end
        self.send({"id": number, **end})

    def steps(self, steps: list[Any]) -> dict[str, Any] | None:
        """Play the steps; return the end of the turn if one ends it."""
        for step in steps:
            more: Any
            match step:
                case {"end": end}:
                    return dict(end)
                case {"update": update, **more}:
                    self.update(update, str(more.get("session", "s1")))
                case {"raw": text}:
                    sys.stdout.write(text + "\n")
                    sys.stdout.flush()
                case {"send": message}:
                    self.send(message)
                case {"run": command}:
                    subprocess.run(["/bin/sh", "-c", command], check=False)
                case {"leave": command}:
                    subprocess.Popen(["/bin/sh", "-c", command], start_new_session=True)
                case {"sleep": seconds}:
                    time.sleep(seconds)  # the script asks for it
                case {"exit": code}:
                    sys.stderr.write("it broke\n")
                    sys.stderr.flush()
                    os._exit(code)
                case {"ask": call, **more}:
                    given: dict[str, Any] = {str(key): value for key, value in more.items()}
                    if (end := self.ask(call, **given)) is not None:
                        return end
                case _:
                    raise ValueError(step)
        return None

    def ask(
        self,
        call: dict[str, Any],
        options: list[Any] | None = None,
        allowed: tuple[Any, ...] = (),
        denied: tuple[Any, ...] = (),
        session: str = "s1",
    ) -> dict[str, Any] | None:
        """Ask for permission, and go on by the answer."""
        self.number += 1
        number = f"q{self.number}"
        params = {
            "sessionId": session,
            "toolCall": call,
            "options": OPTIONS if options is None else options,
        }
        self.send({"id": number, "method": "session/request_permission", "params": params})
        while (answer := self.read()).get("id") != number or "method" in answer:
            self.receive(answer)
        outcome = answer["result"]["outcome"]
        return self.steps(list(allowed if outcome.get("optionId") == "once" else denied))


if __name__ == "__main__":
    if sys.argv[1:] == ["--version"]:
        print("1.2.3")
    else:
        Program(Path(sys.argv[1])).serve()
