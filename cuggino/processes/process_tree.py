"""The whole process tree of a child, found and terminated.

A child's tree is more than its process group: coding agents start every tool in a new session, and
processes left behind by a tool lose their parent. A member is therefore a process in the group, a
descendant of a member, or one with the cookie of the child's environment (AUT-021). It is
identified by id *and* start time, so a reused id is never signalled.

The guardian imports this module after its parent's death: import nothing here but the standard
library and psutil.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import suppress
from typing import NamedTuple

import psutil

COOKIE = "CUGGINO_CHILD"
"""The environment variable that marks the processes of a tree."""

_MARKS = frozenset({COOKIE, "CUGGINO_ROLE"})
"""Variables in the environments of what a run starts; in a namespace an agent has the second."""

SETTLE = 0.2
"""Seconds for the rest of the group after its leader has ended on SIGINT."""

KILL_LIMIT = 10.0
"""Seconds until a process that survives SIGKILL (stuck in the kernel) is given up."""

_FEW = 1000
"""Maximum number of ids checked one by one, which is faster than listing all processes."""

_LOADING = 1000
"""Maximum number of checks, a millisecond apart, of a process whose program is being loaded."""

Ladder = Sequence[tuple[signal.Signals, float]]
"""Signals to send before SIGKILL, each with the seconds to wait for its effect."""


class Birth(NamedTuple):
    """A process and the system's count of forks before it started."""

    pid: int
    forks: int

    def latest(self) -> int | None:
        """Return the highest id of all processes since, None if a later one may have a lower id.

        The kernel hands out ids in ascending order and starts over at its highest one.
        """
        try:
            latest = int(_read("/proc/loadavg").split()[-1])
            ids = int(_read("/proc/sys/kernel/pid_max"))
        except (OSError, ValueError, IndexError):
            return None
        since = fork_count() - self.forks
        # Below zero or zero: the count is not to be had, or it is not the kernel's.
        return latest if latest >= self.pid and 0 < since < ids // 2 else None


def fork_count() -> int:
    """Return the number of processes and threads started since boot; 0 where it is unknown."""
    try:
        _, found, rest = _read("/proc/stat").partition(b"\nprocesses ")
        return int(rest.split(None, 1)[0]) if found else 0
    except (OSError, ValueError, IndexError):
        return 0


def process_started(pid: int) -> float | None:
    """Return when the process was started, in seconds since 1970; None if it has ended."""
    try:
        process = psutil.Process(pid)
        return None if process.status() == psutil.STATUS_ZOMBIE else process.create_time()
    except psutil.Error:
        return None


def ancestors() -> list[int]:
    """Return the ids of the processes that have started this one."""
    return [process.pid for process in psutil.Process().parents()]


def is_started_by_run() -> bool:
    """Return whether a run, or an agent, started this process.

    Its own environment may have been cleared, but not those of its ancestors.
    """
    if not _MARKS.isdisjoint(os.environ):
        return True
    for process in psutil.Process().parents():
        with suppress(psutil.Error, OSError):
            if not _MARKS.isdisjoint(process.environ()):
                return True
    return False


class ProcessTree:
    """The processes in `groups`, their descendants, and all whose cookie starts with `cookie`.

    `groups` are ids of process groups whose leader has the same id. With the `birth` of the first
    process of the tree, only younger processes are looked at.
    """

    def __init__(
        self, groups: Iterable[int], cookie: str | None = None, *, birth: Birth | None = None
    ) -> None:
        self.groups = frozenset(groups)
        self.cookie = cookie
        self._birth = birth
        self._known: set[psutil.Process] = set()
        self._untouchable: set[psutil.Process] = set()

    def members(self) -> set[psutil.Process]:
        """Return the living members. A member that loses its parent stays one."""
        found = _candidates(self._birth)
        for pid in _search(found, self.groups, self.cookie):
            with suppress(psutil.Error):
                self._known.add(psutil.Process(pid))
        living = _living(self._known)
        living |= _living(_descendants(living, found))
        living = {process for process in living if process.pid != os.getpid()}
        self._known = set(living)
        return living - self._untouchable

    def end(self, ladder: Ladder, pause: Callable[[float], object] = time.sleep) -> None:
        """Terminate all members; return when none is left. `pause` waits for some seconds."""
        for seconds in self.ending(ladder):
            pause(seconds)

    def ending(self, ladder: Ladder) -> Iterator[float]:
        """Terminate all members step by step; yield the seconds to wait before the next step.

        So the caller can read the pipes meanwhile. None is left when this ends.
        """
        for sign, seconds in ladder:
            living = self.members()
            if not living:
                return
            self._signal(living, sign)
            if sign is signal.SIGINT:
                yield from self._await_groups(living, seconds)
            else:
                yield from _await(living, seconds)
        deadline = time.monotonic() + KILL_LIMIT
        while (living := self.members()) and time.monotonic() < deadline:
            self._signal(living, signal.SIGKILL)
            yield from _await(living, 0.1)

    def _signal(self, living: set[psutil.Process], sign: signal.Signals) -> None:
        """Signal groups as a whole, which no fork escapes, and all others one by one.

        SIGINT goes to the groups only, so that the leader can clean up its own processes.
        """
        groups = self.groups & {_group(process.pid) for process in living}
        for group in groups:
            with suppress(OSError):
                os.killpg(group, sign)
        if sign is signal.SIGINT:
            return
        for process in living:
            if _group(process.pid) in groups:
                continue
            try:
                process.send_signal(sign)
            except psutil.NoSuchProcess:
                pass
            except psutil.AccessDenied:  # it changed its user
                self._untouchable.add(process)

    def _await_groups(self, living: set[psutil.Process], seconds: float) -> Iterator[float]:
        """Wait for the groups that got SIGINT; only briefly once their leaders have ended.

        Shells start background jobs with SIGINT ignored, so waiting longer is pointless.
        """
        members = {process for process in living if _group(process.pid) in self.groups}
        leaders = {process for process in members if process.pid in self.groups}
        started = time.monotonic()
        yield from _await(leaders, seconds)
        left = seconds - (time.monotonic() - started)
        yield from _await(members, min(left, SETTLE))


