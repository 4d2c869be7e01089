"""Messages of the Agent Client Protocol, as cuggino writes them."""

from __future__ import annotations

from cuggino._version import __version__
from cuggino.agents.base.program import encodable
from cuggino.agents.base.wire import Json, dict_or_empty, list_or_empty, text_or_none

PROTOCOL = 1
"""The version of the protocol."""


def hello() -> Json:
    """Return what `initialize` is given."""
    # Without fs and terminal the program runs its tools itself.
    client = {"name": "cuggino", "version": __version__}
    return {"protocolVersion": PROTOCOL, "clientCapabilities": {}, "clientInfo": client}


def denials(reasons: list[str]) -> str:
    """Return the prompt that gives the reasons, for which the protocol has no field."""
    lines = "\n".join(f"- {encodable(reason)}" for reason in dict.fromkeys(reasons))
    return (
        f"These tool calls were denied and did not run:\n{lines}\n"
        "No person has canceled your work. Continue it without them; if it is done, say so."
    )


def chosen_value(option: Json, wanted: str) -> str | None:
    """Return the value of the option with this value or name."""
    given = [dict_or_empty(one) for one in list_or_empty(option.get("options"))]
    for key in ("value", "name"):
        for one in given:
            if one.get(key) == wanted:
                return text_or_none(one.get("value"))
    return None


def mcp_server(name: str, given: object) -> Json:
    """Convert an MCP server from the format of Claude Code."""
    told = dict_or_empty(given)
    if "url" in told:
        kind = "sse" if told.get("type") == "sse" else "http"
        return {"name": name, "type": kind, "url": told["url"], "headers": _named(told, "headers")}
    args = [str(word) for word in list_or_empty(told.get("args"))]
    command = str(told.get("command", ""))
    return {"name": name, "command": command, "args": args, "env": _named(told, "env")}


def _named(given: Json, key: str) -> list[Json]:
    return [{"name": n, "value": str(v)} for n, v in dict_or_empty(given.get(key)).items()]
