"""The language of marble diagrams: parse, compare, draw."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from difflib import SequenceMatcher
from typing import Any, NamedTuple

from reactivex import Observer, abc

from cuggino.events import Event
from cuggino.testing.clock import seconds

Seen = tuple[float, str, Any]
"""A received notification: the virtual second, `next`, `error` or `completed`, and the value."""


class _Mark(NamedTuple):
    when: float
    sign: str
    place: int


class Diagram:
    """A diagram in the language of `Marbles`."""

    def __init__(self, text: str) -> None:
        self.text = text

    def notifications(self, events: Mapping[str, Any], error: Any) -> list[Seen]:
        """Return the notifications that it draws, with the event of each letter.

        Raises:
            ValueError: the diagram cannot be parsed.
        """
        seen: list[Seen] = []
        for when, sign, place in self._marks():
            if seen and seen[-1][1] != "next":
                raise self._wrong(place, "comes after the end")
            if sign == "|":
                seen.append((when, "completed", None))
            elif sign == "#":
                seen.append((when, "error", error))
            elif sign in "^!" and sign not in events:
                raise self._wrong(place, "belongs into the diagram of a subscription")
            elif sign not in events:
                known = " ".join(sorted(events)) or "none"
                hint = f"is no event; known: {known}"
                if sign.isdigit():
                    hint += '; a time is a word of its own, as in "a 25m b|"'
                raise self._wrong(place, hint)
            else:
                seen.append((when, "error" if is_error(events[sign]) else "next", events[sign]))
        return seen

    def subscription(self) -> tuple[float, float | None]:
        """Return when a subscription begins (`^`) and ends (`!`; None without one).

        Raises:
            ValueError: the diagram draws anything else.
        """
        begun: float | None = None
        ended: float | None = None
        for when, sign, place in self._marks():
            if sign == "^" and begun is None:
                begun = when
            elif sign == "!" and begun is not None and ended is None:
                ended = when
            else:
                raise self._wrong(place, "belongs to no subscription, which is drawn as --^---!")
        if begun is None:
            raise ValueError(f"{self.text!r}: a subscription begins with ^")
        return begun, ended

    def _marks(self) -> Iterator[_Mark]:
        now, group, place = 0.0, False, 0
        for word in self.text.split():
            place = self.text.index(word, place)
            if not group and (passed := _time(word)) is not None:
                now += passed
                place += len(word)
                continue
            for sign in word:
                if sign in "()":
                    if (sign == "(") == group:
                        raise self._wrong(place, "has no counterpart")
                    group = sign == "("
                elif sign != "-":
                    yield _Mark(round(now, 3), sign, place)
                now += 0 if group else 1
                place += 1
        if group:
            raise self._wrong(self.text.rindex("("), "has no counterpart")

    def _wrong(self, place: int, why: str) -> ValueError:
        return ValueError(f"{self.text!r}: {self.text[place]!r} {why}\n{' ' * (place + 1)}^")


def _time(word: str) -> float | None:
    try:
        return seconds(word)
    except ValueError:
        return None


def is_class(value: Any) -> bool:
    """Return whether the value stands for every event or error of a class."""
    return isinstance(value, type)


def is_error(value: Any) -> bool:
    """Return whether a letter with this value ends its stream."""
    return isinstance(value, Exception) or (is_class(value) and issubclass(value, Exception))


def same(expected: Seen, actual: Seen) -> bool:
    """Return whether a notification matches the expected one, including its time."""
    return expected[:2] == actual[:2] and _alike(expected[2], actual[2])


def _alike(expected: Any, actual: Any) -> bool:
    if is_class(expected):
        return isinstance(actual, expected)
    if isinstance(expected, Exception):
        return type(expected) is type(actual) and str(expected) == str(actual)
    return bool(expected == actual)


def recorder(seen: list[Seen], now: Callable[[], float]) -> abc.ObserverBase[Any]:
    """Return an observer that adds what it receives to the list, with the time."""
    return Observer(
        lambda value: seen.append((now(), "next", value)),
        lambda error: seen.append((now(), "error", error)),
        lambda: seen.append((now(), "completed", None)),
    )


def difference(
    expected: list[Seen], actual: list[Seen], events: Mapping[str, Any], error: Any
) -> str:
    """Describe the difference: both diagrams, then a comparison line by line."""
    names = {**events, "#": error}
    return "\n".join(
        [
            "the stream differs from the diagram",
            f"expected  {drawn(expected, names)}",
            f"but saw   {drawn(actual, names)}",
            *_differences(expected, actual, names),
        ]
    )


def drawn(seen: Iterable[Seen], names: Mapping[str, Any]) -> str:
    """Draw the received notifications; `?` marks a value without a letter."""
    instants: dict[float, str] = {}
    for when, kind, value in seen:
        instants[when] = instants.get(when, "") + _sign(kind, value, names)
    text, now = "", 0.0
    for when, signs in instants.items():
        gap = round(when - now, 3)
        if gap > 9 or gap != int(gap):
            text += f" {_words(gap)} "
        else:
            text += "-" * int(gap)
        text += f"({signs})" if len(signs) > 1 else signs
        now = when + 1
    return text.strip() or "(nothing)"


def _words(gap: float) -> str:
    for unit, size in (("h", 3600), ("m", 60)):
        if gap >= size and gap % size == 0:
            return f"{gap / size:g}{unit}"
    return f"{gap:.3f}".rstrip("0").rstrip(".") + "s"


def _sign(kind: str, value: Any, names: Mapping[str, Any]) -> str:
    if kind == "completed":
        return "|"
    exactly_first = sorted(names.items(), key=lambda item: is_class(item[1]))
    found = (name for name, known in exactly_first if known is value or _alike(known, value))
    return next(found, "?" if kind == "next" else "#")


def _differences(
    expected: list[Seen], actual: list[Seen], names: Mapping[str, Any]
) -> Iterator[str]:
    # Numbers for both, equal where they are alike, so that one list can be laid onto the other.
    keys: list[Seen] = []

    def key(one: Seen) -> int:
        for number, known in enumerate(keys):
            if same(known, one):
                return number
        keys.append(one)
        return len(keys) - 1

    old, new = [key(one) for one in expected], [key(one) for one in actual]
    for what, i, j, k, m in SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        if what == "equal":
            yield from (_line(" ", one, names) for one in actual[k:m])
        else:
            yield from (_line("-", one, names) for one in expected[i:j])
            yield from (_line("+", one, names) for one in actual[k:m])


def _line(side: str, one: Seen, names: Mapping[str, Any]) -> str:
    when, kind, value = one
    what = kind if kind == "completed" else shown(value)
    return f"{side} {when:>9g} s  {_sign(kind, value, names)}  {what}"


def shown(value: Any) -> str:
    """Format a value for a person; an event without its default fields."""
    if is_class(value):
        return f"any {value.__name__}"
    if not isinstance(value, Event):
        return repr(value)
    given = [name for name in type(value).model_fields if name in value.model_fields_set]
    fields = (f"{name}={getattr(value, name)!r}" for name in given)
    return f"{value.tag}({', '.join(fields)})"
