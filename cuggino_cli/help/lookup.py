"""Words that a person looks up: keys, options, events, operators, codes and public names.

The help pages are the index: a heading, or the first cell of a table's row. Options are those of
the commands, and public names those of the library's rooms.
"""

from __future__ import annotations

import ast
import functools
import importlib
import inspect
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.resources import files
from typing import Any

import click
from pydantic import BaseModel

from cuggino_cli.help import TOPICS, page
from cuggino_cli.help.rendering import headings, section
from cuggino_cli.help.schemas import field_docs, one_line

_HEAD = re.compile(r"\|[\s:|-]+\|")
_ID = re.compile(r" ?\((?:[A-Z]{3}-\d{3}(?:, | to )?)+\)")
_ABOUT_NAMES = frozenset(["library", "operators", "testing"])
"""Pages about names of the library."""
_PRIVATE = re.compile(r"\b_[A-Z]")
"""A type in the signature of a class that other functions make."""
_EXACT = ("config", "exit-codes", "events", "markers", "operators")
"""Pages that define words; others use them."""
_LAST = "effect"
"""The page whose words are those of another library."""
_SUMMARY = "The ten keys that matter first"
"""A table whose rows are there again, with more of them."""
_MOST = 3
"""Names in a row that is about them; a row with more only lists them."""
_WIDEST = 88
"""Characters of a signature on one line."""


def explanations(
    word: str, commands: Mapping[str, click.Command], topics: Iterable[str] = TOPICS
) -> list[str]:
    """Return what these pages, the options of the commands and the library have on a word.

    Each is Markdown. Case, dashes and underscores do not matter: `--max-tokens` finds `maxTokens`.
    Names of the library are left out if the pages are about other things.
    """
    wanted = _plain(word)
    order = sorted(topics, key=lambda topic: topic not in _EXACT)
    found = [text for topic in order if topic != _LAST for text in _on_page(topic, wanted)]
    found += _options(wanted, commands)
    if not _ABOUT_NAMES.isdisjoint(order):
        pages = {heading for topic in _EXACT for heading in headings(page(topic))}
        for name, room in public_names().items():
            if _plain(name) == wanted and name not in pages:
                found.append(_documentation(name, room))
    return found or (list(_on_page(_LAST, wanted)) if _LAST in order else [])


def _on_page(topic: str, wanted: str) -> Iterator[str]:
    """Yield the section of a page and the rows of its tables that have the word."""
    for heading in headings(page(topic)):
        if _plain(heading) == wanted and (text := section(page(topic), heading)):
            title, _, rest = text.partition("\n")
            yield f"{title} (`cuggino help {topic}`)\n{rest}"
    for title, (names, rows) in _rows(topic).get(wanted, {}).items():
        yield f"### {names}, in {title} (`cuggino help {topic}`)\n\n{rows}"


def words(commands: Mapping[str, click.Command]) -> list[str]:
    """Return all words that have an explanation, as they are written."""
    found = [name for topic in TOPICS for name in _names(topic)]
    return list(dict.fromkeys([*found, *_by_option(commands), *public_names()]))


@functools.cache
def public_names() -> Mapping[str, str]:
    """Return the public names of the library, each with the module that it is imported from."""
    found: dict[str, str] = {}
    top = files("cuggino")
    rooms = sorted(place.name for place in top.iterdir() if place.joinpath("__init__.py").is_file())
    for room in ("", *rooms):
        text = top.joinpath(room, "__init__.py").read_text(encoding="utf-8")
        module = f"cuggino.{room}".rstrip(".")
        for node in ast.parse(text).body:
            if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__":
                found = dict.fromkeys(ast.literal_eval(node.value), module) | found
    return found


def _plain(word: str) -> str:
    return re.sub(r"[-_`<>]|^cuggino\.|\(\)$", "", word.strip()).lower()


@functools.cache
def _rows(topic: str) -> Mapping[str, Mapping[str, tuple[str, str]]]:
    """Return the rows of the tables on a page: by each name in its first cell, by section.

    They come with the name as it is written there.
    """
    found: dict[str, dict[str, tuple[str, str]]] = {}
    title, head = "", ""
    lines = page(topic).splitlines()
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        if line.startswith("#"):
            title = line.lstrip("# ").replace("`", "")
        elif _HEAD.fullmatch(following) and line.startswith("|"):
            head = f"{line}\n{following}\n"
        elif line.startswith("|") and not _HEAD.fullmatch(line) and title != _SUMMARY:
            names = _cell_names(line)
            for name in names if len(names) <= _MOST or topic == _LAST else ():
                rows = found.setdefault(_plain(name), {})
                rows[title] = name, rows.get(title, ("", head))[1] + f"{line}\n"
    return found


