"""One attempt and one landing, for a loop of one's own over the backlog."""

from __future__ import annotations

from functools import partial
from operator import methodcaller

from reactivex import Observable, operators as ops

from cuggino.errors import ConfigError, StorageError
from cuggino.events import (
    WatchCandidate,
    WatchEvent,
    WatchItemCompleted,
    WatchItemRetained,
    WatchLanded,
)
from cuggino.loops.frame.resuming import latest_run_of
from cuggino.loops.watch.items import item_options
from cuggino.loops.watch.options import WatchRunOptions
from cuggino.loops.watch.placement import Returned, Work, work_placed
from cuggino.loops.watch.places import gate_of, places_of
from cuggino.operators import Flow, ask, emit, flow, forward, on_loop
from cuggino.stages import Services, act
from cuggino.storage import Backlog


def attempt_item(
    services: Services,
    options: WatchRunOptions,
    item: str,
    *,
    slot: int = 1,
    number: int = 1,
    returned: Returned | None = None,
) -> Observable[WatchEvent]:
    """Work on an item of the backlog in a slot, as a watch does; see `Runtime.attempt`."""
    enough = options.model_copy(update={"slots": max(options.slots, slot)})

    def story() -> Flow[None]:
        backlog, places = Backlog(services.workspace), places_of(services, enough)
        digest = yield from ask(act(partial(backlog.digest, item)))
        if digest is None:
            raise ConfigError(f"{item} is not in the backlog", hint="see `cuggino backlog list`")
        if held := (yield from ask(act(partial(backlog.held, item)))):
            raise ConfigError(f"{item} {held}", hint="remove `held` from the file to begin anyway")
        run = yield from ask(act(partial(item_options, options, backlog, item, digest)))
        order = yield from ask(act(lambda: backlog.order(backlog.survey().items)))
        after = order.landed.get(item, ()) if order is not None else ()
        base = yield from ask(places.trunk.head(after))
        assert run is not None
        assert base is not None
        work = Work(
            options=run.model_copy(update={"attempts": 1}),
            slot=slot,
            base=base,
            number=number,
            returned=returned,
        )
        yield from forward(work_placed(places.placement, work))

    return on_loop(flow(story))


def land_item(
    services: Services, options: WatchRunOptions, candidate: WatchCandidate, *, returns: int = 0
) -> Observable[WatchEvent]:
    """Land a candidate, as a watch does; see `Runtime.land`."""
    item, workspace = candidate.filename, services.workspace

    def story() -> Flow[None]:
        places, backlog = places_of(services, options), Backlog(workspace)
        trunk, held = places.trunk, (yield from gate_of(services, options).held(command="land"))
        with workspace.lock(command="land"), held:
            workspace.open()
            title = yield from ask(act(partial(backlog.title, item)))
            yield from forward(trunk.open())
            last = yield from forward(trunk.land(candidate, title=title or item, returns=returns))
            if isinstance(last, WatchLanded):
                yield from emit(*((yield from ask(act(put_away))) or ()))
                yield from forward(trunk.follow())

    def put_away() -> tuple[WatchEvent, ...]:
        """Archive the item; one that was edited since its attempt stays."""
        backlog = Backlog(workspace)
        try:
            digest = backlog.digest(item)
        except StorageError:
            digest = None
        if digest is None:
            return ()
        is_its_text = latest_run_of(workspace, f"{item} {digest}", in_slot=True) is not None
        if is_its_text and backlog.archive(item, "approved", digest):
            return (WatchItemCompleted(filename=item),)
        return (WatchItemRetained(filename=item),)

    return on_loop(flow(story).pipe(ops.map(methodcaller("of_item", item))))
