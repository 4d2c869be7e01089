"""The stream of server-sent events: one reader for all pages, and messages encoded once.

The folders of journals are watched, so that an event is on the page within a tenth of a second.
What changes elsewhere, or on a file system that reports nothing, is found by a poll each second.
"""

from __future__ import annotations

import asyncio
import logging
import re
import time
from collections.abc import AsyncGenerator, Callable, Iterator, Sequence
from contextlib import aclosing, contextmanager, suppress
from functools import partial

import anyio
from reactivex import abc
from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from cuggino.errors import CugginoError
from cuggino.folders import folder_changes
from cuggino.web.channel import REST, Change, Channel, OverviewChannel, RunChannel, journal_of
from cuggino.web.fragment import as_message
from cuggino.web.site import OVERVIEW, Place, Site

_LOG = logging.getLogger("cuggino.web")

MOST_STREAMS = 200
MOST_CHANNELS = 64
"""Channels that are kept; those without open pages make room for others."""
_LINGER = 5.0
"""Seconds after the last page was closed until its folders are no longer watched."""
_SHORTEST = 0.01
"""Seconds between looks at what is due: a page that is being drawn stays due."""
_MOST_WATCHED = 16
"""Workspaces whose journals are watched; those of others are polled."""
COMMENT = 15.0
"""Seconds between keep-alives of a stream without events."""
_PART = 256 * 1024
"""Bytes that a client is sent at once, unless one message is longer."""
_RUN_ID = re.compile("[0-9a-f-]{1,64}")


