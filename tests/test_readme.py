"""What the README says is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from pydantic_core import PydanticUndefined

from cuggino.config import Config
from cuggino_cli.main import COMMANDS

README = (Path(__file__).parents[1] / "README.md").read_text(encoding="utf-8")


def test_the_configuration_table_is_the_model() -> None:
    """Every key is in the table, in the model's order or not, with its true default."""
    section = README.split("### Configuration")[1].split("###")[0]
    rows = dict(re.findall(r"^\| `(\w+)` \| (.+?) \|", section, re.MULTILINE))
    expected = {}
    for name, field in Config.model_fields.items():
        assert field.default is not PydanticUndefined
        default = field.default
        shown = f"{default:g}" if isinstance(default, float) else default
        shown = json.dumps(shown) if isinstance(shown, bool) else shown
        expected[field.alias or name] = "none" if default is None else f"`{shown}`"
    assert expected == rows


def test_every_command_is_described() -> None:
    """The table of commands names each subcommand."""
    assert set(COMMANDS) <= set(re.findall(r"^\| `cuggino (\w+)", README, re.MULTILINE))


@pytest.mark.parametrize("block", re.findall(r"```python\n(.*?)```", README, re.DOTALL))
def test_python_blocks_compile(block: str) -> None:
    """The README's Python is Python."""
    assert "<module>" == compile(block, "README.md", "exec").co_name


def test_public_names_in_the_readme_exist() -> None:
    """Each `cuggino.name` of the README can be imported."""
    import cuggino

    names = set(re.findall(r"\bcuggino\.([a-zA-Z_]+)\b", README))
    names -= {"json"}  # .cuggino.json
    assert names
    for name in names:
        assert getattr(cuggino, name, None) is not None or name == "testing"


def test_ci_runs_these_commands() -> None:
    """The two commands that CI runs are marked and are one line each."""
    for name in ("demo", "test"):
        block = re.search(rf"<!-- command: {name} -->\n```sh\n(.*?)```", README, re.DOTALL)
        assert block is not None
        assert 1 == block[1].count("\n")
