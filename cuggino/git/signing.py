"""Signatures of commits that are made in a view, where the user's keys are out of reach."""

from __future__ import annotations

from collections.abc import Callable

from cuggino.git.program import Git
from cuggino.operators import Flow
from cuggino.processes import Said

SIGNS = ("config", "--type=bool", "--get", "commit.gpgSign")
"""Asks whether commits have to be signed."""


def make_commit(git: Git, run: Callable[[tuple[str, ...]], Flow[Said]]) -> Flow[Said]:
    """Make a commit in the view of git, and sign it outside of it if commits have to be signed.

    `run` runs the command that commits, with the given options added.

    Raises:
        ProcessError: it cannot be signed, or `run` raises it.
    """
    signs = git.is_enclosed and (yield from git.run(*SIGNS)).text == "true"
    if not signs:
        return (yield from run(()))
    head = yield from git.run("rev-parse", "--verify", "--quiet", "HEAD")
    said = yield from run(("--no-gpg-sign",))
    if said.code == 0:
        yield from _sign_head(git, None if head.code else head.text)
    return said


def _sign_head(git: Git, before: str | None) -> Flow[None]:
    """Replace the current commit, whose hooks have run, with a signed one.

    It is undone first, so that no unsigned commit remains if signing fails: HEAD is at `before`
    then.
    """
    made = (yield from git.must("rev-parse", "HEAD")).text
    if made == before:
        return
    text = (yield from git.must("log", "-1", "--format=%B", made)).text
    listed = (yield from git.must("rev-list", "--parents", "-n", "1", made)).text
    back = ("HEAD", before, made) if before else ("-d", "HEAD", made)
    yield from git.must("update-ref", *back)
    words = [word for parent in listed.split()[1:] for word in ("-p", parent)]
    commit = ("commit-tree", "-S", f"{made}^{{tree}}", *words, "-F", "-")
    stdin = text.rstrip("\n").encode("utf-8", "replace") + b"\n"
    signed = (yield from git.must(*commit, stdin=stdin)).text
    why = ("-m", f"commit: {text.partition(chr(10))[0]}")
    yield from git.must("update-ref", *why, "HEAD", signed, before or "0" * len(signed))
