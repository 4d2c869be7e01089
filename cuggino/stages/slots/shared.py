"""The shared repository where machines exchange work, and the fence between owners of an item.

Each item has one ref of work there. An attempt owns it from its claim on, and pushes with a lease
on its last push: a later claim of the item shuts the earlier owner out.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from pathlib import Path

from cuggino.errors import ConfigError, Fenced, ProcessError, ProcessFailed
from cuggino.git import IDENTITY, STALE, Git, commits_of_refs
from cuggino.operators import Flow
from cuggino.stages.slots.candidates import slot_record
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.keeping import UNCOMMITTED, is_uncommitted, leftovers

_REFUSED = re.compile(r"\[remote rejected\].*\((.+)\)")
_QUIET = ("--quiet", "--no-verify", "--no-recurse-submodules")


class WorkRef:
    """The ref of an item's work in a shared repository, as one attempt pushes to it."""

    def __init__(self, remote: str, ref: str, *, key: str) -> None:
        self.remote = remote
        self.ref = ref
        self._key = key
        self._pushed: str | None = None
        """The commit that this attempt pushed last; None before its claim."""
        self._saved: str | None = None
        """The work that was saved last."""

    def claim(self, git: Git, base: str) -> Flow[str | None]:
        """Take over the item and the work on it, from any earlier owner.

        Returns the commit with that work, or None if there is none: the ref then begins at `base`.

        Raises:
            Fenced: another attempt has taken it over at the same moment.
            ProcessError: git, or the shared repository, cannot be used.
        """
        there = (yield from shared_refs(git, self.remote, self.ref)).get(self.ref, "")
        if there:
            yield from git.fetch(self.remote, f"+{self.ref}:{self.ref}")
        claimed = yield from self._own(git, there or base)
        self._pushed = there
        yield from self._push(git, claimed)
        return claimed if there else None

    def save(self, slot: Slot, specs: str) -> Flow[str]:
        """Push the current work in the slot, uncommitted files included, and return its commit.

        Raises:
            Fenced: another attempt has taken the item over.
            NotKept: a commit cannot hold the work.
            ProcessError: git, or the shared repository, cannot be used.
        """
        record = yield from slot_record(slot)
        work, _ = yield from leftovers(slot, record, {}, specs)
        if work != self._saved:
            yield from self._push(slot.git, (yield from self._own(slot.git, work)))
            self._saved = work
        return work

    def offer(self, git: Git, commit: str) -> Flow[None]:
        """Push the candidate.

        Raises:
            Fenced: another attempt has taken the item over.
            ProcessError: git, or the shared repository, cannot be used.
        """
        yield from self._push(git, commit)

    def _own(self, git: Git, work: str) -> Flow[str]:
        """Return a commit with the work that no other attempt ever pushes.

        If a later owner pushed the same commit, the lease of an earlier one would still hold.
        """
        parent = f"{work}^1" if (yield from is_uncommitted(git, work)) else work
        text = f"Work of {self._key}\n\n{UNCOMMITTED}\n".encode()
        words = ("commit-tree", f"{work}^{{tree}}", "-p", parent, "-F", "-")
        made = yield from git.must(*words, env=IDENTITY, stdin=text)
        return made.text

    def _push(self, git: Git, commit: str) -> Flow[None]:
        lease = f"--force-with-lease={self.ref}:{self._pushed or ''}"
        words = ("push", *_QUIET, lease, self.remote, f"{commit}:{self.ref}")
        try:
            yield from git.must(*words)
        except ProcessFailed as error:
            if STALE.search(error.stderr_tail):
                raise Fenced("another attempt has taken the item over") from error
            if refused := _REFUSED.search(error.stderr_tail):
                raise ProcessError(
                    "git",
                    f"the shared repository refuses {self.ref}: {refused[1]}",
                    hint="workers push their work to refs/cuggino/: its server must allow that",
                ) from error
            raise
        self._pushed = commit


def push_shared(git: Git, remote: str, *specs: str) -> Flow[None]:
    """Push or delete refs in a shared repository, without a lease.

    Raises:
        ProcessError: it cannot be reached, or refuses them.
    """
    yield from git.must("push", *_QUIET, remote, *specs)


def shared_refs(git: Git, remote: str, *patterns: str) -> Flow[dict[str, str]]:
    """Return the commits of refs in a shared repository, by name.

    Raises:
        ProcessError: it cannot be reached.
    """
    return commits_of_refs((yield from git.must("ls-remote", remote, *patterns)).text)


def remote_of(git: Git, name: str) -> Flow[str]:
    """Return the URL of a remote, as other machines can use it; a URL or a path is returned as is.

    Raises:
        ConfigError: the remote does not exist.
    """
    if re.search(r"[:/\\]", name):
        return name
    with suppress(ProcessFailed):
        url = (yield from git.must("remote", "get-url", "--push", name)).text
        if Path(url).exists() or (not url.startswith("/") and ":" not in url):
            return os.fspath((git.cwd / url).resolve())
        return url
    raise ConfigError(
        f"there is no remote {name}, through which workers get the project and return their work",
        hint=f'add one: git remote add {name} URL; or name another as "remote" of "cluster"',
    )
