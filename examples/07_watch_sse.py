"""A watch in an asyncio application: its events as server-sent events for any number of clients.

Needs `pip install starlette uvicorn httpx`; the client at the end is a demonstration.
"""

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from pathlib import Path

import httpx
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

import cuggino
from cuggino.agents.scripted import ScriptedAgent
from cuggino.events import WatchItemCompleted, WatchProcessingItem, is_llm_marker_event

Path(".specs").mkdir()
Path(".specs/greeting.md").write_text("greeting.txt greets the world.\n")
Path(".cuggino/backlog").mkdir(parents=True)
Path(".cuggino/backlog/001-greet.md").write_text("Greet the world.\n")

runtime = cuggino.Runtime.live(
    cwd=".",
    config=cuggino.Config(settle_seconds=0.1),
    agent=ScriptedAgent(Path(__file__).with_name("coding_loop.toml")),
)
clients: set[asyncio.Queue[str]] = set()
has_client = asyncio.Event()


async def watch() -> None:
    """Run the watch; cancelling the task terminates its agent."""
    await has_client.wait()  # only in this example: the client below misses no event
    async with aclosing(cuggino.aiterate(runtime.watch())) as events:
        async for event in events:
            for queue in clients:
                queue.put_nowait(f"event: {event.tag}\ndata: {cuggino.dump_event(event)}\n\n")


@asynccontextmanager
async def lifespan(_: Starlette) -> AsyncIterator[None]:
    """Start and end the watch with the application."""
    task = asyncio.create_task(watch())
    yield
    task.cancel()
    await asyncio.wait([task])


async def listen(_: Request) -> StreamingResponse:
    """Stream the events from now on."""

    async def lines() -> AsyncIterator[str]:
        queue: asyncio.Queue[str] = asyncio.Queue()
        clients.add(queue)
        has_client.set()
        try:
            while True:
                yield await queue.get()
        finally:
            clients.discard(queue)

    return StreamingResponse(lines(), media_type="text/event-stream")


app = Starlette(routes=[Route("/events", listen)], lifespan=lifespan)


async def main() -> None:
    """Serve on a free port, listen like a browser, and stop when the item is done."""
    with socket.socket() as port:
        port.bind(("127.0.0.1", 0))
        server = uvicorn.Server(uvicorn.Config(app, log_level="warning"))
        serving = asyncio.create_task(server.serve(sockets=[port]))
        while not server.started:
            await asyncio.sleep(0.01)
        url = "http://{}:{}/events".format(*port.getsockname())
        async with httpx.AsyncClient(timeout=60) as client, client.stream("GET", url) as response:
            async for line in response.aiter_lines():
                if not line.startswith("data: "):
                    continue
                match cuggino.parse_event(line.removeprefix("data: ")):
                    case WatchProcessingItem(filename=name):
                        print("works on", name)
                    case event if is_llm_marker_event(event):
                        print(f"  {event.tag}: {event.content}")
                    case WatchItemCompleted(filename=name):
                        print("has done", name)
                        break
                    case _:  # phases, tool calls, costs, ...
                        pass
        server.should_exit = True
        await serving


asyncio.run(main())

# prints:
# works on 001-greet.md
#   PlanComplete: One task.
#   Done: Greet the world
#   Approved: As specified.
# has done 001-greet.md
