# ruff: noqa: PTH118
"""The adapter of OpenCode's plugin for the hook program."""

from __future__ import annotations

import os
from collections.abc import Mapping
from typing import Any

from cuggino.agents.base.calls import Orders
from cuggino.agents.opencode.tools import call_of


def answer(
    data: Mapping[str, Any], orders: Orders, settings: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the verdict on the plugin's question, to be printed.

    `data` is `{"canary": true}`, or a call: `tool`, `args`, `call` (its id), `cwd` and `servers`
    (the names of the MCP servers). `settings` are `outputs`, the folder of long outputs, which may
    be read.

    Raises:
        LookupError: a part of that is missing.
        ValueError: a path is invalid.
    """
    if data.get("canary") is True:
        own = orders.canary()
        return own, own
    call = call_of(data["tool"], data["args"], servers=data["servers"])
    if call.tool == "invalid":  # it only reports that the tool is missing
        call = call._replace(tool="ToolSearch")
    # OpenCode resolves the folder of a command by its text, whatever links there are.
    cwd = os.path.normpath(os.path.join(str(data["cwd"]), call.cwd or ""))
    call = call._replace(cwd=None)
    own = orders.verdict(call, call_id=data["call"], cwd=cwd, readable=[settings["outputs"]])
    return own, own
