"""The targets of the figures, as data."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Literal, NamedTuple

Unit = Literal["s", "ms", "us", "MiB", "x"]


class Target(NamedTuple):
    """The most that a figure may be."""

    most: float
    unit: Unit
    """`x` limits the ratio to the floor, every other unit the value."""


TARGETS: Mapping[str, Target] = MappingProxyType(
    {
        # An agent's output of 200,000 lines, CPU beside `json.loads` on the same pipe; and of other
        # sessions.
        "stream.default": Target(3.0, "x"),
        "stream.json": Target(3.0, "x"),
        "stream.verbose": Target(3.0, "x"),
        "stream.one-by-one": Target(3.0, "x"),
        "shape.text": Target(3.0, "x"),
        "shape.whole": Target(3.0, "x"),
        # A line of it that comes alone.
        "alone.mixed": Target(60.0, "us"),
        "alone.text": Target(60.0, "us"),
        "alone.whole": Target(60.0, "us"),
        # An event that a loop gets.
        "iterate.range": Target(8.0, "us"),
        "iterate.process": Target(8.0, "us"),
        # Starts, CPU beside importing the third-party packages of the same path alone.
        "start.version": Target(2.0, "x"),
        "start.help": Target(2.0, "x"),
        "start.run": Target(2.0, "x"),
        "start.runs": Target(1.4, "x"),
        "start.status": Target(1.4, "x"),
        "start.backlog": Target(1.4, "x"),
        # The coding loop; a stage without snapshots and verification beside `git status` and a
        # process.
        "small.wall": Target(0.5, "s"),
        "stage.cpu": Target(2.0, "x"),
        "stage.wall": Target(2.0, "x"),
        "stage.empty": Target(2.0, "s"),
        # 100 MB of a check's output in lines of two bytes.
        "check.wall": Target(5.0, "s"),
        "check.cpu": Target(4.0, "x"),
        # The end of a child process among a thousand others, more than `wait` alone takes.
        "end.crowd": Target(2.0, "ms"),
        # The end of several runs whose agents take long to end.
        "end.together": Target(1.3, "x"),
        "guard.bash": Target(6.0, "x"),
        "guard.write": Target(6.0, "x"),
        # Long use.
        "runs.list": Target(0.3, "s"),
        "long.report.memory": Target(60.0, "MiB"),
        "long.resume.memory": Target(60.0, "MiB"),
        "watch.item.wall": Target(120.0, "ms"),
        # 1,000 items with 16 slots in virtual time.
        "slots.watch": Target(60.0, "s"),
        # 1,000 items on 100 workers, of which every fifth attempt loses its own.
        "placed.virtual": Target(60.0, "s"),
        # Slots, with agents that wait: four beside one, and what each costs.
        "slots.speed": Target(1 / 3.5, "x"),
        "slots.attempt": Target(200.0, "ms"),
        "slots.landing": Target(300.0, "ms"),
        "slots.memory": Target(5.0, "MiB"),
        # The link to a cluster on loopback.
        "cluster.batch": Target(5.0, "ms"),
        "cluster.start": Target(1.0, "s"),
        "cluster.order": Target(0.5, "s"),
        "cluster.cancel": Target(2.0, "s"),
        "memory.stream": Target(60.0, "MiB"),
        # Open pages beside the run that they show, of scripted agents that never think.
        "serve.pages": Target(0.1, "x"),
        "follow.latency": Target(30.0, "ms"),
        "serve.latency": Target(100.0, "ms"),
        # Growth.
        "fingerprint.1000": Target(1.3, "x"),
        "fingerprint.30000": Target(1.3, "x"),
        "fingerprint.100000": Target(1.3, "x"),
        "snapshot.30000": Target(1.5, "x"),
        "snapshot.changed.30000": Target(1.5, "x"),
        "protected.30000": Target(1.5, "x"),
        "loops.10": Target(1.3, "x"),
        "loops.50": Target(1.3, "x"),
        "markers.10": Target(1.5, "x"),
        "markers.100": Target(1.5, "x"),
    }
)
"""The targets by the keys of the figures; figures without one are only reported."""
