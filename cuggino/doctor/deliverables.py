"""Checks of a project of the deliver loop."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from cuggino.config import AGENT_FILE, AgentSettings, missing_programs, parse_agent_file
from cuggino.doctor.result import CheckResult
from cuggino.errors import CugginoError
from cuggino.storage import SPEC_FILE, STATUS_FILE, DeliverableStore


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
        yield CheckResult("problem", what, "pip install 'cuggino[deliver]', for `cuggino deliver`")
    yield _status(folder)
    yield from _settings(folder)


def _status(folder: Path) -> CheckResult:
    store = DeliverableStore(folder)
    loaded = store.load(now=datetime.now(UTC))
    if loaded.broken is not None:
        hint = "mend it: while it is so, no session can tell what is done"
        return CheckResult("problem", f"deliverables: {loaded.broken}", hint)
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
    path = folder / AGENT_FILE
    settings = AgentSettings()
    try:
        if path.is_file():
            found = parse_agent_file(path.read_bytes())
            settings = found.settings
            for warning in found.warnings:
                yield CheckResult("note", warning)
    except CugginoError as error:
        yield CheckResult("problem", error.message, error.hint)
    except OSError as error:
        yield CheckResult("problem", f"{AGENT_FILE} cannot be read: {error.strerror}")
    for name, program in missing_programs(settings, str(folder)).items():
        hint = f'install it, or leave {name} out of "mcpServers" in {AGENT_FILE}'
        what = f"deliverables: the MCP server {name} is left out: {program} is not installed"
        yield CheckResult("note", what, hint)
