"""The status file: its JSON, reading, atomic changes, and the files beside it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path
from random import Random
from typing import Any

import pytest
from filelock import FileLock
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.domain.deliverable_tools import ALIASES, TOOLS
from cuggino.domain.deliverables import DELIVERABLE_STATUSES, Deliverables, Verification
from cuggino.errors import StorageError
from cuggino.files import DEEPEST
from cuggino.storage.deliverables import (
    LOCK_FILE,
    STATUS_FILE,
    DeliverableStore,
    VerifiedFile,
    parse_status,
    render_status,
)
from cuggino.storage.jobs import UnverifiedJobs
from cuggino.testing import no_leaks
from tests.domain.test_deliverables import made
from tests.limits import LIMIT
from tests.vectors import each, rows

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
    for _ in range(2):
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


TODAY = date(2026, 3, 4)

FILE_KEYS = ("createdAt", "updatedAt", "deliverables")
ITEM_KEYS = ("id", "description", "acceptanceCriteria", "passed", "blocked", "deprecatedAt")
TEXT = st.text(max_size=8)  # without lone surrogates, which have a separate test
NUMBERS = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
JSON = st.recursive(
    st.none() | st.booleans() | NUMBERS | TEXT,
    lambda below: st.lists(below, max_size=3) | st.dictionaries(TEXT, below, max_size=3),
    max_leaves=4,
)


def shuffled(known: dict[str, st.SearchStrategy[Any]]) -> st.SearchStrategy[dict[str, Any]]:
    """Return objects with these and unknown keys, in any order."""
    unknown = st.dictionaries(
        st.text(max_size=6).filter(lambda key: key not in FILE_KEYS + ITEM_KEYS), JSON, max_size=2
    )
    return st.builds(_in_any_order, st.fixed_dictionaries(known), unknown, st.integers(0, 99))


def _in_any_order(known: dict[str, Any], unknown: dict[str, Any], seed: int) -> dict[str, Any]:
    items = list({**unknown, **known}.items())
    Random(seed).shuffle(items)
    return dict(items)


FLAGS = st.sampled_from([(False, False), (True, False), (False, True)])
ITEM = FLAGS.flatmap(
    lambda flags: shuffled(
        {
            "id": st.text(min_size=1, max_size=4).filter(str.strip),
            "description": TEXT,
            "acceptanceCriteria": st.lists(TEXT, max_size=3),
            "passed": st.just(flags[0]),
            "blocked": st.just(flags[1]),
        }
    )
)
FILE = shuffled(
    {
        "createdAt": st.just("2025-01-01"),
        "updatedAt": st.just("2025-02-01"),
        "deliverables": st.lists(ITEM, max_size=2, unique_by=lambda item: item["id"]),
    }
)


@given(FILE, st.sampled_from(DELIVERABLE_STATUSES))
def test_a_file_round_trips(raw: dict[str, Any], status: Any) -> None:
    """A file is written back as the same text, also after a change, but for its two flags."""
    text = json.dumps(raw, indent=2, ensure_ascii=False)
    deliverables, warnings = parse_status(text.encode(), today=TODAY)
    assert text == render_status(deliverables)
    assert () == warnings
    for number, item in enumerate(deliverables.items):
        changed = json.loads(text)
        changed["deliverables"][number] |= {
            "passed": status == "passed",
            "blocked": status == "blocked",
        }
        expected = json.dumps(changed, indent=2, ensure_ascii=False)
        assert expected == render_status(deliverables.with_status(item.id, status))


@given(st.binary(max_size=60) | JSON.map(lambda value: json.dumps(value).encode()))
def test_garbage_is_a_value_error(content: bytes) -> None:
    """Any bytes are read, or rejected with a message."""
    try:
        deliverables, _ = parse_status(content, today=TODAY)
    except ValueError as error:
        assert str(error)
    else:
        assert len(deliverables.items) == len({item.id for item in deliverables.items})


def file(*items: object, **more: object) -> bytes:
    """Return a file with these deliverables."""
    return json.dumps({"deliverables": items, **more}).encode()


@each(
    "problem, content",
    [
        ("nested too deeply", file(x=json.loads("[" * DEEPEST + "]" * DEEPEST))),
        ('it has no "deliverables"', b"{}"),
        ('"deliverables" is {}: must be a list', b'{"deliverables": {}}'),
        ('"createdAt" is 5: must be a string', file(createdAt=5)),
        ('"deliverables[1]" is "B": must be an object', file({"id": "A"}, "B")),
        ('"deliverables[0]" has no "id"', file({"description": "x"})),
        ('"deliverables[0].id" is " ": must not be blank', file({"id": " "})),
        ('"deliverables[0].id" is 1: must be a string', file({"id": 1})),
        ('deliverables[1] has the id of another one, "A"', file({"id": "A"}, {"id": "A"})),
        ('"deliverables[0].description" is []', file({"id": "A", "description": []})),
        (
            '"deliverables[0].acceptanceCriteria" is "x": must be a list',
            file({"id": "A", "acceptanceCriteria": "x"}),
        ),
        (
            '"deliverables[0].acceptanceCriteria[0]" is 1: must be a string',
            file({"id": "A", "acceptanceCriteria": [1]}),
        ),
        (
            '"deliverables[0].passed" is "yes": must be true or false',
            file({"id": "A", "passed": "yes"}),
        ),
        ('"deliverables[0].deprecatedAt" is 5', file({"id": "A", "deprecatedAt": 5})),
    ],
)
def test_unusable(problem: str, content: bytes) -> None:
    """An unusable file is rejected with the error and its location."""
    with pytest.raises(ValueError) as caught:
        parse_status(content, today=TODAY)
    assert problem in str(caught.value)


def test_missing_values_have_defaults() -> None:
    """Missing dates are today, missing texts and flags empty and false, without a warning."""
    deliverables, warnings = parse_status(b"\xef\xbb\xbf" + file({"id": "A"}), today=TODAY)
    assert ("2026-03-04", "2026-03-04") == (deliverables.created_at, deliverables.updated_at)
    (item,) = deliverables.items
    assert ("", (), "pending") == (item.description, item.acceptance_criteria, item.status)
    assert () == warnings


def test_a_contradiction_is_reported() -> None:
    """Both flags mean passed, with a warning."""
    content = file({"id": "A", "passed": True, "blocked": True})
    deliverables, warnings = parse_status(content, today=TODAY)
    assert "passed" == deliverables.items[0].status
    assert ('deliverable "A" is passed and blocked; passed counts',) == warnings
    written = json.loads(render_status(deliverables))["deliverables"][0]
    assert (True, False) == (written["passed"], written["blocked"])


def test_half_a_character() -> None:
    """A lone surrogate is kept."""
    content = b'{"deliverables": [], "note": "\\ud800 \\ud83d\\ude00"}'
    text = render_status(parse_status(content, today=TODAY)[0])
    assert '"note": "\\ud800 \U0001f600"' in text
    assert text.encode()


def test_a_deprecation_date() -> None:
    """The date of a deprecation is read and kept; an empty one is None."""
    content = file({"id": "A", "deprecatedAt": "2025-01-10"}, {"id": "B", "deprecatedAt": ""})
    deliverables, _ = parse_status(content, today=TODAY)
    assert ["2025-01-10", None] == [item.deprecated_at for item in deliverables.items]
    written = json.loads(render_status(deliverables.deprecated("B", TODAY)))["deliverables"]
    assert ["2025-01-10", "2026-03-04"] == [item["deprecatedAt"] for item in written]


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


def test_ids_round_trip(tmp_path: Path) -> None:
    """IDs are read back and replaced by the next write; the folder is created."""
    file = UnverifiedJobs(tmp_path / "a" / "jobs.json")
    assert frozenset() == file.read()
    file.write(["J2", "J1", "J2"])
    assert frozenset({"J1", "J2"}) == file.read()
    file.write([])
    assert frozenset() == file.read()


def test_the_same_ids_write_nothing(tmp_path: Path) -> None:
    """Without a change the file is left alone."""
    file = UnverifiedJobs(tmp_path / "jobs.json")
    file.write(["J1"])
    before = file.path.stat().st_ino
    file.write(["J1"])
    assert before == file.path.stat().st_ino
    file.write(["J2"])
    assert before != file.path.stat().st_ino


@pytest.mark.parametrize("content", ["", "{", "{}", "1", "\udcff"])
def test_invalid_content_is_empty(content: str, tmp_path: Path) -> None:
    """A corrupt file names no job, and is replaced by the next write."""
    file = UnverifiedJobs(tmp_path / "jobs.json")
    file.path.write_text(content, errors="surrogateescape")
    assert frozenset() == file.read()
    file.write(["J1"])
    assert frozenset({"J1"}) == file.read()


def test_a_place_that_cannot_be_written(tmp_path: Path) -> None:
    """An unwritable path is an error that names the file."""
    (tmp_path / "a").write_text("")
    with pytest.raises(StorageError, match=r"jobs\.json"):
        UnverifiedJobs(tmp_path / "a" / "jobs.json").write(["J1"])
