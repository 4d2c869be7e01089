"""The stream: what open pages are sent."""

from __future__ import annotations

import contextlib
import gc
import re
import shutil
import socket
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from cuggino.web import channel, stream
from cuggino.web.channel import MOST_MESSAGES
from cuggino.web.stream import MOST_STREAMS, EventStream
from tests.limits import LIMIT
from tests.processes.subscribers import eventually
from tests.web import plain_pages
from tests.web.journals import NOTE, Writer
from tests.web.server import Messages, Page, page

pytestmark = pytest.mark.usefixtures("plain", "quick")


def _seq(html: str) -> int:
    found = re.search('data-seq="([0-9]+)"', html)
    assert found is not None, html[:200]
    return int(found[1])


def _key(served: Page, run: Writer) -> str:
    return f"r.{served.server.app.site.places[0].key}.{run.run_id}"


def _open(served: Page, run: Writer) -> tuple[int, str]:
    """Open the page of a run; return its position, and its text."""
    place = served.server.app.site.places[0].key
    opened = served.get("p", place, "runs", run.run_id)
    assert opened.status_code == 200
    return _seq(opened.text), opened.text


@contextlib.contextmanager
def _following(served: Page, run: Writer) -> Iterator[Messages]:
    """Open the page of a run, and its stream."""
    seq, _ = _open(served, run)
    with served.stream(_key(served, run), after=seq) as messages:
        yield messages


def _notes(messages: Messages, last: str) -> list[str]:
    """Return the notes that come, in order, until `last`."""
    found: list[str] = []
    while last not in found:
        found += re.findall(NOTE, next(messages).data)
    return found


def test_events_reach_an_open_page(served: Page, run: Writer) -> None:
    """Entries written after the page was made come on the stream, once and in order."""
    run.note(1)
    seq, text = _open(served, run)
    assert "note-1-" in text
    with served.stream(_key(served, run), after=seq) as messages:
        run.note(2)
        assert ["2"] == _notes(messages, "2")
        run.note(3, 4)
        assert ["3", "4"] == _notes(messages, "4")


