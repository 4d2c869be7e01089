"""Reading the few entries of a long journal that say what its run does now."""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Iterator
from pathlib import Path

from cuggino.files import storing
from cuggino.storage.journal.reader import Entry, parse_entry, without_lines

_CHUNK = 4 * 1024 * 1024
_RECENT = 256 * 1024


def skim(
    path: Path,
    tags: Collection[str],
    *,
    totals: Collection[str] = (),
    recent: int = _RECENT,
) -> Iterator[Entry]:
    """Yield the first entry, those with these tags, and all of the last `recent` bytes.

    Of entries with the tags `totals`, each of which replaces the one before of the same backlog
    item, only the last before another entry is yielded. Other lines are not parsed, so that broken
    ones among them are not noticed, and a torn last line is left out: a million entries take a
    second.

    Raises:
        StorageError: the journal cannot be read or has no complete line, or a parsed line is
            broken or has an unknown version.
    """
    wanted = "|".join(sorted(map(re.escape, {*tags, *totals}))).encode()
    find = re.compile(rb'"event":\{"_tag": ?"(' + wanted + rb')"(,"item":"[^"]*")?').finditer
    passed = frozenset(tag.encode() for tag in totals)
    latest: dict[tuple[bytes, bytes | None], bytes] = {}
    with storing("read journal", path), path.open("rb") as file:
        left = os.fstat(file.fileno()).st_size - recent
        first = file.readline()
        if not first.endswith(b"\n"):
            raise without_lines(path)
        yield parse_entry(first, path)
        left -= len(first)
        rest = b""
        while left > 0 and (data := file.read(min(left, _CHUNK))):
            left -= len(data)
            data = rest + data
            end = data.rfind(b"\n") + 1
            rest = data[end:]
            after = 0
            for match in find(data, 0, end):
                if match.start() < after:
                    continue  # in the line before
                begin, after = (
                    data.rfind(b"\n", 0, match.start()) + 1,
                    data.find(b"\n", match.end()),
                )
                line = data[begin : after + 1]
                if match[1] in passed:
                    latest.pop((match[1], match[2]), None)
                    latest[match[1], match[2]] = line
                    continue
                for total in latest.values():
                    yield parse_entry(total, path)
                latest.clear()
                yield parse_entry(line, path)
        for total in latest.values():
            yield parse_entry(total, path)
        for line in (rest + file.read()).split(b"\n")[:-1]:
            yield parse_entry(line + b"\n", path)
