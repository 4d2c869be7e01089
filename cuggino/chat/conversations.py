"""The conversation with a person: questions out, answers in."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection
from dataclasses import replace
from typing import Any, TypeVar

from reactivex import Observable, defer, just, operators as ops

from cuggino.chat.channel import Button, Channel, ChannelNotifier, Post, Reply
from cuggino.chat.inbox import Answer, Inbox, Question
from cuggino.chat.store import ChatState, ChatStore, new_code
from cuggino.config import USUAL, Occasion
from cuggino.domain import Schedule, cleaned
from cuggino.errors import ChatError, CugginoError
from cuggino.events import ChatAnswered, ChatAsked, ChatRefused, Event, NotificationFailed
from cuggino.notify import plain, with_notifications
from cuggino.operators import Flow, ask, emit, flow, merge_at_most, pause
from cuggino.operators.alongside import alongside
from cuggino.operators.merge_now import merge_now
from cuggino.stages import clock

RETRIES = Schedule.exponential("2s").capped("5m")
"""Delays after failures of the service."""
IDLE = 1.0
"""Seconds between two looks at a service that does not hold them."""
MOST_REFUSALS = 20
"""Refused messages that are answered; further ones are ignored, as somebody may flood a topic."""
_LONGEST_QUESTION = 3000
_OPTION = re.compile(r"#(\d{1,2})")

T = TypeVar("T")
Mask = Callable[[str], str]
Talk = Callable[[str, Callable[[Post], Flow[None]]], Flow[None]]
"""Takes a person's message; its second argument sends a post."""


def reachable(
    channel: Channel,
    *,
    inbox: Inbox | None = None,
    store: ChatStore | None = None,
    project: str = "",
    on: Collection[Occasion] = USUAL,
    mask: Mask = lambda text: text,
    **notifications: Any,
) -> Callable[[Observable[T]], Observable[T]]:
    """Reach a person by a channel: reports of a run, and with an `inbox` questions and answers.

    ::

        source:             a-----b--c|
        questions:          --q--------
        replies:            ----(r|)
        reachable(...):     a-Q-A-b--c|     Q: ChatAsked, A: ChatAnswered

    Reports are those of `with_notifications`, which takes the further options; with an inbox, spec
    issues are questions instead. The conversation lasts as long as the source; see `conversation`.
    """
    occasions = {*on} - {"spec_issue"} if inbox is not None else {*on}
    reports: Callable[[Observable[T]], Observable[T]] = with_notifications(
        ChannelNotifier(channel), project=project, on=occasions, mask=mask, **notifications
    )
    if inbox is None:
        return reports
    talk: Observable[Any] = conversation(channel, inbox, store=store, project=project, mask=mask)

    def operator(source: Observable[T]) -> Observable[T]:
        return reports(alongside(talk)(source))

    return operator


def conversation(
    channel: Channel,
    inbox: Inbox,
    *,
    store: ChatStore | None = None,
    project: str = "",
    mask: Mask = lambda text: text,
    talk: Talk | None = None,
) -> Observable[Event]:
    """Send the questions of an inbox, and settle them by the replies. Never fails.

    Each question has a code of its own, in its buttons and its text. A reply counts if it has the
    code of an open question: from a button, in the message that it replies to, or as its first
    word. It is recorded, then acknowledged; any other is refused, and its sender is told.
    `ChatAsked`, `ChatAnswered` and `ChatRefused` say what happened. With `talk`, messages of known
    senders without a code are passed to it instead.

    A transient failure is retried by `RETRIES`, and reported once as `NotificationFailed`; a
    permanent one completes the stream. The `store` keeps codes and replies beyond the process, so
    that nothing is asked or recorded twice. `mask` hides secrets.
    """
    return defer(lambda _: _Conversation(channel, inbox, store, project, mask, talk).events())