class Hub:
    """The channels of a server, and the position of the last message of any of them."""

    def __init__(self, site: Site) -> None:
        self.site = site
        self.position = 0
        self.streams = 0
        self.polls = 0
        """Polls so far, of all channels together."""
        self.closing = False
        self._channels: dict[str, Channel] = {}
        self._wake = asyncio.Event()
        self._attended = asyncio.Event()
        self._called = asyncio.Event()
        self._is_poked = False
        self._watches = _JournalWatches(self._report)
        self._beat = 0
        self._pieces: dict[tuple[tuple[str, ...], int], tuple[bytes, int]] = {}
        self._loop: asyncio.AbstractEventLoop | None = None

    def channel(self, key: str) -> Channel | None:
        """Return the channel with this key; None if its workspace or journal does not exist."""
        channel = self._channels.get(key)
        if channel is None or channel.error is not None:  # reloading a page tries again
            channel = self._make(key)
            if channel is None:
                return None
            self._make_room()
            self.position += 1  # pages may have seen an earlier channel of this key
            channel.messages.dropped = self.position
            self._channels[key] = channel
        channel.used = time.monotonic()
        return channel

    def run(self, place: str, run_id: str) -> RunChannel | None:
        channel = self.channel(f"r.{place}.{run_id}")
        return channel if isinstance(channel, RunChannel) else None

    async def page(self, channel: Channel) -> str:
        """Return the page of a channel as it is now.

        Raises:
            CugginoError: it cannot be shown.
        """
        async with channel.lock:
            await self._poll(channel, now=True)
            if channel.error is not None:
                raise channel.error
            return await asyncio.to_thread(channel.draw, self.position)

    def poke(self) -> None:
        """Poll now; may be called on any thread."""
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._poke)

    def close(self) -> None:
        """End all streams; may be called on any thread."""
        self.closing = True
        if self._loop is not None and not self._loop.is_closed():
            self._loop.call_soon_threadsafe(self._awake)

    async def work(self) -> None:
        """Read what open pages show, until cancelled; nothing without any."""
        self._loop = asyncio.get_running_loop()
        self.site.poke = self.poke
        beaten = time.monotonic()
        try:
            while True:
                if not self._attended_channels():
                    await self._rest()
                await self._watch()
                is_poked, self._is_poked = self._is_poked, False
                self._called.clear()
                for channel in self._attended_channels():
                    is_due = is_poked or channel.pace.due <= time.monotonic()
                    if is_due and not channel.lock.locked() and channel.error is None:
                        async with channel.lock:
                            await self._poll(channel, now=is_poked)
                if time.monotonic() - beaten >= COMMENT:
                    beaten = time.monotonic()
                    self._beat += 1
                    self._awake()
                with suppress(TimeoutError):
                    async with asyncio.timeout(self._pause()):
                        await self._called.wait()
        finally:
            await self._watches.clear()

    def _attended_channels(self) -> list[Channel]:
        return [channel for channel in self._channels.values() if channel.viewers]

    async def _rest(self) -> None:
        """Wait for an open page; stop watching, unless one comes soon."""
        self._attended.clear()
        with suppress(TimeoutError):
            async with asyncio.timeout(_LINGER):
                await self._attended.wait()
                return
        await self._watches.clear()
        await self._attended.wait()

    async def _watch(self) -> None:
        """Watch the journals of open pages, once there are any."""
        channels = self._attended_channels()
        for place in self.site.places:
            shown = [channel for channel in channels if channel.shows(place)]
            if shown and await self._watches.add(place):
                for channel in shown:
                    channel.pace.note()

    def _report(self, place: Place, _change: object) -> None:
        """Note a change of a workspace's journals; called on another thread."""
        if self._loop is not None and not self._loop.is_closed():
            with suppress(RuntimeError):  # closed meanwhile
                self._loop.call_soon_threadsafe(self._note, place)

    def _note(self, place: Place) -> None:
        for channel in self._channels.values():
            if channel.shows(place):
                channel.pace.note()
        self._called.set()

    def _poke(self) -> None:
        self._is_poked = True
        self._called.set()

    async def listen(self, keys: Sequence[str], after: int) -> AsyncGenerator[bytes, None]:
        """Yield the messages of these channels after a position, and those to come.

        A client is a position, not a queue: a client that does not read costs no memory, and
        reloads its page when it falls too far behind.
        """
        yield b"retry: 1000\n\n"
        channels = [known for key in keys if (known := self.channel(key)) is not None]
        for key in sorted({*keys} - {channel.key for channel in channels}):
            yield as_message(key, event="gone")
        listed = tuple(channel.key for channel in channels)
        with self._viewing(channels):
            while not self.closing:
                wake, beat = self._wake, self._beat
                if after < self.position:
                    message, after = self._after(listed, channels, after)
                    if message:
                        yield message
                    continue
                await wake.wait()
                if beat != self._beat:
                    yield b": still here\n\n"
            yield as_message("", event="end")

    def _after(
        self, listed: tuple[str, ...], channels: Sequence[Channel], after: int
    ) -> tuple[bytes, int]:
        """Return the next messages as one piece, cached for all clients, and their position."""
        known = self._pieces.get((listed, after))
        if known is None:
            position = self.position
            found = sorted(
                (message for channel in channels for message in channel.messages.since(after)),
                key=lambda message: message[0],
            )
            part = _cut(found)
            upto = part[-1][0] if len(part) < len(found) else position
            known = b"".join(message for _, message in part), upto
            self._pieces[listed, after] = known
        return known

    async def _poll(self, channel: Channel, *, now: bool = False) -> None:
        self.polls += 1
        try:
            change = await channel.look(now=now)
        except CugginoError as error:
            channel.error, change = error, Change(notices=["reload"])
        except Exception as error:
            _LOG.error("cuggino: %s cannot be shown: %r", channel.key, error)
            _LOG.debug("polling", exc_info=True)
            channel.error = CugginoError(f"this page cannot be shown: {type(error).__name__}")
            change = Change(notices=["reload"])
        if change is not None and channel.messages.publish(self.position + 1, change):
            self.position += 1
            self._awake()

    def _pause(self) -> float:
        """Return the seconds until a page is due."""
        channels = [one for one in self._attended_channels() if one.error is None]
        first = min((channel.pace.due for channel in channels), default=time.monotonic() + REST)
        return max(first - time.monotonic(), _SHORTEST)

    def _awake(self) -> None:
        self._pieces.clear()
        self._wake, woken = asyncio.Event(), self._wake
        woken.set()

    @contextmanager
    def _viewing(self, channels: Sequence[Channel]) -> Iterator[None]:
        self.streams += 1
        for channel in channels:
            channel.viewers += 1
        self._attended.set()
        self._poke()
        try:
            yield
        finally:
            self.streams -= 1
            for channel in channels:
                channel.viewers -= 1
                channel.used = time.monotonic()

    def _make(self, key: str) -> Channel | None:
        if key == OVERVIEW:
            return OverviewChannel(self.site)
        _, name, run_id = [*key.split(".", 2), "", ""][:3]
        place = self.site.place(name)
        if place is None or _RUN_ID.fullmatch(run_id) is None:
            return None
        path = journal_of(place, run_id)
        if not path.is_file() or path.is_symlink():
            return None
        return RunChannel(self.site, place, run_id)

    def _make_room(self) -> None:
        if len(self._channels) < MOST_CHANNELS:
            return
        idle = [found for found in self._channels.values() if not found.viewers]
        for channel in sorted(idle, key=lambda found: found.used)[: MOST_CHANNELS // 4]:
            del self._channels[channel.key]


class _JournalWatches:
    """The watches of journals; `report` is called on another thread with each change."""

    def __init__(self, report: Callable[[Place, object], None]) -> None:
        self._report = report
        self.by_workspace: dict[str, abc.DisposableBase] = {}
        """The watches by the keys of the workspaces."""

    async def add(self, place: Place) -> bool:
        """Watch this workspace, too; return False if it is watched, or cannot be."""
        if place.key in self.by_workspace or len(self.by_workspace) >= _MOST_WATCHED:
            return False
        if not place.workspace.journal.is_dir():
            return False
        watch = folder_changes(place.workspace.journal)
        report = partial(self._report, place)
        self.by_workspace[place.key] = await asyncio.to_thread(watch.subscribe, report)
        return True

    async def clear(self) -> None:
        """End all watches."""
        watches, self.by_workspace = self.by_workspace, {}
        for watch in watches.values():
            await asyncio.to_thread(watch.dispose)


class EventStream(Response):
    """A response that ends as soon as its client disconnects, even with nothing to send."""

    media_type = "text/event-stream"

    def __init__(self, messages: AsyncGenerator[bytes, None]) -> None:
        super().__init__()
        del self.headers["content-length"]
        self._messages = messages

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        start = {"type": "http.response.start", "status": 200, "headers": self.raw_headers}
        await send(start)
        async with anyio.create_task_group() as tasks, aclosing(self._messages) as messages:

            async def leave() -> None:
                while (await receive())["type"] != "http.disconnect":
                    pass
                tasks.cancel_scope.cancel()

            tasks.start_soon(leave)
            async for message in messages:
                await send({"type": "http.response.body", "body": message, "more_body": True})
            await send({"type": "http.response.body", "body": b""})
            tasks.cancel_scope.cancel()


def position_of(text: str | None) -> int | None:
    """Parse a position that a client has sent; None for anything else."""
    return int(text) if text and re.fullmatch("[0-9]{1,15}", text, re.ASCII) else None


def _cut(messages: list[tuple[int, bytes]]) -> list[tuple[int, bytes]]:
    """Return the first messages, about `_PART` bytes, with all that share the last position."""
    size = 0
    for number, (position, message) in enumerate(messages):
        size += len(message)
        if size > _PART and number and position != messages[number - 1][0]:
            return messages[:number]
    return messages
