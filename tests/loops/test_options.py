"""The options of each loop: an unused option is an error."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino import Runtime
from cuggino.config import Config
from cuggino.errors import ConfigError
from cuggino.events import CheckCannotFail, CheckDoesNotDecide, Event
from cuggino.loops import DeliverRunOptions, LoopRunOptions, PlanBuildOptions, WatchRunOptions

UNUSED: list[tuple[type[Any], dict[str, Any], str]] = [
    (DeliverRunOptions, {"check_command": "false"}, "the deliver loop has no option check_command"),
    (
        DeliverRunOptions,
        {"push": "o/x", "gate": "block"},
        "the deliver loop has no option push, gate",
    ),
    (DeliverRunOptions, {"linger": 1.0}, "the deliver loop has no option linger"),
    (PlanBuildOptions, {"max_iterations": 3}, "the plan/build loop has no option max_iterations"),
    (PlanBuildOptions, {"review_patience": 3}, "the plan/build loop has no option review_patience"),
    (LoopRunOptions, {"focus": "x", "verify": True}, "the coding loop has no option verify"),
    (LoopRunOptions, {"focus": "x", "audit": True}, "the coding loop has no option audit"),
    (WatchRunOptions, {"focus": "x"}, "the watch has no option focus"),
]


UNDECIDED = CheckDoesNotDecide(command="make")
ALWAYS = CheckCannotFail(command="true", why="`true` always succeeds")
SLOTS = {"slots": 2, "commit": True}

NOTICES: list[tuple[type[Any], dict[str, Any], list[Event]]] = [
    (LoopRunOptions, {"focus": "x"}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "make"}, [UNDECIDED]),
    (LoopRunOptions, {"focus": "x", "check_command": "make", "slot": 1}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "make", "gate": "block"}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "make", "gate": "clean"}, []),
    (LoopRunOptions, {"focus": "x", "check_command": "true", "gate": "block"}, [ALWAYS]),
    (WatchRunOptions, {"check_command": "make"}, [UNDECIDED]),
    (WatchRunOptions, {"check_command": "make", **SLOTS}, []),
    (WatchRunOptions, {"check_command": "true", **SLOTS}, [ALWAYS]),
    (DeliverRunOptions, {}, []),
    (PlanBuildOptions, {"verify_build": "make", "verify_test": "true"}, [ALWAYS]),
    (PlanBuildOptions, {"verify_build": "true", "verify_test": "true"}, [ALWAYS]),
]
"""What each process of a run reports about its check commands."""


@pytest.mark.parametrize(("model", "given", "events"), NOTICES)
def test_notices(
    model: type[Any], given: dict[str, Any], events: list[Event], tmp_path: Path
) -> None:
    assert events == list(model(cwd=tmp_path, **given).notices())


@pytest.mark.parametrize(("model", "given", "message"), UNUSED)
def test_an_option_of_another_loop(
    model: type[Any], given: dict[str, Any], message: str, tmp_path: Path
) -> None:
    """An option of another loop is an error that names both."""
    with pytest.raises(ConfigError) as caught:
        model(cwd=tmp_path, **given)
    remove = "them" if len(given.keys() - {"focus"}) > 1 else "it"
    assert f"{message}: remove {remove} from {model.__name__}" == str(caught.value)


def test_shared_keys_of_the_configuration(tmp_path: Path) -> None:
    """Keys of other loops in the configuration are no error."""
    (tmp_path / ".cuggino.json").write_text(
        '{"checkCommand": "false", "gate": "block", "commit": true, "budget": 5, "audit": true,'
        ' "progressPatience": 4, "commandTimeout": 60}'
    )
    runtime = Runtime.live(cwd=tmp_path, agent="claude")
    assert isinstance(runtime.config, Config)
    deliver, plan_build = runtime.deliver_options(), runtime.plan_build_options()
    coding = runtime.loop_options(focus="the page")
    assert [5, 5, 5] == [options.budget for options in (deliver, plan_build, coding)]
    assert (4, 60, "block") == (deliver.progress_patience, plan_build.command_timeout, coding.gate)


def test_a_given_option_of_another_loop(tmp_path: Path) -> None:
    """An option of another loop is a configuration error in the runtime."""
    runtime = Runtime.live(cwd=tmp_path, config=Config(), agent="claude")
    with pytest.raises(ConfigError) as caught:
        runtime.deliver_options(check_command="false")
    message = "the deliver loop has no option check_command: remove it from DeliverRunOptions"
    assert message == caught.value.message


def test_variables_are_not_journaled(tmp_path: Path) -> None:
    """They may hold secrets, and each process of a run gives its own."""
    options = LoopRunOptions(focus="a", cwd=tmp_path, env={"TOKEN": "secret"})
    assert "secret" not in options.model_dump_json()
    assert {"TOKEN": "secret"} == dict(dict(options)["env"])
