"""Writing files of a project anew, which agents, people and git know too."""

from __future__ import annotations

import os
import stat
from contextlib import suppress
from pathlib import Path


def rewrite(path: Path, text: str) -> None:
    """Write the text beside the file, sync it to the disk, and put it in the file's place.

    A link stays one, and a file keeps its permissions; folders are made. Nothing is written
    through a link that somebody has laid where the text is put first.

    Raises:
        OSError: it cannot be written; then the file stays as it is.
    """
    real = Path(os.path.realpath(path))
    real.parent.mkdir(parents=True, exist_ok=True)
    beside = real.with_name(f".{real.name}.tmp")
    try:
        beside.unlink(missing_ok=True)  # of a process that was killed
        flags = os.O_CREAT | os.O_EXCL | os.O_WRONLY
        with open(os.open(beside, flags, 0o666), "w", encoding="utf-8", newline="") as file:  # noqa: PTH123
            with suppress(FileNotFoundError):
                os.fchmod(file.fileno(), stat.S_IMODE(real.stat().st_mode))
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(real)
    except BaseException:
        with suppress(OSError):
            beside.unlink(missing_ok=True)
        raise
