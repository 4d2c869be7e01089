"""The pipe between the Claude Agent SDK and its program, used from any thread."""

from __future__ import annotations

import asyncio
import json
import os
import threading
from collections.abc import Iterator

import pytest
from hypothesis import HealthCheck, given, settings, strategies as st

from cuggino.agents.base.wire import Json
from cuggino.agents.claude_sdk.link import ClaudeSdkLink, Order, PipeTransport
from cuggino.sources.process import InputPipe
from cuggino.testing import no_leaks
from tests.limits import LIMIT
from tests.real_claude import needs_sdk


@pytest.fixture
def stdin() -> Iterator[InputPipe]:
    with no_leaks():
        pipe = InputPipe()
        yield pipe
        pipe.close()


async def heard(transport: PipeTransport, count: int) -> list[Json]:
    """Return the first messages received."""
    messages: list[Json] = []
    async for message in transport.read_messages():
        messages.append(message)
        if len(messages) == count:
            break
    return messages


def test_lines_from_another_thread(stdin: InputPipe) -> None:
    """Lines arrive in order, whether written before or after connecting."""
    transport = PipeTransport(stdin)
    transport.put(b'{"n": 0}')

    async def talk() -> list[Json]:
        await transport.connect()
        lines = [b'{"n": %d}' % number for number in range(1, 500)]
        other = threading.Thread(target=lambda: list(map(transport.put, lines)))
        other.start()
        messages = await asyncio.wait_for(heard(transport, 500), LIMIT)
        other.join()
        await transport.close()
        transport.put(b'{"n": "too late"}')
        return messages

    assert [{"n": number} for number in range(500)] == asyncio.run(talk())
    assert not transport.is_ready()


@settings(max_examples=2 * settings().max_examples, suppress_health_check=[HealthCheck.too_slow])
@given(st.lists(st.binary(max_size=40) | st.text().map(str.encode), max_size=5))
def test_any_bytes(lines: list[bytes]) -> None:
    """For any output of the program, the SDK receives objects and nothing raises."""
    stdin = InputPipe()
    transport = PipeTransport(stdin)
    for line in [*lines, b'{"is": "last"}']:
        transport.put(line)

    async def talk() -> list[Json]:
        await transport.connect()
        messages: list[Json] = []
        async for message in transport.read_messages():
            messages.append(message)
            if message == {"is": "last"}:
                break
        await transport.close()
        return messages

    assert all(isinstance(message, dict) for message in asyncio.run(talk()))


def test_lone_surrogates_are_kept(stdin: InputPipe) -> None:
    """The guard receives the same text as the program, including lone surrogates."""
    transport = PipeTransport(stdin)
    transport.put(json.dumps({"command": "\udc80"}).encode())

    async def talk() -> list[Json]:
        await transport.connect()
        messages = await heard(transport, 1)
        await transport.close()
        return messages

    assert [{"command": "\udc80"}] == asyncio.run(talk())


def test_backpressure(stdin: InputPipe) -> None:
    """A long message is written as fast as it is read, and messages do not interleave."""
    transport = PipeTransport(stdin)
    words = ["a" * 300_000, "b" * 300_000, "c"]
    got = bytearray()

    def read(source: int) -> None:
        while chunk := os.read(source, 50_000):
            got.extend(chunk)

    with stdin.take() as source:
        reader = threading.Thread(target=read, args=(source.fileno(),))

        async def talk() -> None:
            await transport.connect()
            writing = asyncio.gather(*(transport.write(word) for word in words))
            await asyncio.sleep(0.05)
            reader.start()
            await asyncio.wait_for(writing, LIMIT)
            await transport.end_input()
            await transport.close()

        asyncio.run(talk())
        reader.join()
    assert "".join(words) == got.decode()


def test_a_writer_that_is_cancelled(stdin: InputPipe) -> None:
    """Writing an unread message can be canceled, and the pipe then closed."""
    transport = PipeTransport(stdin)

    async def talk() -> None:
        await transport.connect()
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(transport.write("x" * 1_000_000), 0.05)
        await transport.close()
        with pytest.raises(BrokenPipeError):
            await transport.write("x")

    asyncio.run(talk())


def test_a_link_that_never_started() -> None:
    """A link closed before its start leaves nothing behind and cannot start."""
    with no_leaks():
        stdin = InputPipe()
        errors: list[Exception] = []
        order = Order(prompt="Go.", env={})
        link = ClaudeSdkLink(order, None, stdin=stdin, on_error=errors.append)
        link.close()
        link.close()
        assert (-1, []) == (stdin.fileno(), errors)


@pytest.mark.parametrize("times", range(5))
def test_closing_at_any_time(times: int) -> None:
    """A link closed while it starts ends silently, together with its thread."""
    needs_sdk()
    with no_leaks():
        stdin = InputPipe()
        errors: list[Exception] = []
        order = Order(prompt="Go.", env={})
        link = ClaudeSdkLink(order, None, stdin=stdin, on_error=errors.append)
        link.start()
        threading.Event().wait(times * 0.01)
        link.close()
        assert (-1, []) == (stdin.fileno(), errors)
