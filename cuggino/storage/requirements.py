"""What a project's requirements say, by their files (LOP-094)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from cuggino.domain.job_verification import VerificationResult
from cuggino.storage.jobs import REQUIREMENTS_FOLDER
from cuggino.storage.reading import read_regular

SPECIFICATION_FILE = "SPECIFICATION.md"


def check_requirement(root: Path, code: str) -> VerificationResult:
    """Whether a specification of the project names the code, as a whole word and in any case.

    `REQ-03` and `REQ-030-1` are other codes than `REQ-030`. No agent is asked.
    """
    code = code.strip()
    if not code:
        return VerificationResult.failed("The job names no requirement code")
    whole = re.compile(rf"(?<![\w])(?<!\w-){re.escape(code)}(?!\w|[-.]\d|-\w)", re.IGNORECASE)
    for path in _files(root / REQUIREMENTS_FOLDER):
        if path.name == SPECIFICATION_FILE:
            with suppress(OSError, ValueError):
                if whole.search(read_regular(path).decode("utf-8", "replace")):
                    return VerificationResult(complete=True, requirement_valid=True)
    message = f"Requirement code {code} not found in any {SPECIFICATION_FILE} file"
    return VerificationResult.failed(message)


def _files(folder: Path) -> Iterator[Path]:
    """The files below the folder, in order; links to folders are not followed."""
    for place, folders, files in os.walk(folder):
        folders[:] = sorted(name for name in folders if not name.startswith("."))
        yield from (Path(place) / name for name in sorted(files))
