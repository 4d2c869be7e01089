"""Command lines that cannot be understood."""

from __future__ import annotations

import pytest

from cuggino_cli.main import main


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ("wach", "No such command 'wach'. Did you mean 'watch'?"),
        ("xyzzy", "No such command 'xyzzy'."),
        ("run", "Give either --focus (a new run) or --resume (an unfinished one)."),
        ("run --focus x --resume", "Give either --focus (a new run) or --resume"),
        ("run --resume --slow", "--review and --slow are for a new run."),
        ("run --resume --review x", "--review and --slow are for a new run."),
        ("run --focus x --max-duration soon", "'--max-duration': "),
    ],
)
def test_a_wrong_command_line(words: str, message: str, capsys: pytest.CaptureFixture[str]) -> None:
    """The exit code is 2, and the message says what to write instead."""
    assert 2 == main(words.split())
    told = capsys.readouterr()
    assert message in told.err
    assert ("Did you mean" in told.err) == ("Did you mean" in message)
    assert "" == told.out
