"""The error of a full disk."""

from __future__ import annotations

import errno
import os
from pathlib import Path

from cuggino.errors import StorageError
from cuggino.files import storage_error


def no_room() -> StorageError:
    """Return the error of a journal that cannot be written."""
    cause = OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    error = storage_error("write journal", Path("run.jsonl"), cause)
    error.__cause__ = cause
    return error
