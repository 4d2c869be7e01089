"""What the README and the documents beside it say is true."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from cuggino.config import Config, parse_config
from cuggino_cli.main import COMMANDS
from cuggino_cli.topics import EXIT_CODES, default_text
from tests.command_lines import parse_line

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (ROOT / "README.md", ROOT / "CHANGELOG.md", *sorted((ROOT / "docs").glob("*.md")))
}


def blocks(language: str) -> list[tuple[str, str]]:
    """The blocks of a language, each with the page that it is on."""
    pattern = rf"^```{language}\n(.*?)^```"
    return [
        (page, block)
        for page, text in PAGES.items()
        for block in re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    ]


def command_lines() -> list[tuple[str, str]]:
    """The lines of shell blocks that start cuggino."""
    return [
        (page, line)
        for page, block in blocks("sh")
        for line in block.splitlines()
        if re.match(r"(cuggino|lopen) ", line)
    ]


def test_the_keys_of_the_short_table_are_the_models() -> None:
    """Each key is one of `.cuggino.json`, with its true default."""
    section = README.split("### Configuration")[1].split("###")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \|", section, re.MULTILINE)
    fields = {field.alias or name: field for name, field in Config.model_fields.items()}
    shown = {key: told.strip("`") for keys, told in rows for key in re.findall(r"\w+", keys)}
    expected = {key: default_text(fields[key]).strip('"') or "none" for key in shown}
    assert len(shown) > 5
    assert expected == shown


def test_every_command_is_described() -> None:
    """The table of commands names each subcommand."""
    assert set(COMMANDS) <= set(re.findall(r"^\| `cuggino (\w+)", README, re.MULTILINE))


def test_exit_codes() -> None:
    """The table has the exit codes, each with the words of `cuggino help exit-codes`."""
    section = README.split("### Exit codes")[1].split("###")[0]
    rows = re.findall(r"^\| (\d+) \| (.+?) \|$", section, re.MULTILINE)
    one_each = [(code, about) for code, about in EXIT_CODES if code < 128]
    assert one_each == [(int(code), about) for code, about in rows]
    assert "| 130, 143 | " in section


@pytest.mark.parametrize(("page", "block"), blocks("python"))
def test_python_blocks_compile(page: str, block: str) -> None:
    """Python is Python."""
    assert "<module>" == compile(block, page, "exec").co_name


@pytest.mark.parametrize(("page", "block"), blocks("json"))
def test_json_blocks_are_configurations_or_events(page: str, block: str) -> None:
    """JSON is JSON, and what is no event could be in `.cuggino.json`."""
    value = json.loads(block)
    assert "_tag" in value or isinstance(parse_config(value), Config)


@pytest.mark.parametrize(("page", "line"), command_lines())
def test_command_lines_are_understood(page: str, line: str) -> None:
    """Each command line has a command that exists, and options that it takes."""
    assert parse_line(line)


def test_public_names_exist() -> None:
    """Each `cuggino.name` can be imported."""
    import cuggino

    names = set(re.findall(r"(?<![./])\bcuggino\.([a-zA-Z_]+)\b", "\n".join(PAGES.values())))
    names -= {"json"}  # .cuggino.json
    assert names
    for name in names:
        assert getattr(cuggino, name, None) is not None or name in ("testing", "agents")


@pytest.mark.parametrize("page", PAGES)
def test_links_lead_somewhere(page: str) -> None:
    """Each link to a file or a heading of this repository has one at its other end."""
    for target in re.findall(r"\]\(([^)\s]+)\)", PAGES[page]):
        if target.startswith("https://"):
            continue
        file, _, heading = target.partition("#")
        path = (ROOT / page).parent / file if file else ROOT / page
        assert path.resolve().is_relative_to(ROOT)
        assert path.exists(), target
        if heading:
            assert heading in _headings(path.read_text(encoding="utf-8")), target


def _headings(text: str) -> set[str]:
    """The anchors that a forge makes of the headings."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_ci_runs_these_commands() -> None:
    """The two commands that CI runs are marked and are one line each."""
    for name in ("demo", "test"):
        block = re.search(rf"<!-- command: {name} -->\n```sh\n(.*?)```", README, re.DOTALL)
        assert block is not None
        assert 1 == block[1].count("\n")
