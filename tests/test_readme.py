"""README, changelog and help pages: commands, names, links and snippets are valid."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path

import pytest

from cuggino.config import Config, parse_config
from cuggino.errors import CugginoError
from cuggino_cli.commands import COMMANDS
from cuggino_cli.help import TOPICS
from tests.command_lines import parse_line
from tests.documents.exit_codes import exit_codes
from tests.documents.models import default_text
from tests.vectors import each

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")
PAGES = {
    path.relative_to(ROOT).as_posix(): path.read_text(encoding="utf-8")
    for path in (
        ROOT / "README.md",
        ROOT / "CHANGELOG.md",
        *sorted((ROOT / "cuggino_cli/help").glob("*.md")),
    )
}


def blocks(language: str) -> list[tuple[str, str]]:
    """Return the code blocks of a language, each with its page."""
    pattern = rf"^```{language}\n(.*?)^```"
    return [
        (page, block)
        for page, text in PAGES.items()
        for block in re.findall(pattern, text, re.DOTALL | re.MULTILINE)
    ]


def command_lines() -> list[tuple[str, str]]:
    """Return the lines of shell blocks that start cuggino."""
    return [
        (page, line)
        for page, block in blocks("sh")
        for line in block.splitlines()
        if re.match(r"(cuggino|lopen) ", line)
    ]


def test_keys() -> None:
    """The keys in the README's table exist and have these defaults."""
    section = README.split("## Configure")[1].split("\n## ")[0]
    rows = re.findall(r"^\| (`\w+`(?:, `\w+`)*) \| (.+?) \|", section, re.MULTILINE)
    fields = {field.alias or name: field for name, field in Config.model_fields.items()}
    shown = {key: default.strip("`") for keys, default in rows for key in re.findall(r"\w+", keys)}
    expected = {key: default_text(fields[key]).strip('"') or "none" for key in shown}
    assert len(shown) > 5
    assert expected == shown


def test_every_command_is_listed() -> None:
    """The table of commands has each subcommand."""
    rows = re.findall(r"^\| (`cuggino \w+`.*?) \|", README, re.MULTILINE)
    listed = {name for row in rows for name in re.findall(r"`(?:cuggino )?(\w+)`", row)}
    assert set(COMMANDS) <= listed


def test_exit_codes() -> None:
    """The sentence about exit codes names existing codes."""
    (sentence,) = re.findall(r"\[exit code\]\(.*?\) (is .*?)\.\n", README, re.DOTALL)
    named = {int(code) for code in re.findall(r"\b(\d+)\s+for", sentence)}
    assert {0, 1, 2, 10, 11, 12, 13, 14} == named
    assert named <= {code for code, _ in exit_codes()}


def test_every_error_has_a_documented_exit_code() -> None:
    """The page about exit codes has the code of each error class."""

    def classes(cls: type[CugginoError]) -> Iterator[type[CugginoError]]:
        yield cls
        for below in cls.__subclasses__():
            yield from classes(below)

    own = {cls.exit_code for cls in classes(CugginoError) if cls.__module__.startswith("cuggino")}
    assert {1, 2, 12, 13, 14} <= own <= {code for code, _ in exit_codes()}


def test_readme_is_short() -> None:
    """The README stays short: details belong in the help pages."""
    assert len(README.split()) <= 1500


def test_the_first_page_is_short() -> None:
    """The page from zero to a night has at most 600 words."""
    assert len(PAGES["cuggino_cli/help/start.md"].split()) <= 600


@pytest.mark.parametrize("topic", TOPICS)
def test_every_page_is_linked(topic: str) -> None:
    """The README links each help page."""
    assert f"(cuggino_cli/help/{topic}.md)" in README


@pytest.mark.parametrize(("page", "block"), blocks("python"))
def test_python_blocks_compile(page: str, block: str) -> None:
    """Python blocks are valid syntax."""
    assert "<module>" == compile(block, page, "exec").co_name


@pytest.mark.parametrize(("page", "block"), blocks("json"))
def test_json_blocks_are_configurations_or_events(page: str, block: str) -> None:
    """JSON blocks are events or valid configurations."""
    value = json.loads(block)
    assert "_tag" in value or isinstance(parse_config(value), Config)


@each("page, line", command_lines())
def test_command_lines(page: str, line: str) -> None:
    """Each command line names an existing command with options it takes."""
    assert parse_line(line)


def test_public_names() -> None:
    """Each `cuggino.name` in README and help pages is a public name or a package."""
    import cuggino

    texts = [text for page, text in PAGES.items() if page != "CHANGELOG.md"]
    names = set(re.findall(r"(?<![./])\bcuggino\.([a-zA-Z_]+)\b", "\n".join(texts)))
    names -= {"json"}  # .cuggino.json
    assert names
    packages = {name for name in names if find_spec(f"cuggino.{name}") is not None}
    assert set() == names - packages - set(cuggino.__all__)


@pytest.mark.parametrize("page", PAGES)
def test_links(page: str) -> None:
    """Each link to a file or heading of this repository has a target."""
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
    """Return the anchors that a forge generates from the headings."""
    without_code = re.sub(r"^```.*?^```", "", text, flags=re.DOTALL | re.MULTILINE)
    titles = re.findall(r"^#+ (.+)$", without_code, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_ci_runs_these_commands() -> None:
    """The commands that CI runs are marked and are one line each."""
    for name in ("demo", "test", "real"):
        block = re.search(rf"<!-- command: {name} -->\n```sh\n(.*?)```", README, re.DOTALL)
        assert block is not None
        assert 1 == block[1].count("\n")
