"""The status file on disk: reading, atomic changes, and no data loss."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta, timezone
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.domain.deliverable_tools import ALIASES, TOOLS
from cuggino.domain.deliverables import Deliverables
from cuggino.errors import StorageError
from cuggino.storage.deliverables import LOCK_FILE, STATUS_FILE, DeliverableStore
from cuggino.testing import no_leaks
from tests.domain.test_deliverables import made
from tests.limits import LIMIT
from tests.vectors import rows

NOW = datetime(2026, 3, 4, 10, 11, 12, tzinfo=UTC)
ROWS = {row["id"]: row for row in rows("status_file")}
FILES = {name: row for name, row in ROWS.items() if row["case"] != "save"}


@pytest.fixture
def store(tmp_path: Path) -> DeliverableStore:
    """Return the store of an empty project."""
    return DeliverableStore(tmp_path)


def write(store: DeliverableStore, content: str) -> None:
    """Write the status file."""
    store.path.parent.mkdir(exist_ok=True)
    store.path.write_text(content, encoding="utf-8")


def new(*ids: str) -> dict[str, object]:
    """Return the input that creates these deliverables."""
    item = {"description": "d", "acceptanceCriteria": ["c"]}
    return {"deliverables": [{"id": name, **item} for name in ids]}


def ids(store: DeliverableStore) -> list[str]:
    """Return the IDs in the file."""
    return [item.id for item in store.load(now=NOW).deliverables.items]


def names(store: DeliverableStore) -> list[str]:
    """Return the names in the file's folder."""
    return sorted(path.name for path in store.path.parent.iterdir())


@pytest.mark.parametrize("name", FILES)
def test_recorded_files(name: str, store: DeliverableStore) -> None:
    """A recorded file is read as recorded, and exists if recorded."""
    row = FILES[name]
    if row["file"] is not None:
        write(store, row["file"])
    expected = row["expected"]
    loaded = store.load(now=NOW)
    assert expected["exists"] == store.exists()
    assert made(*expected["deliverables"]).items == loaded.deliverables.items
    day = "2026-03-04" if expected.get("dates") == "today" else None
    assert expected.get("createdAt", day) in (None, loaded.deliverables.created_at)
    assert expected.get("updatedAt", day) in (None, loaded.deliverables.updated_at)
    assert (row["case"] in ("malformed", "no deliverables array", "deliverables not array")) == (
        loaded.broken is not None
    )


def test_recorded_save(store: DeliverableStore) -> None:
    """Saving writes the recorded text byte by byte."""
    row = ROWS["fs-save"]
    before = made(*row["input"]["deliverables"])
    now = datetime.fromisoformat(row["today"]).replace(tzinfo=UTC)
    store.change(lambda _: (before, None), now=now)
    assert row["expected_file"] == store.path.read_text(encoding="utf-8")
    assert 9 == len(ROWS)


def test_dates_are_in_utc(store: DeliverableStore) -> None:
    """The date of a change is in UTC for any clock; the first date stays."""
    store.call("create", new("A"), now=NOW)
    night = datetime(2026, 3, 6, 1, tzinfo=timezone(timedelta(hours=2)))
    store.call("deprecate", {"deliverableId": "A"}, now=night)
    known = store.load(now=NOW).deliverables
    assert ("2026-03-04", "2026-03-05") == (known.created_at, known.updated_at)
    assert "2026-03-05" == known.items[0].deprecated_at


def test_no_write_without_a_change(store: DeliverableStore) -> None:
    """Failing and reading calls create no file and leave an existing one unchanged."""
    calls: list[tuple[str, object]] = [("create", {}), ("list", {}), ("verify", {})]
    calls += [("set_status", {"deliverableId": "X", "status": "passed"})]
    for tool, given_input in calls:
        store.call(tool, given_input, now=NOW)
    assert not store.path.parent.exists()
    write(store, "not valid json")
    for tool, given_input in calls:
        called = store.call(tool, given_input, now=NOW)
        assert f"{STATUS_FILE} is broken: line 1 column 1" in called.warnings[0]
    assert ["status.json"] == names(store)
    assert "not valid json" == store.path.read_text(encoding="utf-8")


def test_a_broken_file_is_kept(store: DeliverableStore) -> None:
    """The first change moves a broken file to a free name, and reports it (AUT-104)."""
    kept = []
    for number in ("", "-2"):
        write(store, f"broken{number}")
        called = store.call("create", new("A"), now=NOW)
        kept.append(f"status.json.broken-20260304T101112Z{number}")
        assert f"the broken {STATUS_FILE} is kept as {kept[-1]}" == called.warnings[-1]
        assert f"broken{number}" == (store.path.parent / kept[-1]).read_text(encoding="utf-8")
        assert ["A"] == ids(store)
        assert store.load(now=NOW).broken is None
    assert sorted(["status.json", *kept]) == names(store)


def test_mode_and_link_are_kept(store: DeliverableStore, tmp_path: Path) -> None:
    """A file keeps its permissions, and a symlink is followed."""
    elsewhere = tmp_path / "elsewhere.json"
    elsewhere.write_text('{"deliverables": [], "note": "mine"}', encoding="utf-8")
    elsewhere.chmod(0o600)
    store.path.parent.mkdir()
    store.path.symlink_to(elsewhere)
    store.call("create", new("A"), now=NOW)
    assert store.path.is_symlink()
    assert 0o600 == elsewhere.stat().st_mode & 0o777
    assert "mine" == json.loads(elsewhere.read_text(encoding="utf-8"))["note"]
    assert ["A"] == ids(store)


