"""The tools with which agents create deliverables and report their status (AUT-110 to 117)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import Literal, NamedTuple, get_args

from cuggino.domain.deliverables import (
    DELIVERABLE_STATUSES,
    Deliverable,
    Deliverables,
    DeliverableStatus,
    Verification,
    is_legal,
)

ToolName = Literal["create_deliverable", "set_deliverable_status", "list", "verify", "deprecate"]
TOOLS: tuple[ToolName, ...] = get_args(ToolName)
ALIASES: Mapping[str, ToolName] = MappingProxyType(
    {"create": "create_deliverable", "set_status": "set_deliverable_status"}
)
"""Names from a later edition of Autonoe, accepted everywhere."""

ToolError = Literal[
    "VALIDATION_ERROR",
    "DUPLICATE_ID",
    "NOT_FOUND",
    "INVALID_TRANSITION",
    "UNKNOWN_TOOL",
    "STORAGE_ERROR",
]

TOOLS_OF: Mapping[str, tuple[ToolName, ...]] = MappingProxyType(
    {
        "initializer": ("create_deliverable", "set_deliverable_status", "list"),
        "coding": ("create_deliverable", "set_deliverable_status", "list"),
        "sync": ("create_deliverable", "deprecate", "list"),
        "verify": ("set_deliverable_status", "verify", "list"),
    }
)
"""The tools of an agent with each instruction (AUT-110, AUT-117)."""

TOOL_SERVER = "autonoe-deliverable"
"""The MCP server that offers the tools (AUT-110)."""

LISTED_BY_DEFAULT = 5
"""The default limit of `list`."""


def agent_tool(tool: ToolName) -> str:
    """Return the name under which an agent sees the tool, as in its allowed tools."""
    return f"mcp__{TOOL_SERVER}__{tool}"


class DeliverableChange(NamedTuple):
    """A set status of a deliverable, possibly unchanged."""

    deliverable_id: str
    description: str
    previous: DeliverableStatus
    current: DeliverableStatus


class ToolAnswer(NamedTuple):
    """The answer to the agent."""

    success: bool
    message: str
    error: ToolError | None = None
    listed: tuple[Deliverable, ...] | None = None
    """The deliverables found by a successful `list`; they are the whole answer."""

    def as_json(self) -> dict[str, object]:
        if self.listed is not None:
            return {"deliverables": [_listed(item) for item in self.listed]}
        answer: dict[str, object] = {"success": self.success, "message": self.message}
        return answer | ({"error": self.error} if self.error else {})


class Performed(NamedTuple):
    """The result of a tool call and the state after it, which a failed call leaves unchanged."""

    result: ToolAnswer
    deliverables: Deliverables
    verification: Verification | None
    change: DeliverableChange | None = None


class _Refused(Exception):
    def __init__(self, error: ToolError | None, message: str) -> None:
        super().__init__(message)
        self.result = ToolAnswer(False, message, error)


def tool_named(name: str) -> ToolName | None:
    """Return the tool with that name or alias, or None."""
    return ALIASES.get(name) or next((tool for tool in TOOLS if tool == name), None)


def perform_tool(
    tool: str,
    given: object,
    deliverables: Deliverables,
    *,
    today: date,
    verification: Verification | None = None,
    strict: bool = False,
) -> Performed:
    """Call the tool with the input `given`, which may be any JSON value.

    A refused call changes nothing, and its message explains how to correct it. `strict` refuses the
    transitions that `is_legal` refuses.
    """
    unchanged = Performed(ToolAnswer(True, ""), deliverables, verification)
    try:
        match tool_named(tool):
            case "create_deliverable":
                return _create(_object(given), unchanged)
            case "set_deliverable_status":
                return _set_status(_object(given), unchanged, strict=strict)
            case "list":
                return _list(_object(given), unchanged)
            case "verify":
                return _verify(given, unchanged)
            case "deprecate":
                return _deprecate(_object(given), unchanged, today)
            case None:
                tools = ", ".join(TOOLS)
                raise _Refused("UNKNOWN_TOOL", f'There is no tool "{tool}". There are: {tools}')
    except _Refused as refused:
        return unchanged._replace(result=refused.result)


def _create(given: Mapping[str, object], before: Performed) -> Performed:
    raw = given.get("deliverables") or []
    if not isinstance(raw, list) or not all(isinstance(item, dict) for item in raw):
        shape = "a list of objects with id, description and acceptanceCriteria"
        raise _invalid(f'"deliverables" must be {shape}')
    if not raw:
        raise _invalid("At least one deliverable is required")
    seen: set[str] = set()
    for name in (item["id"] for item in raw if isinstance(item.get("id"), str)):
        if name in seen:
            raise _Refused("DUPLICATE_ID", f'Duplicate ID "{name}" in batch')
        seen.add(name)
    new = [_new(item, before.deliverables) for item in raw]
    return before._replace(
        result=ToolAnswer(True, f"Created {len(new)} deliverable(s) successfully"),
        deliverables=before.deliverables.added(new),
    )


def _new(raw: Mapping[str, object], existing: Deliverables) -> Deliverable:
    deliverable_id = _text(raw, "id", "Deliverable ID")
    description = _text(raw, "description", "Deliverable description")
    criteria = raw.get("acceptanceCriteria") or []
    if not isinstance(criteria, list) or not all(isinstance(one, str) for one in criteria):
        raise _invalid('"acceptanceCriteria" must be a list of texts')
    if not criteria:
        raise _invalid("At least one acceptance criterion is required")
    if not all(one.strip() for one in criteria):
        raise _invalid("Acceptance criteria cannot be empty")
    if existing.get(deliverable_id) is not None:
        raise _Refused("DUPLICATE_ID", f'Deliverable with ID "{deliverable_id}" already exists')
    return Deliverable(
        id=deliverable_id, description=description, acceptance_criteria=tuple(criteria)
    )


def _set_status(given: Mapping[str, object], before: Performed, *, strict: bool) -> Performed:
    deliverable_id = _text(given, "deliverableId", "Deliverable ID")
    status = _status(given.get("status"))
    item = _existing(before.deliverables, deliverable_id)
    if not is_legal(item.status, status, strict=strict):
        raise _Refused(
            "INVALID_TRANSITION",
            f'Deliverable "{item.id}" is {item.status} and cannot become {status}. '
            "Set it to pending first",
        )
    return before._replace(
        result=ToolAnswer(True, f'Deliverable "{item.description}" ({item.id}) marked as {status}'),
        deliverables=before.deliverables.with_status(item.id, status, strict=strict),
        change=DeliverableChange(item.id, item.description, item.status, status),
    )


def _list(given: Mapping[str, object], before: Performed) -> Performed:
    wanted = given.get("filter")
    if not isinstance(wanted, dict | None):
        raise _invalid('"filter" must be an object with status, verified or both')
    wanted = wanted or {}
    status = None if wanted.get("status") is None else _status(wanted["status"])
    verified = wanted.get("verified")
    if not isinstance(verified, bool | None):
        raise _invalid('"verified" must be true or false')
    limit = LISTED_BY_DEFAULT if given.get("limit") is None else given["limit"]
    if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
        raise _invalid('"limit" must be a whole number, 1 or more')
    done = before.verification.verified if before.verification else frozenset()
    found = [
        item
        for item in before.deliverables.active
        if (status is None or item.status == status)
        and (verified is None or (item.id in done) == verified)
    ]
    return before._replace(result=ToolAnswer(True, "", listed=tuple(found[:limit])))


def _verify(given: object, before: Performed) -> Performed:
    if before.verification is None:
        raise _Refused(None, "Verification tracker not available")
    deliverable_id = _text(_object(given), "deliverableId", "Deliverable ID")
    if deliverable_id not in before.verification.all:
        raise _Refused(None, f"Deliverable {deliverable_id} not found in tracker")
    return before._replace(
        result=ToolAnswer(True, f"Deliverable {deliverable_id} marked as verified"),
        verification=before.verification.marked(deliverable_id),
    )


def _deprecate(given: Mapping[str, object], before: Performed, today: date) -> Performed:
    item = _existing(before.deliverables, _text(given, "deliverableId", "Deliverable ID"))
    if not item.is_active:
        raise _invalid(f'Deliverable "{item.id}" is already deprecated')
    return before._replace(
        result=ToolAnswer(
            True, f'Deliverable "{item.description}" ({item.id}) marked as deprecated'
        ),
        deliverables=before.deliverables.deprecated(item.id, today),
    )


def _listed(item: Deliverable) -> dict[str, object]:
    return {
        "id": item.id,
        "description": item.description,
        "status": item.status,
        "acceptanceCriteria": list(item.acceptance_criteria),
    }


def _existing(deliverables: Deliverables, deliverable_id: str) -> Deliverable:
    item = deliverables.get(deliverable_id)
    if item is None:
        raise _Refused("NOT_FOUND", f'Deliverable with ID "{deliverable_id}" not found')
    return item


def _invalid(message: str) -> _Refused:
    return _Refused("VALIDATION_ERROR", message)


def _object(given: object) -> Mapping[str, object]:
    if given is None:
        return {}
    if not isinstance(given, dict):
        raise _invalid("The input must be an object")
    return given


def _text(given: Mapping[str, object], key: str, what: str) -> str:
    value = given.get(key)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise _invalid(f"{what} is required")
    if not isinstance(value, str):
        raise _invalid(f"{what} must be a text")
    return value


def _status(value: object) -> DeliverableStatus:
    for status in DELIVERABLE_STATUSES:
        if value == status:
            return status
    given = value if isinstance(value, str) else json.dumps(value)
    raise _invalid(f'Invalid status "{given}". Must be pending, passed, or blocked')
