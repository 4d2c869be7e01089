"""Checks of a project of the deliver loop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from cuggino.config import AGENT_FILE, missing_programs, read_agent_file
from cuggino.doctor.result import CheckResult
from cuggino.errors import ConfigError, install_extra
from cuggino.storage import BROKEN_HINT, SPEC_FILE, STATUS_FILE, DeliverableStore


def deliverables(folder: Path) -> Iterator[CheckResult]:
    """Check specification, tools, status and settings, in a project that uses the loop."""
    has_spec = (folder / SPEC_FILE).is_file()
    if not has_spec and not (folder / ".autonoe").is_dir():
        return
    if not has_spec:
        hint = f"describe in {SPEC_FILE} what is to be delivered, for `cuggino deliver`"
        yield CheckResult("note", f"deliverables: there is no {SPEC_FILE}", hint)
    if find_spec("mcp") is None:
        what = "deliverables: the MCP library is not installed"
        yield CheckResult("problem", what, f"{install_extra('deliver')}, for `cuggino deliver`")
    yield _status(folder)
    yield from _settings(folder)


def _status(folder: Path) -> CheckResult:
    store = DeliverableStore(folder)
    loaded = store.load(now=datetime.now(UTC))
    if loaded.broken is not None:
        return CheckResult("problem", f"deliverables: {loaded.broken}", BROKEN_HINT)
    if loaded.warnings:
        return CheckResult(
            "note", f"deliverables: {'; '.join(loaded.warnings)}", f"see {STATUS_FILE}"
        )
    if not store.exists():
        return CheckResult("ok", "deliverables: none yet")
    known = loaded.deliverables
    blocked = f", {known.count_blocked} blocked" if known.count_blocked else ""
    return CheckResult("ok", f"deliverables: {known.count_passed}/{known.total} passed{blocked}")


def _settings(folder: Path) -> Iterator[CheckResult]:
    try:
        found = read_agent_file(folder)
    except ConfigError as error:
        yield CheckResult("problem", f"deliverables: {error.message}", error.hint)
        return
    for warning in found.warnings:
        yield CheckResult("note", warning)
    for name, program in missing_programs(found.settings, str(folder)).items():
        hint = f'install it, or leave {name} out of "mcpServers" in {AGENT_FILE}'
        what = f"deliverables: the MCP server {name} is left out: {program} is not installed"
        yield CheckResult("note", what, hint)