def test_a_failed_write_changes_nothing(
    store: DeliverableStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """On a full disk the error names the file, and the old text remains."""
    store.call("create", new("A"), now=NOW)
    before = store.path.read_bytes()

    def full(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(StorageError, match=r"status\.json: No space left on device") as caught:
        store.call("create", new("B"), now=NOW)
    assert "write deliverables" == caught.value.operation
    assert before == store.path.read_bytes()
    assert ["status.json"] == names(store)


def test_a_step_that_raises_writes_nothing(store: DeliverableStore) -> None:
    """The error of a change is raised, and does not block the next change."""

    def fail(_: Deliverables) -> tuple[Deliverables, None]:
        raise KeyError("no")

    with pytest.raises(KeyError):
        store.change(fail, now=NOW)
    store.call("create", new("A"), now=NOW)
    assert ["A"] == ids(store)


def test_threads_lose_nothing(store: DeliverableStore, tmp_path: Path) -> None:
    """Concurrent changes through two stores of one project are all kept."""
    stores = (store, DeliverableStore(tmp_path))
    with no_leaks():
        with ThreadPoolExecutor(8) as pool:
            for number in range(60):
                pool.submit(stores[number % 2].call, "create", new(f"N{number}"), now=NOW)
        assert {f"N{number}" for number in range(60)} == set(ids(store))


def test_a_lock_timeout(tmp_path: Path) -> None:
    """A held lock is an error after a timeout; reading needs no lock."""
    store = DeliverableStore(tmp_path, lock_timeout=0.05)
    store.call("create", new("A"), now=NOW)
    with FileLock(tmp_path / LOCK_FILE, thread_local=False):
        refusals = []

        def change() -> None:
            try:
                store.call("create", new("B"), now=NOW)
            except StorageError as error:
                refusals.append(error)

        other = threading.Thread(target=change)
        other.start()
        other.join(timeout=LIMIT)
        (refused,) = refusals
        assert "has been in use by another process for 0.05 s" in refused.message
        assert store.call("list", {}, now=NOW).result.success
    store.call("create", new("B"), now=NOW)
    assert ["A", "B"] == ids(store)


def test_the_lock_is_not_committed(store: DeliverableStore, tmp_path: Path) -> None:
    """`git add --all` commits the status but not the lock."""
    store.call("create", new("A"), now=NOW)
    environment = {**os.environ, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_SYSTEM": os.devnull}
    for arguments in (["init", "-q"], ["add", "--all"]):
        subprocess.run(["git", *arguments], cwd=tmp_path, env=environment, check=True)
    listed = subprocess.run(
        ["git", "ls-files"], cwd=tmp_path, env=environment, check=True, capture_output=True
    )
    assert (tmp_path / LOCK_FILE).exists()
    assert STATUS_FILE == listed.stdout.decode().strip()


WRITER = """
import sys
from datetime import UTC, datetime
from pathlib import Path
from cuggino.storage.deliverables import DeliverableStore
store = DeliverableStore(Path(sys.argv[1]))
number = 0
while True:
    item = {"id": f"N{number}", "description": "d" * 5000, "acceptanceCriteria": ["c"]}
    store.call("create", {"deliverables": [item]}, now=datetime.now(UTC))
    number += 1
    print(number, flush=True)
"""


def test_a_killed_writer_leaves_a_whole_file(store: DeliverableStore, tmp_path: Path) -> None:
    """After a kill at any moment every reported change is there, and others can continue."""
    for _ in range(3):
        with subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path)], stdout=subprocess.PIPE
        ) as process:
            assert process.stdout is not None
            for _ in range(5):
                told = int(process.stdout.readline())
            process.kill()
        loaded = store.load(now=NOW)
        assert () == loaded.warnings
        assert told <= loaded.deliverables.total
        assert store.call("create", new("mine"), now=NOW).result.success
        assert ["status.json"] == names(store)
        store.path.unlink()


@settings(
    max_examples=2 * settings().max_examples,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    content=st.none() | st.binary(max_size=40) | st.just(b'{"deliverables": [{"id": "A"}]}'),
    calls=st.lists(
        st.tuples(
            st.sampled_from([*TOOLS, *ALIASES]),
            st.sampled_from(
                [new("A"), new("B", "C"), {"deliverableId": "A", "status": "blocked"}, None]
            ),
        ),
        max_size=4,
    ),
)
def test_no_bytes_are_ever_lost(
    content: bytes | None, calls: list[tuple[str, Any]], tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Calls on any content are answered, and the bytes of a broken file are kept."""
    store = DeliverableStore(tmp_path_factory.mktemp("project"))
    if content is not None:
        store.path.parent.mkdir()
        store.path.write_bytes(content)
    broken = store.load(now=NOW).broken
    for tool, given_input in calls:
        assert store.call(tool, given_input, now=NOW).result.as_json()
    if broken is not None:
        found = [path.read_bytes() for path in store.path.parent.iterdir()]
        assert content in found