def _names(topic: str) -> Iterator[str]:
    yield from headings(page(topic))
    for line in page(topic).splitlines():
        if line.startswith("|"):
            yield from _cell_names(line)


def _cell_names(row: str) -> list[str]:
    """Return the names in the first cell of a row: its code, or the whole if it is a number."""
    cell = re.split(r"(?<!\\)\|", row.strip("|"), maxsplit=1)[0].strip()
    return re.findall(r"`<?([\w.-]+)>?`", cell) or ([cell] if cell.isdecimal() else [])


def _by_option(commands: Mapping[str, click.Command]) -> dict[str, dict[str, str]]:
    """Return the options of all commands: the help of each, with the commands that take it."""
    found: dict[str, dict[str, str]] = {}
    for name, command in commands.items():
        for parameter in command.params:
            if isinstance(parameter, click.Option) and not parameter.hidden:
                for option in parameter.opts:
                    if option.startswith("--"):
                        found.setdefault(option, {})[name] = parameter.help or ""
    return found


def _options(wanted: str, commands: Mapping[str, click.Command]) -> Iterator[str]:
    for option, helps in _by_option(commands).items():
        if _plain(option) == wanted:
            for text in dict.fromkeys(helps.values()):
                takers = ", ".join(f"`cuggino {name}`" for name in helps if helps[name] == text)
                yield f"### `{option}` of {takers}\n\n{text}\n"


def _documentation(name: str, room: str) -> str:
    """Return the signature and the documentation of a public name of the library."""
    value: Any = getattr(importlib.import_module(room), name)
    is_class = inspect.isclass(value)
    is_model = is_class and issubclass(value, BaseModel)
    parts = [f"### `{name}` of `{room}`"]
    if callable(value) and not is_model and not _PRIVATE.search(call := _signature(name, value)):
        parts.append(f"```python\n{call}\n```")
    if text := _ID.sub("", inspect.getdoc(value) or ""):
        parts.append(f"```text\n{text}\n```")
    if is_class:
        docs = field_docs(value)
        names = value.model_fields if is_model else docs
        parts.append("\n".join(f"- `{each}`: {one_line(docs.get(each, ''))}" for each in names))
        methods = [
            f"- `{_signature(each, method, is_method=True)}`: {_summary(method)}"
            for each, method in inspect.getmembers(value, callable)
            if not each.startswith("_") and _is_own(method)
        ]
        parts.append("\n".join(methods))
    return "\n\n".join(filter(None, parts)) + "\n"


def _is_own(method: object) -> bool:
    """Return whether a method is one of cuggino's, not inherited from a library."""
    return str(getattr(method, "__module__", "")).startswith("cuggino")


def _summary(value: object) -> str:
    return (inspect.getdoc(value) or "").partition("\n\n")[0].replace("\n", " ")


def _signature(name: str, value: Callable[..., Any], *, is_method: bool = False) -> str:
    """Return the signature as it is written; defaults that are objects are `...`."""
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return name
    empty = inspect.Parameter.empty
    shown = [
        parameter.replace(
            annotation=_Text(parameter.annotation) if parameter.annotation is not empty else empty,
            default=parameter.default
            if isinstance(parameter.default, str | bool | int | float | None)
            or parameter.default is empty
            else _Text("..."),
        )
        for parameter in signature.parameters.values()
        if not (is_method and parameter.name in ("self", "cls"))
    ]
    returned = signature.return_annotation
    end = "" if returned in (empty, None, "None") else f" -> {_Text(returned)!r}"
    line = f"{name}{inspect.Signature(shown)}{end}"
    if len(line) <= _WIDEST or is_method:
        return line
    inner = "".join(f"    {each},\n" for each in _each(shown))
    return f"{name}(\n{inner}){end}"


def _each(parameters: list[inspect.Parameter]) -> Iterator[str]:
    """Yield the parameters as they are written, with the `*` before the keyword-only ones."""
    has_star = False
    for parameter in parameters:
        if parameter.kind is parameter.VAR_POSITIONAL:
            has_star = True
        elif parameter.kind is parameter.KEYWORD_ONLY and not has_star:
            has_star = True
            yield "*"
        yield str(parameter)


class _Text:
    """Shows an annotation or a default without quotes."""

    def __init__(self, shown: object) -> None:
        self._shown = shown if isinstance(shown, str) else getattr(shown, "__name__", repr(shown))

    def __repr__(self) -> str:
        return self._shown
