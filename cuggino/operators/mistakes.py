"""Errors for what is passed in place of a stream."""

from __future__ import annotations

import inspect

from reactivex import abc


def require_stream(stream: object, where: str) -> None:
    """Raise a TypeError that says what to do unless this is an Observable.

    A generator would be subscribed like an empty stream that never ends, or fail on another thread.
    """
    if isinstance(stream, abc.ObservableBase):
        return
    if inspect.isgenerator(stream):
        name = stream.__name__
        raise TypeError(
            f"{where}() needs an Observable, not a generator: "
            f"write {where}(flow({name})), with the function itself, instead of {name}()"
        )
    if inspect.isgeneratorfunction(stream):
        name = stream.__name__
        raise TypeError(
            f"{where}() needs an Observable, not a generator function: "
            f"write {where}(flow({name})) instead of {where}({name})"
        )
    raise TypeError(f"{where}() needs an Observable, not {type(stream).__name__}")


def require_result(stream: object, function: str) -> None:
    """Raise a TypeError unless this, which an operator's function returned, is a stream."""
    if isinstance(stream, abc.ObservableBase):
        return
    advice = ""
    if inspect.isgenerator(stream) or inspect.isgeneratorfunction(stream):
        advice = f": return flow({stream.__name__})"
    raise TypeError(f"{function} returned {type(stream).__name__}, not an Observable{advice}")


def require_number(name: str, value: object) -> None:
    """Raise a TypeError unless this is a number, of seconds or of something else."""
    if not isinstance(value, int | float):
        raise TypeError(f"{name} must be a number, not {value!r}")


def require_text(name: str, value: object) -> None:
    """Raise a TypeError unless this is a string: an event is easily passed in place of its text."""
    if not isinstance(value, str):
        raise TypeError(f"{name} must be a string, not {type(value).__name__}")


def require_classes(kinds: object, where: str) -> None:
    """Raise a TypeError unless `isinstance` takes this, which would fail with the first event."""
    try:
        isinstance(None, kinds)  # type: ignore[arg-type]
    except TypeError:
        given = kinds if isinstance(kinds, tuple) else (kinds,)
        wrong = next((one for one in given if not isinstance(one, type)), kinds)
        raise TypeError(f"{where}() needs a class, or several, not {wrong!r}") from None


def require_story(make: object) -> None:
    """Raise a TypeError unless this can be called to make a generator."""
    if inspect.isgenerator(make):
        name = make.__name__
        raise TypeError(
            f"flow() needs a generator function, not a generator: "
            f"write flow({name}) instead of flow({name}()), as each subscription starts over"
        )
    if isinstance(make, abc.ObservableBase):
        raise TypeError("flow() needs a generator function; this is an Observable already")
    if not callable(make):
        raise TypeError(f"flow() needs a generator function, not {type(make).__name__}")


def not_a_story(made: object) -> TypeError:
    """Return the error for a function that returned something other than a generator."""
    return TypeError(
        f"flow() needs a generator function, but it returned {type(made).__name__}: "
        "write `yield from forward(stream)` in it"
    )


def not_a_stage(step: object) -> TypeError:
    """Return the error for a bare `yield` in a flow."""
    what = "a stream" if isinstance(step, abc.ObservableBase) else type(step).__name__
    return TypeError(
        f"a flow cannot `yield` {what}: write `yield from forward(stream)` to run a stream, "
        "`yield from emit(event)` to emit an event"
    )