def test_events_come_by_the_watch_of_the_folder(
    served: Page, run: Writer, project: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An event needs no poll: with none for an hour it comes all the same."""
    monkeypatch.setattr(channel, "REST", 3600.0)
    seq, _ = _open(served, run)
    with served.stream(_key(served, run), "o", after=seq) as messages:
        run.note(1)
        assert ["1"] == _notes(messages, "1")
        other = Writer(project)
        assert other.run_id in next(one for one in messages if one.data.startswith("o\n")).data
        other.close()
        assert ["shop"] == list(served.server.app.hub._watches.by_workspace)


def test_watches_end_with_the_last_page(
    served: Page, run: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nothing is watched before the first page or soon after the last one."""
    monkeypatch.setattr(stream, "_LINGER", 0.0)
    hub = served.server.app.hub
    seq, _ = _open(served, run)
    assert not hub._watches.by_workspace
    with served.stream(_key(served, run), after=seq) as messages:
        run.note(1)
        assert ["1"] == _notes(messages, "1")
    assert eventually(lambda: not hub._watches.by_workspace, LIMIT)
    with served.stream(_key(served, run), after=seq) as messages:
        run.note(2)
        assert ["1", "2"] == _notes(messages, "2")


def test_browser_that_comes_back_gets_what_it_missed(served: Page, run: Writer) -> None:
    """`Last-Event-ID` wins over the position of the page; nothing is lost or sent twice."""
    seq, _ = _open(served, run)
    with served.stream(_key(served, run), after=seq) as messages:
        run.note(1)
        first = next(message for message in messages if "note-1-" in message.data)
    assert first.id is not None
    run.note(2)
    headers = {"Last-Event-ID": str(first.id)}
    with served.stream(_key(served, run), after=seq, **headers) as messages:
        run.note(3)
        assert ["2", "3"] == _notes(messages, "3")
    with served.stream(_key(served, run), after=seq) as messages:
        assert ["1", "2", "3"] == _notes(messages, "3")


def test_one_stream_for_several_pages(served: Page, project: Path) -> None:
    """Each message names its page; the stream of a browser has those of all its tabs."""
    one, two = Writer(project), Writer(project)
    served.get()
    after = max(_open(served, one)[0], _open(served, two)[0])
    with served.stream(_key(served, one), _key(served, two), "o", after=after) as messages:
        one.note(1)
        two.note(2)
        Writer(project).close()
        wanted = {_key(served, one): "note-1-", _key(served, two): "note-2-", "o": "board"}
        for message in messages:
            channel, _, html = message.data.partition("\n")
            if wanted.get(channel, "never") in html:
                del wanted[channel]
            if not wanted:
                break
    one.close()
    two.close()


def test_page_that_is_too_far_behind_is_reloaded(served: Page, run: Writer) -> None:
    """More entries at once than are worth sending, or a lost position, reload the page."""
    run.note(0)
    seq, _ = _open(served, run)
    run.note(*range(MOST_MESSAGES + 2))
    with served.stream(_key(served, run), after=seq) as messages:
        found = next(message for message in messages if message.kind == "reload")
        assert _key(served, run) == found.data


@pytest.mark.parametrize("given", ["0", "-5", "x", "1e9", "²"])
def test_position_that_is_none_reloads(served: Page, run: Writer, given: str) -> None:
    """A position that no page of this server has had reloads the page."""
    _open(served, run)
    url = f"{served.base}/stream?on={_key(served, run)}"
    headers = [(b"last-event-id", given.encode("latin-1"))]
    with served.client.stream("GET", url, headers=headers) as response:
        messages = Messages(response)
        assert "reload" == next(messages).kind


def test_end_of_a_run(served: Page, run: Writer) -> None:
    """The end is sent with a `bye`; a run that can be resumed goes on later."""
    with _following(served, run) as messages:
        run.end()
        kinds = [next(messages).kind, next(messages).kind]
    assert ["message", "bye"] == kinds


def test_text_cannot_leave_its_message(served: Page, run: Writer) -> None:
    """Line ends, ends of templates and fields of the protocol in a text stay text."""
    seq, _ = _open(served, run)
    text = "note-1-</template><script>x</script>\r\n\r\nevent: bye\n\ndata: y\rid: 7\u2028\x00"
    with served.stream(_key(served, run), after=seq) as messages:
        run.write(text)
        message = next(message for message in messages if "note-1-" in message.data)
        assert "message" == message.kind
        assert "<script" not in message.data
        assert message.data.count("</template>") == message.data.count("<template ")
        run.note(2)
        assert ["2"] == _notes(messages, "2")


def test_journal_that_is_cut_and_resumed(served: Page, run: Writer) -> None:
    """A killed run leaves half a line; resumed, its page goes on without a gap or a double."""
    run.note(1)
    seq, text = _open(served, run)
    assert ["1"] == re.findall(NOTE, text)
    with served.stream(_key(served, run), after=seq) as messages:
        resumed = run.killed()
        resumed.note(2, 3)
        assert ["2", "3"] == _notes(messages, "3")
    resumed.close()


def test_journal_removed_under_a_page(served: Page, run: Writer) -> None:
    """An open page gets an event, a new one an explanation; no traceback."""
    seq, _ = _open(served, run)
    key = _key(served, run)
    with served.stream(key, after=seq) as messages:
        run.close()
        run.path.unlink()
        assert "gone" == next(messages).kind
    answer = served.get("p", served.server.app.site.places[0].key, "runs", run.run_id)
    assert answer.status_code in (404, 410)
    assert "removed" in answer.text
    assert "Traceback" not in answer.text


def test_workspace_removed_under_a_page(served: Page, run: Writer, project: Path) -> None:
    """The whole project is deleted: pages stay pages, and it is shown again when it comes back."""
    run.close()
    place = served.server.app.site.places[0].key
    seq, _ = _open(served, run)
    shutil.rmtree(project)
    assert 200 == served.get().status_code
    assert served.get("p", place, "runs", run.run_id).status_code in (404, 410)
    with served.stream(_key(served, run), "o", after=seq) as messages:
        assert "gone" == next(message.kind for message in messages if message.kind != "message")
    project.mkdir()
    again = Writer(project, run_id=run.run_id)
    again.note(7)
    assert "note-7-" in _open(served, again)[1]
    again.close()


def test_broken_journal_has_a_page_that_says_so(served: Page, run: Writer) -> None:
    """A journal of another version, or garbage, is a sentence and not a traceback."""
    run.close()
    with run.path.open("ab") as file:
        file.write(b'{"v":9}\n')
    answer = served.get("p", served.server.app.site.places[0].key, "runs", run.run_id)
    assert 409 == answer.status_code
    assert "version 9 of the journal format" in answer.text


@pytest.mark.parametrize(
    "path",
    [
        "p/shop/runs/../../x",
        "p/none/runs/1",
        "p/shop/runs/%2e%2e",
        "static/x/..%2fpages.py",
        "nothing",
    ],
)
def test_other_paths_are_not_found(served: Page, path: str) -> None:
    """Nothing but journals of the workspaces and our files can be asked for."""
    answer = served.client.get(f"{served.base}/{path}")
    assert 404 == answer.status_code
    assert "Not found" in answer.text


def test_link_is_no_journal(served: Page, project: Path, tmp_path: Path) -> None:
    """A link in the folder of journals shows no file elsewhere."""
    run = Writer(tmp_path / "elsewhere")
    run.close()
    folder = project / ".cuggino" / "journal"
    folder.mkdir(parents=True)
    (folder / run.path.name).symlink_to(run.path)
    answer = served.get("p", served.server.app.site.places[0].key, "runs", run.run_id)
    assert 404 == answer.status_code


def test_two_workspaces_with_the_same_run(tmp_path: Path) -> None:
    """Projects of one name, with runs of one id, do not mix."""
    folders = [tmp_path / side / "shop" for side in ("left", "right")]
    runs = []
    for number, folder in enumerate(folders):
        folder.mkdir(parents=True)
        runs.append(Writer(folder, run_id="0193b2c1-0000-7000-8000-000000000000"))
        runs[-1].note(number)
    with page(*folders) as served:
        keys = [place.key for place in served.server.app.site.places]
        assert ["shop", "shop-2"] == keys
        texts = [served.get("p", key, "runs", runs[0].run_id).text for key in keys]
    assert [["0"], ["1"]] == [re.findall(NOTE, text) for text in texts]
    for run in runs:
        run.close()


def test_nothing_is_read_while_no_page_is_open(served: Page, run: Writer) -> None:
    """Without an open page the poller stands still."""
    hub = served.server.app.hub
    seq, _ = _open(served, run)
    with served.stream(_key(served, run), after=seq) as messages:
        run.note(1)
        _notes(messages, "1")
    assert eventually(lambda: hub.streams == 0)
    before = hub.polls  # a poll is counted when it begins, and none begins without a stream
    run.note(2)
    time.sleep(0.3)  # of a poll every 20 ms, none
    assert before == hub.polls
    with served.stream(_key(served, run), after=seq) as messages:
        assert ["1", "2"] == _notes(messages, "2")


def test_event_of_5_mb(served: Page, run: Writer) -> None:
    """A huge text is cut on the page, and the next event comes soon after it."""
    with _following(served, run) as messages:
        run.write("x" * 5_000_000)
        run.note(1)
        assert ["1"] == _notes(messages, "1")
    _, text = _open(served, run)
    assert len(text) < 200_000


def _raw(served: Page, run: Writer, after: int) -> socket.socket:
    """Connect to the stream without reading it."""
    found = urlsplit(served.server.url)
    client = socket.create_connection((found.hostname, found.port))
    cookie = "; ".join(f"{name}={value}" for name, value in served.client.cookies.items())
    client.sendall(
        f"GET {served.base}/stream?on={_key(served, run)}&after={after} HTTP/1.1\r\n"
        f"Host: {found.netloc}\r\nCookie: {cookie}\r\n\r\n".encode()
    )
    return client


@pytest.mark.real_agent
def test_browsers_that_disconnect_1000_times(served: Page, run: Writer) -> None:
    """Streams that come and go leave nothing behind: no task, no thread, no descriptor.

    The server works in this process, so other threads may take a moment to finish what they close.
    """
    run.note(*range(100))
    seq, _ = _open(served, run)
    hub = served.server.app.hub

    def descriptors() -> int:
        return len(list(Path("/proc/self/fd").iterdir()))

    def streams() -> int:
        gc.collect()
        return sum(isinstance(found, EventStream) for found in gc.get_objects())

    for _ in range(5):
        _raw(served, run, seq - 1).close()
    assert eventually(lambda: hub.streams == 0)
    before, threads = descriptors(), threading.active_count()
    for _ in range(1000):
        _raw(served, run, seq - 1).close()
    assert eventually(lambda: hub.streams == 0 and descriptors() <= before + 2)
    assert eventually(lambda: threading.active_count() <= threads + 1)
    assert eventually(lambda: streams() <= 1)
    with served.stream(_key(served, run), after=seq) as messages:
        run.note(1000)
        assert ["1000"] == _notes(messages, "1000")


def test_browsers_that_do_not_read(
    served: Page, run: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A browser that never reads is a position; the data kept for all of them is limited."""
    monkeypatch.setattr("cuggino.web.channel.MOST_BYTES", 200_000)
    seq, _ = _open(served, run)
    hub = served.server.app.hub
    with contextlib.ExitStack() as stack:
        for _ in range(20):
            stack.enter_context(contextlib.closing(_raw(served, run, seq)))
        assert eventually(lambda: hub.streams == 20)
        with served.stream(_key(served, run), after=seq) as messages:
            for number in range(8):
                run.write(*["y" * 1000] * 200)
                run.note(number)
                assert [str(number)] == _notes(messages, str(number))[-1:]
        channel = hub.channel(_key(served, run))
        assert channel is not None
        assert 0 < channel.messages.size <= 200_000
        assert channel.messages.dropped > seq


def test_message_that_is_too_long_reloads(
    served: Page, run: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Instead of a message of megabytes, pages are loaded again."""
    monkeypatch.setattr("cuggino.web.channel.MOST_MESSAGE", 2000)
    with _following(served, run) as messages:
        run.write(*["y" * 300] * 10)
        next(message for message in messages if message.kind == "reload")  # the stage's may precede
        run.note(1)
        assert ["1"] == _notes(messages, "1")


def test_much_is_sent_in_pieces(served: Page, run: Writer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A page that is behind gets all messages, in order, however they are cut."""
    monkeypatch.setattr("cuggino.web.stream._PART", 1000)
    seq, _ = _open(served, run)
    with served.stream(_key(served, run), after=seq) as messages:
        for number in range(8):
            run.note(number)
            _notes(messages, str(number))
    with served.stream(_key(served, run), after=seq) as messages:
        assert [str(number) for number in range(8)] == _notes(messages, "7")


def test_page_that_failed_can_be_tried_again(
    served: Page, run: Writer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A page that cannot be drawn is a sentence; reloaded, it is tried again."""
    place = served.server.app.site.places[0].key

    def fail(*_: object, **__: object) -> None:
        raise RuntimeError("secret detail")

    with monkeypatch.context() as patch:
        patch.setattr(plain_pages.RunFold, "add", fail)
        answer = served.get("p", place, "runs", run.run_id)
        assert 409 == answer.status_code
        assert "cannot be shown" in answer.text
    with monkeypatch.context() as patch:
        patch.setattr(plain_pages, "run_page", fail)
        answer = served.get("p", place, "runs", run.run_id)
        assert (500, "close") == (answer.status_code, answer.headers["connection"])
        assert "secret" not in answer.text
        assert "Traceback" not in answer.text
    assert 200 == served.get("p", place, "runs", run.run_id).status_code
    assert 200 == served.client.head(f"{served.base}/stream?on=o").status_code


def test_streams_are_limited(served: Page, project: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Beyond 200 streams a browser is asked to come back later; pages are still served."""
    assert 200 == MOST_STREAMS
    monkeypatch.setattr("cuggino.web.server.MOST_STREAMS", 2)
    with served.stream("o"), served.stream("o"):
        assert eventually(lambda: served.server.app.hub.streams == 2)
        answer = served.client.get(f"{served.base}/stream?on=o")
        assert (503, "10") == (answer.status_code, answer.headers["retry-after"])
        assert 200 == served.get().status_code


def test_sign_of_life(served: Page, monkeypatch: pytest.MonkeyPatch) -> None:
    """A quiet stream sends comments, so that a lost browser is noticed."""
    monkeypatch.setattr("cuggino.web.stream.COMMENT", 0.05)
    served.get()
    with served.client.stream("GET", f"{served.base}/stream?on=o") as response:
        read = b""
        for chunk in response.iter_bytes():
            read += chunk
            if read.count(b": still here\n\n") >= 3:
                break
        assert read.startswith(b"retry: 1000\n\n")


def test_server_ends_while_pages_are_open(run: Writer, project: Path) -> None:
    """Open streams are ended with a message, and keep nothing from ending."""
    with page(project) as served:
        seq, _ = _open(served, run)
        with contextlib.ExitStack() as stack:
            streams = [
                stack.enter_context(served.stream(_key(served, run), after=seq)) for _ in range(5)
            ]
            served.server.app.hub.close()
            ends = [[message.kind for message in messages] for messages in streams]
    assert [["end"]] * 5 == ends
    assert served.server.ended.is_set()
    assert "cuggino-serve" not in {thread.name for thread in threading.enumerate()}
