"""Tests for `Enclosure`."""

from __future__ import annotations

from cuggino.sandbox import Enclosure


def test_reports_are_asked_for_before_the_command() -> None:
    """The option for reports precedes the `--` that ends the options."""
    enclosure = Enclosure(words=("bwrap", "--unshare-pid", "--"), reports=True)
    assert ("bwrap", "--unshare-pid", "--", "ls", "--", "x") == enclosure.command(["ls", "--", "x"])
    assert ("bwrap", "--unshare-pid", "--json-status-fd", "7", "--", "ls") == enclosure.command(
        ["ls"], status_fd=7
    )
