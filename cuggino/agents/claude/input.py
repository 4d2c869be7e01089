"""The input of a running Claude Code: a person's messages, and answers to its questions."""

from __future__ import annotations

import json

from cuggino.agents.base.program import encodable
from cuggino.agents.base.wire import Json, text_or_none


def input_message(text: str, **fields: str) -> Json:
    """Return a person's text as a message of the program's input.

    The program delivers it verbatim, even if it begins with a slash like a command.
    """
    said = {"role": "user", "content": encodable(text)}
    return {"type": "user", "message": said, "client_composed": True, **fields}


def refusal(request: Json) -> Json:
    """Return the refusal of a question that the program asks because its input is open."""
    number = text_or_none(request.get("request_id")) or ""
    why = "Nobody is there to ask."
    said = {"subtype": "error", "request_id": number, "error": why}
    return {"type": "control_response", "response": said}


def input_line(message: Json) -> str:
    """Return the message as a line of the program's input."""
    return json.dumps(message) + "\n"
