"""The console scripts: `cuggino`, and the names of the tools whose projects it takes on."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cuggino_cli import main


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("run --max-iterations 3", "deliver --max-iterations 3"),
        ("sync -p shop", "deliver sync -p shop"),
        ("run", "deliver"),
        ("--version", "--version"),
        ("", ""),
        ("doctor run", "doctor run"),
    ],
)
def test_autonoe(words: str, expected: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """`autonoe run` is `cuggino deliver`, `autonoe sync` is `cuggino deliver sync`."""
    asked: list[list[str]] = []
    monkeypatch.setattr(sys, "argv", ["autonoe", *words.split()])

    def run(args: list[str]) -> int:
        asked.append(args)
        return 7

    monkeypatch.setattr(main, "main", run)
    with pytest.raises(SystemExit) as ended:
        main.autonoe()
    assert ([expected.split()], 7) == (asked, ended.value.code)


@pytest.mark.parametrize("words", ["run", "sync"])
def test_autonoe_in_a_folder_without_a_specification(
    words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The command is really `deliver`: it asks for SPEC.md, not for a focus."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(sys, "argv", ["autonoe", words])
    with pytest.raises(SystemExit) as ended:
        main.autonoe()
    assert 2 == ended.value.code
    assert "SPEC.md" in capsys.readouterr().err


def test_scripts_are_declared() -> None:
    """The package installs all three."""
    text = (Path(__file__).parents[2] / "pyproject.toml").read_text(encoding="utf-8")
    for line in ("cuggino = ", "lopen = "):
        assert f'{line}"cuggino_cli.main:entry"' in text
    assert 'autonoe = "cuggino_cli.main:autonoe"' in text
