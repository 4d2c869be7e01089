"""Functions that run on workers in tests."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import reactivex
from reactivex import Observable, operators as ops

from cuggino.errors import ConfigError
from cuggino.operators.merge_now import merge_now
from cuggino.processes import process_lines

AGENT = """
import os, subprocess, sys, time
tool = subprocess.Popen(["sleep", "600"], start_new_session=True)
print(os.getpid(), tool.pid, flush=True)
time.sleep(600)
"""
"""An agent whose tool has left its process group, as those of Claude Code do."""


def count(work: str, _orders: Observable[str]) -> Observable[str]:
    """Emit the numbers up to the work's."""
    return reactivex.range(int(work)).pipe(ops.map(str))


def counted(work: str, _orders: Observable[str]) -> Observable[str]:
    """Emit numbers, and add a byte to a file for each."""
    options = json.loads(work)

    def number(each: int) -> str:
        with Path(options["file"]).open("ab") as made:
            made.write(b".")
        return str(each)

    return reactivex.range(options["count"]).pipe(ops.map(number))


def echo(_work: str, orders: Observable[str]) -> Observable[str]:
    """Emit each order, and end with the order `end`."""
    return orders.pipe(ops.take_while(lambda order: order != "end"))


def broken(work: str, _orders: Observable[str]) -> Observable[str]:
    """Emit a text and fail."""
    error = ConfigError(work, hint="mend it")
    return reactivex.concat(reactivex.just("before"), reactivex.throw(error))


def agent(work: str, orders: Observable[str]) -> Observable[str]:
    """Emit the ids of an agent's process and of its tool, then each order.

    `work` is a file to which each run adds a line, or empty.
    """
    if work:
        with Path(work).open("a") as runs:
            runs.write("begun\n")
    lines: Observable[bytes] = process_lines([sys.executable, "-c", AGENT])
    pids: Observable[str] = lines.pipe(ops.map(bytes.decode))
    return merge_now(pids, orders)


def tide(work: str, orders: Observable[str]) -> Observable[str]:
    """Emit numbers at an interval until the order `end`."""
    return reactivex.interval(float(work)).pipe(ops.map(str), ops.take_until(orders))
