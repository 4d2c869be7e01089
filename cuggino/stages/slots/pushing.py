"""Branches in a remote: the target of pull requests, and the branches that they propose."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from cuggino.domain import touches_ci
from cuggino.errors import (
    ConfigError,
    ForgeLoginMissing,
    ForgeRefused,
    ForgeUnreachable,
    ProcessError,
    SpawnFailed,
)
from cuggino.events import WatchCandidate
from cuggino.git import (
    SSH_COMMAND,
    STALE,
    Said,
    commits_of_refs,
    failed,
    gist,
    push_gist,
    ssh_environment,
)
from cuggino.operators import Flow, pause
from cuggino.stages.slots.checking import Gate, Red, check_candidate, landing_message
from cuggino.stages.slots.gate_tree import NotMerged
from cuggino.stages.slots.position import commit_named, contains, move_refs
from cuggino.stages.slots.refs import TARGET, candidate_ref

_REJECTED = re.compile(r"\[(?:remote )?rejected\].*?\((.+)\)")
_REMOTE_SAYS = re.compile(r"^remote: (?:error: )?(\S.*)$", re.MULTILINE)
_LOGIN = re.compile(
    r"could not read (Username|Password)|Authentication failed|Permission denied \("
    r"|returned error: 401|Host key verification failed|terminal prompts disabled|Invalid username"
)
_DENIED = re.compile(
    r"returned error: 403|[Pp]ermission to .* denied|[Ww]rite access .* not granted|access denied"
    r"|is read-only|archived|not allowed to push"
)
"""The login may not push: every item would fail, until a person acts."""
_NEVER = re.compile(
    r"not found|couldn't find remote ref|does not exist|could not be found|returned error: 404"
    r"|not appear to be a git repository|protocol .* not supported|Unable to find remote helper"
)
_NETWORK = re.compile(
    r"[Cc]ould not resolve|Connection (refused|timed out|reset|closed)|[Ff]ailed to connect"
    r"|[Uu]nable to connect|Network is unreachable|No route to host|timed out|early EOF|hung up"
    r"|RPC failed|returned error: (5\d\d|429)|kex_exchange|Could not read from remote|SSL|TLS"
    r"|gnutls|unexpected disconnect|Couldn't connect|[Cc]ould not connect|unable to access"
)
_MOVED = re.compile("cannot lock ref .* but expected ")
_TRIES = 10
_SECONDS = 300.0
"""Seconds after which a command to the remote is terminated and retried."""


class Tested(NamedTuple):
    """Merged work that has passed the gate."""

    commit: str
    is_nothing: bool
    """True if the target already has all of it."""
    ci: tuple[str, ...] = ()
    """The files among the changes that define CI or git hooks."""


class RemoteBranches:
    """The target of pull requests in a remote, and the branches that are proposed for it.

    The user's branches and files are never touched. `refs/cuggino/target` is the target as it was
    fetched last. No hooks run at a push: the pushed work has passed the gate. Each step can be
    repeated after a kill.

    Errors of steps that access the remote: `ForgeUnreachable` and `ForgeLoginMissing`, after which
    the step can be repeated; `ForgeRefused`, after which it cannot.
    """

    def __init__(self, gate: Gate, *, remote: str = "origin") -> None:
        self._gate = gate
        self.remote = remote

    def make(self) -> Flow[None]:
        """Create the gate tree, or heal it.

        Raises:
            ConfigError: the repository or the remote does not exist.
        """
        place, gate = yield from self._gate.located()
        if (yield from place.git.run("remote", "get-url", self.remote)).code:
            raise ConfigError(
                f"there is no git remote {self.remote}, which pull requests require",
                hint=f"add one: git remote add {self.remote} URL; "
                'or name another as "remote" of "pullRequests"',
            )
        yield from gate.make()

    def known(self) -> Flow[str]:
        """Return the target as it was fetched last, "" before that."""
        place, _ = yield from self._gate.located()
        return (yield from commit_named(TARGET, place.git))

    def fetch(self, branch: str) -> Flow[str]:
        """Fetch the target, and return its commit."""
        return (yield from self._fetched(branch, TARGET))

    def fetch_candidate(self, branch: str, item: str) -> Flow[str]:
        """Fetch the branch of an item in place of its candidate, and return its commit."""
        return (yield from self._fetched(branch, candidate_ref(item)))

    def _fetched(self, branch: str, ref: str) -> Flow[str]:
        place, _ = yield from self._gate.located()
        words = ("--quiet", "--no-tags", "--no-write-fetch-head", "--no-recurse-submodules")
        spec = f"+refs/heads/{branch}:{ref}"
        for _ in range(_TRIES):
            said = yield from self._ask("fetch", *words, "--refmap=", self.remote, spec)
            if not (said.code and _MOVED.search(said.words)):
                break
            yield from pause(0.1)  # another fetch of this watch has just moved the ref
        if said.code:
            raise _error(said, f"fetch {branch} from {self.remote}")
        return (yield from place.git.must("rev-parse", "--verify", ref)).text

    def heads(self, branches: Sequence[str]) -> Flow[dict[str, str]]:
        """Return the commits of these branches, as far as the remote has them."""
        refs = [f"refs/heads/{branch}" for branch in branches]
        said = yield from self._ask("ls-remote", self.remote, *refs)
        if said.code:
            raise _error(said, f"list the branches of {self.remote}")
        found = commits_of_refs(said.text)
        return {ref.removeprefix("refs/heads/"): found[ref] for ref in refs if ref in found}

    def merged(
        self, candidate: WatchCandidate, target: str, *, title: str, theirs: str = ""
    ) -> Flow[Tested | Red]:
        """Merge the candidate with the target, and with `theirs`, and check it; emits the commands.

        `theirs` is a branch of the remote to which others have pushed.

        Raises:
            ForgeRefused: the work conflicts with commits that others have pushed.
            ProcessError: git fails for a reason unrelated to the candidate.
        """
        place, gate = yield from self._gate.located()
        yield from check_candidate(candidate, place)
        message = landing_message(candidate.filename, title)
        before = yield from gate.take(target)
        merged = yield from gate.merge(candidate.commit, message, only=True)
        if isinstance(merged, NotMerged):
            return Red.of(merged)
        if theirs:
            found = yield from self.fetch_theirs(theirs)
            joined = yield from gate.merge(found, f"Merge branch '{theirs}'", only=True)
            if isinstance(joined, NotMerged):
                raise ForgeRefused(
                    f"someone else pushed to {theirs}, which conflicts with the work on the "
                    f"item: {', '.join(joined.paths) or gist(joined.output)}"
                )
            merged = joined
        if merged.tree == before.tree:
            return Tested(target, is_nothing=True)
        red = yield from self._gate.test(merged, candidate.attempt)
        if red is not None:
            return red
        yield from gate.hand_over()
        words = ("diff", "--name-only", "--no-renames", "-z", target, merged.commit)
        changed = (yield from place.git.must(*words)).fields
        return Tested(merged.commit, is_nothing=False, ci=touches_ci(changed))

    def fetch_theirs(self, branch: str) -> Flow[str]:
        """Fetch a branch to which others have pushed, and return its commit."""
        return (yield from self._fetched(branch, f"{TARGET}-theirs"))

    def push(self, branch: str, commit: str, *, expected: str) -> Flow[bool]:
        """Push a commit to a branch; return False if the branch is not at `expected` ("": new).

        Raises:
            ForgeRefused: the remote rejects it, by a rule for the branch or a server-side hook.
        """
        ref = f"refs/heads/{branch}"
        lease = f"--force-with-lease={ref}:{expected}"
        words = ("push", "--porcelain", "--no-verify", "--no-recurse-submodules", lease)
        said = yield from self._ask(*words, self.remote, f"{commit}:{ref}")
        if said.code == 0:
            return True
        text = said.words
        if rejected := _REJECTED.search(text):
            if STALE.search(rejected[1]):
                return False
            says = [found for found in _REMOTE_SAYS.findall(text) if found.strip()]
            more = f": {' '.join(says)[:500]}" if says else ""
            raise ForgeRefused(f"{self.remote} does not accept {branch}: {rejected[1]}{more}")
        if STALE.search(text):
            return False
        raise _error(said, f"push {branch} to {self.remote}")

    def only_merges(self, since: str, head: str, target: str) -> Flow[bool]:
        """Return whether the head adds only commits of the target and merges to `since`.

        That is what a forge's "Update branch" does. The commits must have been fetched.
        """
        place, _ = yield from self._gate.located()
        if not (yield from commit_named(since, place.git)):
            return False
        if not (yield from contains(head, since, place.git)):
            return False
        words = ("rev-list", "--no-merges", "--count", head, f"^{since}", f"^{target}")
        return (yield from place.git.must(*words)).text == "0"

    def base_of(self, commit: str) -> Flow[str]:
        """Return the merge base of the commit and the target; without one, the commit."""
        place, _ = yield from self._gate.located()
        said = yield from place.git.run("merge-base", commit, TARGET)
        return commit if said.code else said.text

    def forget(self, item: str) -> Flow[None]:
        """Remove the candidate of an item, which is part of the target."""
        place, _ = yield from self._gate.located()
        yield from move_refs(f"delete {candidate_ref(item)}", git=place.git)

    def _ask(self, *words: str) -> Flow[Said]:
        """Run a command that accesses the remote."""
        place, _ = yield from self._gate.located()
        env = ssh_environment((yield from place.git.run(*SSH_COMMAND)))
        try:
            return (yield from place.git.run(*words, env=env))
        except SpawnFailed:
            raise
        except ProcessError as error:  # it took too long
            raise ForgeUnreachable(error.message) from error


def _error(said: Said, doing: str) -> Exception:
    """Return the error of a failed command, classified by the output of git."""
    text = said.words
    words = f"cannot {doing}: {push_gist(text)}"
    if _LOGIN.search(text):
        return ForgeLoginMissing(words, hint="let git log in without asking")
    if _DENIED.search(text):
        return ForgeLoginMissing(words, hint="let this login push, or push with another")
    if _NEVER.search(text):
        return ForgeRefused(words)
    if _NETWORK.search(text):
        return ForgeUnreachable(words)
    return failed((doing,), said.code, said.words)