class _Conversation:
    """One subscription of a conversation."""

    def __init__(
        self,
        channel: Channel,
        inbox: Inbox,
        store: ChatStore | None,
        project: str,
        mask: Mask,
        talk: Talk | None,
    ) -> None:
        self._channel = channel
        self._inbox = inbox
        self._store = store
        self._state = store.load() if store is not None else ChatState()
        self._name = f"cuggino ({project})" if project else "cuggino"
        self._mask = mask
        self._talk = talk
        self._open: tuple[Question, ...] = ()
        self._sending: dict[str, str] = {}
        """The question that is being sent, by its code: it may be answered already."""
        self._refusals = 0
        self._reported: set[str] = set()
        """The failures that were reported, as many of them repeat all night."""

    def events(self) -> Observable[Event]:
        asking = self._inbox.questions().pipe(
            ops.do_action(self._list), ops.map(lambda _: flow(self._ask)), merge_at_most(1)
        )
        return merge_now(asking, flow(self._hear)).pipe(ops.catch(self._end))

    def _list(self, questions: tuple[Question, ...]) -> None:
        self._open = questions
        known = {question.key for question in questions}
        self._keep(self._state.settle(*({*self._state.asked.values()} - known)))

    def _keep(self, state: ChatState) -> None:
        if state != self._state and self._store is not None:
            self._store.save(state)
        self._state = state

    def _end(self, error: Exception, _source: object) -> Observable[Event]:
        return just(NotificationFailed(message=self._words(error)))

    # -- questions

    def _ask(self) -> Flow[None]:
        """Send the open questions that were not sent yet."""
        asked = {*self._state.asked.values()}
        for question in self._open:
            if question.key not in asked:
                code = new_code()
                self._sending = {code: question.key}  # kept once it is sent: twice, not never
                yield from self._send(self._post(question, code))
                state, self._sending = self._state.ask(code, question.key), {}
                self._keep(state if question in self._open else state.settle(question.key))
                yield from emit(
                    ChatAsked(
                        channel=self._channel.name,
                        question=question.key,
                        title=self._mask(question.title),
                    )
                )

    def _post(self, question: Question, code: str) -> Post:
        text = plain(self._mask(question.text), _LONGEST_QUESTION).strip()
        how = f"Answer with a button, in a reply, or in a message that begins with {code}."
        buttons = [
            Button(label=plain(self._mask(option)), reply=f"{code} #{number}")
            for number, option in enumerate(question.options, start=1)
        ]
        return Post(text=f"{self._name} asks:\n\n{text}\n\n{how}", buttons=tuple(buttons))

    def _send(self, post: Post) -> Flow[None]:
        yield from self._tried(self._channel.send(post))

    # -- replies

    def _hear(self) -> Flow[None]:
        while True:
            after = self._state.seen[-1] if self._state.seen else ""
            waiting = self._channel.replies(after).pipe(ops.to_list())
            replies = yield from self._tried(waiting)
            for reply in replies or ():
                if reply.id not in self._state.seen:
                    yield from self._take(replace(reply, text=cleaned(reply.text).strip()))
                    self._keep(self._state.see(reply.id))
            if not replies:
                yield from pause(IDLE)

    def _take(self, reply: Reply) -> Flow[None]:
        code, text = self._code_of(reply)
        if not code and reply.sender and self._talk is not None:
            yield from self._talk(text, self._send)
            return
        key = {**self._state.asked, **self._sending}.get(code)
        question = next((one for one in self._open if one.key == key), None)
        if question is None:
            problem = "no open question has this code; reply to one, or begin with its code"
            if code:
                problem = "this question is settled already"
            yield from self._refuse(reply, problem)
            return
        option = None
        if (number := _OPTION.fullmatch(text)) and 1 <= int(number[1]) <= len(question.options):
            option = int(number[1]) - 1
            text = question.options[option]
        now = yield from ask(clock())
        assert now is not None
        source = f"{reply.sender}, {self._channel.name}".removeprefix(", ")
        try:
            answer = Answer(text=text, source=source, option=option)
            self._inbox.settle(question.key, answer, at=now.astimezone())
        except CugginoError as error:
            yield from self._refuse(reply, self._words(error))
            return
        self._open = tuple(one for one in self._open if one is not question)
        self._keep(self._state.settle(question.key))
        yield from emit(
            ChatAnswered(
                channel=self._channel.name,
                question=question.key,
                sender=reply.sender,
                text=self._mask(text),
            )
        )
        recorded = f"Recorded: {plain(self._mask(question.title), 200)}: {plain(self._mask(text))}"
        yield from self._send(Post(text=recorded, to=reply))

    def _code_of(self, reply: Reply) -> tuple[str, str]:
        """Return the code of a question in a reply, or "", and the text without it."""
        known = {*self._state.asked, *self._state.used, *self._sending}
        first, _, rest = reply.text.partition(" ")
        if (code := first.strip(":.,").lower()) in known:
            return code, rest.strip()
        quoted = (word for word in re.findall(r"\w+", reply.quoted) if word in known)
        return next(quoted, ""), reply.text

    def _refuse(self, reply: Reply, reason: str) -> Flow[None]:
        self._refusals += 1
        if self._refusals <= MOST_REFUSALS:
            yield from emit(
                ChatRefused(channel=self._channel.name, sender=reply.sender, reason=reason)
            )
            yield from self._send(Post(text=f"Not recorded: {reason}.", to=reply))

    # -- failures

    def _tried(self, call: Observable[T]) -> Flow[T | None]:
        """Repeat a call until it succeeds; raise a permanent failure."""
        taken = 0
        while True:
            try:
                return (yield from ask(call))
            except Exception as error:
                if isinstance(error, ChatError) and not error.transient:
                    raise
                if (words := self._words(error)) not in self._reported:
                    self._reported.add(words)
                    yield from emit(NotificationFailed(message=words))
                named = error.retry_in if isinstance(error, ChatError) else None
                yield from pause(named or RETRIES.delay(taken) or 0.0)
                taken += 1

    def _words(self, error: Exception) -> str:
        words = error.message if isinstance(error, CugginoError) else str(error)
        hint = error.hint if isinstance(error, ChatError) and not error.transient else None
        return self._mask(f"{words}; {hint}" if hint else words) or type(error).__name__
