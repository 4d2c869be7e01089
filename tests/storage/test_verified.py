"""The file of verified deliverables."""

from __future__ import annotations

from datetime import UTC, datetime
from pathlib import Path

import pytest

from cuggino.domain.deliverables import Verification
from cuggino.errors import StorageError
from cuggino.storage.deliverables import DeliverableStore, VerifiedFile

NOW = datetime(2026, 3, 4, 10, 11, 12, tzinfo=UTC)


def test_verified_file(tmp_path: Path) -> None:
    """IDs that one process marks as verified are read by another; without a file there are none."""
    store = DeliverableStore(tmp_path)
    kept = VerifiedFile(tmp_path / "folder" / "verified.json")
    assert kept.read() is None
    called = store.call("verify", {"deliverableId": "A"}, now=NOW, verified=kept)
    assert "Verification tracker not available" == called.result.message
    assert Verification(all=("B", "A")) == kept.start(["B", "A"])
    assert store.call("verify", {"deliverableId": "A"}, now=NOW, verified=kept).result.success
    assert not store.call("verify", {"deliverableId": "C"}, now=NOW, verified=kept).result.success
    known = VerifiedFile(kept.path).read()
    assert Verification(all=("B", "A"), verified=frozenset("A")) == known
    assert not store.exists()


@pytest.mark.parametrize("content", ["", "[]", '{"all": "ab", "verified": []}', '{"all": [1]}'])
def test_a_corrupt_verified_file(content: str, tmp_path: Path) -> None:
    """A file with other content is an error that names it."""
    path = tmp_path / "verified.json"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(StorageError, match=r"verified\.json: "):
        VerifiedFile(path).read()