def _await(processes: set[psutil.Process], seconds: float) -> Iterator[float]:
    """Wait until all of `processes` have ended, at most `seconds`; yield each pause."""
    deadline = time.monotonic() + seconds
    delay = 0.002
    while (processes := _living(processes)) and (left := deadline - time.monotonic()) > 0:
        yield min(delay, left)
        delay = min(delay * 1.5, 0.05)


def _living(processes: Iterable[psutil.Process]) -> set[psutil.Process]:
    """Return the processes that still run; zombies have ended."""
    living = set()
    for process in processes:
        with suppress(psutil.NoSuchProcess):
            ended = (psutil.STATUS_ZOMBIE, psutil.STATUS_DEAD)
            if process.is_running() and process.status() not in ended:
                living.add(process)
    return living


def _candidates(birth: Birth | None) -> Sequence[int]:
    """Return the ids of all processes since the birth; a range has ids of none among them."""
    if birth is None or (latest := birth.latest()) is None:
        return psutil.pids()
    if latest - birth.pid < _FEW:
        return range(birth.pid, latest + 1)
    found = psutil.pids()  # before it is asked whether ids have started over
    return found if birth.latest() is None else [pid for pid in found if pid >= birth.pid]


def _search(found: Iterable[int], groups: frozenset[int], cookie: str | None) -> Iterator[int]:
    """Yield those ids of living processes in one of `groups` or with the cookie."""
    own = os.getpid()
    mark = None if cookie is None else f"\0{COOKIE}={cookie}".encode()
    for pid in found:
        try:
            group = os.getpgid(pid)
        except ProcessLookupError:
            continue
        except OSError:
            group = -1
        if (
            pid != own
            and (group in groups or (mark is not None and mark in _environment(pid)))
            and _is_alive(pid)
        ):
            yield pid


def _descendants(members: set[psutil.Process], found: Sequence[int]) -> set[psutil.Process]:
    """Return all descendants of the members, which started after them."""
    descendants: set[psutil.Process] = set()
    if isinstance(found, range):
        parents = {pid: _parent(pid) for pid in found} if members else {}
        known = latest = {member.pid for member in members}
        while latest := {pid for pid, parent in parents.items() if parent in latest} - known:
            known = known | latest
            for pid in filter(_is_alive, latest):
                with suppress(psutil.Error):
                    descendants.add(psutil.Process(pid))
        return descendants
    for member in sorted(members, key=psutil.Process.create_time):  # ancestors first
        if member not in descendants:
            with suppress(psutil.Error):
                descendants.update(member.children(recursive=True))
    return descendants


def _parent(pid: int) -> int | None:
    """Return the id of the parent from /proc, None for an id of no process."""
    try:
        return int(_read(f"/proc/{pid}/stat").rpartition(b") ")[2].split(None, 2)[1])
    except (OSError, ValueError, IndexError):
        return None


def _is_alive(pid: int) -> bool:
    """Return False for a zombie, and for a thread's id if /proc shows that it is one."""
    try:
        said = _read(f"/proc/{pid}/status")
    except OSError:
        return True
    return b"\nState:\tZ" not in said and b"\nTgid:\t%d\n" % pid in said


def _group(pid: int) -> int | None:
    try:
        return os.getpgid(pid)
    except OSError:
        return None


def _proc_environment(pid: int) -> bytes:
    """Return the initial environment of `pid`, each variable after a NUL; empty if hidden."""
    for _ in range(_LOADING):
        said = _read_environment(pid)
        if said != b"\0":
            return said
        if not _is_being_loaded(pid):
            return _read_environment(pid).removesuffix(b"\0")  # it may just have been loaded
        time.sleep(0.001)  # /proc announces no end of loading
    return b""


def _is_being_loaded(pid: int) -> bool:
    """Return True while the process has a program, but no place for its environment yet."""
    try:
        os.readlink(f"/proc/{pid}/exe")  # noqa: PTH115 - no Path here
        end_of_environment = _read(f"/proc/{pid}/stat").rpartition(b") ")[2].split()[48]
    except (OSError, IndexError):  # a thread of the kernel, or it ended meanwhile
        return False
    return end_of_environment == b"0"


def _read_environment(pid: int) -> bytes:
    try:
        return b"\0" + _read(f"/proc/{pid}/environ")
    except OSError:  # hidden, or it ended meanwhile
        return b""


def _read(path: str) -> bytes:
    """Return the content of a file of /proc, in half the time that `open` takes.

    Raises:
        OSError: it cannot be read.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        content = b""
        while part := os.read(descriptor, 1 << 17):
            content += part
    finally:
        os.close(descriptor)
    return content


def _psutil_environment(pid: int) -> bytes:
    """Return the same without /proc; macOS hides it for other users and system programs."""
    try:
        value = psutil.Process(pid).environ().get(COOKIE)
    except (psutil.Error, OSError):
        return b""
    return b"" if value is None else f"\0{COOKIE}={value}".encode()


# Reading /proc directly takes a fraction of the time, which every run pays.
_environment = _proc_environment if sys.platform == "linux" else _psutil_environment
