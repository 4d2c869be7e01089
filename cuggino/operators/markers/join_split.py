"""`join_split_messages`: an agent's messages that hold one marker together, as one message."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from reactivex import Observable, abc

from cuggino.events import AgentMessage, Event, PingEvent
from cuggino.operators.managed import Subscription, managed


def join_split_messages(
    names: Collection[str],
) -> Callable[[Observable[Event]], Observable[Event]]:
    """Join consecutive messages without an id from an opening tag up to its closing tag.

    ::

        source:               -a-b-c-|     a: "<DONE>", b: "Add it", c: "</DONE>"
        join_split_messages:  -----m-|     m: the lines of all three

    An agent that emits each line of its program as a message is understood this way. A tag must
    begin a line. If another event or the end comes first, the messages pass as they were. (RxPY's
    `buffer` has no rule that looks at the values.)
    """
    tag = re.compile(rf"^ {{0,3}}<({'|'.join(map(re.escape, names))})>", re.MULTILINE)

    def opened(text: str) -> str:
        """Return the closing tag that the text lacks, or ""."""
        for last in [*tag.finditer(text)][-1:]:
            closing = f"</{last[1]}>"
            return "" if closing in text[last.end() :] else closing
        return ""

    def operator(source: Observable[Event]) -> Observable[Event]:
        def subscribe(
            observer: Subscription[Event], scheduler: abc.SchedulerBase | None
        ) -> abc.DisposableBase:
            held: list[AgentMessage] = []
            closing = ""

            def release() -> None:
                parts, held[:] = list(held), []
                for part in parts:
                    observer.on_next(part)

            def on_next(event: Event) -> None:
                nonlocal closing
                match event:
                    case AgentMessage(message_id=None, parent_tool_use_id=None) if held:
                        held.append(event)
                        if closing in event.text:
                            whole = "\n".join(part.text for part in held)
                            held.clear()
                            observer.on_next(event.model_copy(update={"text": whole}))
                    case AgentMessage(message_id=None, parent_tool_use_id=None):
                        closing = opened(event.text)
                        if closing:
                            held.append(event)
                        else:
                            observer.on_next(event)
                    case PingEvent():
                        observer.on_next(event)
                    case _:
                        release()
                        observer.on_next(event)

            def end(then: Callable[[], None]) -> None:
                release()
                then()

            return source.subscribe(
                on_next,
                lambda error: end(lambda: observer.on_error(error)),
                lambda: end(observer.on_completed),
                scheduler=scheduler,
            )

        return managed(subscribe)

    return operator
