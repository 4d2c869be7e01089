"""Git's messages about a remote, as errors that are waited for or not."""

from __future__ import annotations

import pytest

from cuggino import errors
from cuggino.git import Said
from cuggino.stages.slots.pushing import _error

_SSH = "fatal: Could not read from remote repository."


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (
            errors.ForgeUnreachable,
            "fatal: unable to access 'https://x/': Could not resolve host: x",
        ),
        (errors.ForgeUnreachable, "fatal: unable to access 'https://x/': returned error: 502"),
        (errors.ForgeUnreachable, f"ssh: connect to host x port 22: Connection refused\n{_SSH}"),
        (errors.ForgeUnreachable, "error: RPC failed; curl 56 GnuTLS recv error (-54)"),
        (errors.ForgeLoginMissing, "fatal: could not read Username for 'https://x': disabled"),
        (errors.ForgeLoginMissing, f"git@x: Permission denied (publickey).\n{_SSH}"),
        (errors.ForgeLoginMissing, "fatal: Authentication failed for 'https://x/o/r.git/'"),
        (
            errors.ForgeLoginMissing,
            "remote: Permission to o/r.git denied to me.\nreturned error: 403",
        ),
        (errors.ForgeLoginMissing, "ERROR: This repository was archived so it is read-only."),
        (errors.ForgeRefused, "remote: Repository not found.\nfatal: repository 'x' not found"),
        (errors.ForgeRefused, "ERROR: The project you were looking for could not be found"),
        (errors.ForgeRefused, "fatal: couldn't find remote ref refs/heads/main"),
        (errors.ForgeRefused, f"fatal: 'up' does not appear to be a git repository\n{_SSH}"),
        (errors.ProcessFailed, "error: unable to write file: No space left on device"),
    ],
)
def test_failures(kind: type[errors.CugginoError], text: str) -> None:
    """Outages and missing logins are waited for, by everything; a missing target is refused."""
    error = _error(Said(128, b"", text), "push cuggino/page to origin")
    assert kind is type(error)


def test_a_password_in_an_address_is_not_repeated() -> None:
    said = Said(128, b"", "fatal: unable to access 'https://me:hunter2@x/': Could not resolve host")
    assert "hunter2" not in str(_error(said, "fetch main from origin"))
