"""The names that examples of docstrings and pages use without defining them.

An example that needs one gets its import; what is only declared here is imported from this file.
"""

# ruff: noqa: F401

from __future__ import annotations

import os
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from distributed import Security
from reactivex import Observable, operators as ops
from reactivex.subject import Subject

import cuggino
from cuggino import run
from cuggino.agents import LlmAgent, SpawnOptions
from cuggino.config import Config, load_config
from cuggino.config.plan_build import chosen_agent, chosen_options, load_plan_build_config
from cuggino.control import send_command
from cuggino.doctor import doctor
from cuggino.errors import AgentStalled, ForgeLimited, QuotaExceeded
from cuggino.events import (
    AgentMessage,
    CommitPerformed,
    ControlEvent,
    Done,
    Event,
    LlmAgentEvent,
    PauseAsked,
    WatchItemCompleted,
    WatchItemParked,
)
from cuggino.loops import LoopRunOptions, LoopService
from cuggino.notify import make_notifier, with_notifications
from cuggino.operators import (
    Flow,
    Schedule,
    Scope,
    StateRef,
    catch_tag,
    forward,
    idle_timeout,
    only,
    stage_timeout,
)
from cuggino.operators.markers import MarkerTags
from cuggino.operators.supervision import Remedies
from cuggino.placement import Cluster
from cuggino.placement.dask import DaskLink
from cuggino.preflight import resumed_agent
from cuggino.runs import RecordedRun, Runs, replay
from cuggino.runtime import Runtime
from cuggino.stages import planning_stage
from cuggino.testing import (
    AgentConformance,
    AgentRun,
    CiRun,
    InMemoryAgent,
    InMemoryForge,
    Marbles,
    PlayArena,
    Say,
    VirtualClock,
    VirtualRuntime,
    Wait,
    Write,
)
from cuggino.trust import TrustStore
from cuggino.web import serving

runtime: Runtime
services: Any
agent: LlmAgent
options: SpawnOptions
more_options: SpawnOptions
loop_options: LoopRunOptions
config: Config
cwd: Path
folder: Path
project: Path
tmp_path: Path
items: Observable[list[str]]
TAGS: MarkerTags
my_shell: Any
security: Security
work: str
session: Observable[Event]
stream: Observable[Event]
seen: list[object]
clock: VirtualClock
remedies: Remedies


def notice(resets_at: datetime | None) -> Observable[Event]:
    raise NotImplementedError


def end_after_commands(
    limit: int,
) -> Callable[[Observable[LlmAgentEvent]], Observable[LlmAgentEvent]]:
    raise NotImplementedError


def resume(error: AgentStalled) -> Observable[Event]:
    raise NotImplementedError


def take_lock() -> str:
    raise NotImplementedError


def release_lock(lock: str) -> None:
    raise NotImplementedError


def make_folder() -> Path:
    raise NotImplementedError


def remove_folder(folder: Path) -> None:
    raise NotImplementedError


def work_in(folder: Path) -> Observable[Event]:
    raise NotImplementedError


class MyArena(PlayArena):
    def play(self, turns: Any, fault: Any) -> Any:
        raise NotImplementedError


class ParrotArena(MyArena):
    pass
