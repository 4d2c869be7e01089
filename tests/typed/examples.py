"""The Python examples of README, help pages and docstrings, as modules for a type checker."""

from __future__ import annotations

import ast
import builtins
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
GIVEN = Path(__file__).with_name("given.py")

PAGES = (ROOT / "README.md", *sorted((ROOT / "cuggino_cli/help").glob("*.md")))
_BLOCK = re.compile(r"^```python\n(.*?)^```", re.DOTALL | re.MULTILINE)
_DOCSTRING = re.compile(r'"""(.*?)"""', re.DOTALL)
_LITERAL = re.compile(r"(?<=\n)\n((?:    [^\n]*\n|\n)+)")
_ROW = re.compile(r"^[\w ,()]+: {2,}\S", re.MULTILINE)
_CODE = re.compile(r"[\w)\]]\(|^\w+ = ", re.MULTILINE)


_UNTYPED = """\
# mypy: disable-error-code="attr-defined, import-untyped, no-untyped-call"
# pyright: reportPrivateImportUsage=false
"""
"""For what Dask's packages do not export or annotate."""


class Example(NamedTuple):
    """An example, and the names that it expects."""

    place: str
    code: str

    @property
    def file(self) -> str:
        return re.sub(r"\W+", "_", self.place).strip("_").lower() + ".py"


def _examples() -> Iterator[Example]:
    """Yield the examples of each page in one piece, and of each docstring."""
    for page in PAGES:
        if blocks := _BLOCK.findall(page.read_text(encoding="utf-8")):
            if page.name == "clusters.md":  # scripts of their own
                for number, block in enumerate(blocks, start=1):
                    yield Example(f"{page.stem} {number}", block)
            else:
                yield Example(page.stem, "\n\n".join(blocks))
    for path in sorted((ROOT / "cuggino").rglob("*.py")):
        yield from _of_docstrings(path)


def names_given() -> list[str]:
    """Return the names that an example may use without defining them."""
    return list(_GIVEN)


def _of_docstrings(path: Path) -> Iterator[Example]:
    module = ".".join(path.relative_to(ROOT).with_suffix("").parts)
    text = path.read_text(encoding="utf-8")
    texts = map(inspect.cleandoc, _DOCSTRING.findall(text))
    if not any(any(python_in(each)) for each in texts):  # parsing all modules takes seconds
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef):
            docstring = ast.get_docstring(node) or ""
            for number, code in enumerate(python_in(docstring), start=1):
                yield Example(f"{module} {getattr(node, 'name', '')} {number}", code)


def python_in(docstring: str) -> Iterator[str]:
    """Yield the indented blocks of Python in a docstring; not marbles, TOML or grammars."""
    for block in _LITERAL.findall(f"\n{docstring}\n"):
        code = "".join(line[4:] or "\n" for line in block.splitlines(keepends=True))
        if _ROW.search(code) or not _CODE.search(code) or re.search(r"^\[\[", code, re.MULTILINE):
            continue
        try:
            ast.parse(code)
        except SyntaxError:
            continue
        yield code


def module_of(example: Example) -> str:
    """Return the example as a module that imports the names that it does not define."""
    needed = set(_undefined(ast.parse(example.code)))
    head = [ast.unparse(line) for name, line in _GIVEN.items() if name in needed]
    if "dask" in example.code:
        head.insert(0, _UNTYPED)
    return "\n".join((*head, "", example.code))


def _given() -> Iterator[tuple[str, ast.stmt]]:
    """Yield the names of `given`, each with the statement that imports it."""
    for node in ast.parse(GIVEN.read_text(encoding="utf-8")).body:
        match node:
            case ast.Import(names):
                yield from ((alias.name, ast.Import([alias])) for alias in names)
            case ast.ImportFrom(module, names, level) if module != "__future__":
                for alias in names:
                    yield alias.asname or alias.name, ast.ImportFrom(module, [alias], level)
            case ast.AnnAssign(ast.Name(name)) | ast.FunctionDef(name) | ast.ClassDef(name):
                yield name, ast.ImportFrom("given", [ast.alias(name)], 0)
            case _:
                pass


_GIVEN = dict(_given())


def _undefined(tree: ast.Module) -> Iterator[str]:
    """Yield the names that are read before the module defines them."""
    known = set(dir(builtins))
    for statement in tree.body:
        inner = {node.arg for node in ast.walk(statement) if isinstance(node, ast.arg)}
        own = {
            node.id
            for node in ast.walk(statement)
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
        }
        is_scope = isinstance(statement, ast.FunctionDef | ast.ClassDef | ast.For | ast.With)
        for node in ast.walk(statement):
            if not isinstance(node, ast.Name) or not isinstance(node.ctx, ast.Load):
                continue
            if node.id not in known | inner | (own if is_scope else set()):
                yield node.id
        known |= own
        for node in ast.walk(statement):
            if isinstance(node, ast.alias):
                known.add((node.asname or node.name).partition(".")[0])
            elif isinstance(node, ast.FunctionDef | ast.ClassDef):
                known.add(node.name)


EXAMPLES = tuple(_examples())
