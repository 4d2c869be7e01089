"""The operator that prints a recorded run as its command did."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import TypeVar

from reactivex import Observable

from cuggino.events import Event
from cuggino_cli.screen.controls import Controls
from cuggino_cli.screen.deliver_screen import DeliverScreen, Wording
from cuggino_cli.screen.plan_build_screen import LoopView, PlanBuildScreen
from cuggino_cli.screen.render import RunScreen, Screen, shown_on

E = TypeVar("E", bound=Event)


def with_recorded_output(
    controls: Controls, kind: Callable[[], str], *, project: str, clock: Callable[[], datetime]
) -> Callable[[Observable[E]], Observable[E]]:
    """Print each event as the command of the run did, then emit it unchanged.

    `kind` is asked at the first event: it is the kind of the run (`RunStarted`). `clock` returns
    the time of the current event. Errors: as `with_cli_output`.
    """

    def make() -> Screen:
        match kind():
            case "deliver":
                wording = Wording(controls.verbosity, words=True)
                return DeliverScreen(controls, wording, clock, project=project, stamps=True)
            case "loop":
                view = LoopView(verbosity=controls.verbosity)
                return PlanBuildScreen(controls, view, clock, project=project, stamps=True)
            case _:
                return RunScreen(controls, clock, project=project, bell=False, stamps=True)

    return shown_on(controls.lines, lambda _: _Late(make))


class _Late:
    """A screen that is made at the first event."""

    def __init__(self, make: Callable[[], Screen]) -> None:
        self._make = make
        self._screen: Screen | None = None

    def show(self, event: Event) -> None:
        if self._screen is None:
            self._screen = self._make()
        self._screen.show(event)

    def end(self) -> None:
        if self._screen is not None:
            self._screen.end()
