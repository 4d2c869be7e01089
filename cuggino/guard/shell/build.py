"""Conversion of shfmt's syntax tree to the tree that is judged."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any, Literal

from cuggino.guard.shell import words
from cuggino.guard.shell.expressions import (
    SUBSCRIPT,
    hides_code,
    known_text,
    may_become_code,
    runs_subscript,
)
from cuggino.guard.shell.quotes import Pieces, body_pieces, pieces_of, plain
from cuggino.guard.shell.tree import (
    Assignment,
    Binary,
    Case,
    Command,
    Function,
    Group,
    If,
    Loop,
    Node,
    Redirect,
    Refused,
    Script,
    Statement,
    Timed,
    Word,
)

Tree = dict[str, Any]
_OPERATORS: dict[str, Literal["&&", "||", "|", "|&"]] = {
    "&&": "&&",
    "||": "||",
    "|": "|",
    "|&": "|&",
}
_PLAIN = re.compile(r"[\w./:@%+,-]+", re.ASCII)
_ASSIGNMENT = r"(?s)([A-Za-z_][A-Za-z0-9_]*)(\[.*\])?(\+?)=(.*)"


class Builder:
    """A builder of the tree of one text that has passed the refusals."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self.code: list[str] = []
        """Words that would run code if they became part of an expression."""

    def script(self, statements: list[Tree] | None) -> Script:
        return tuple(self._statement(statement) for statement in statements or ())

    def _statement(self, tree: Tree) -> Statement:
        # Joined commands nest to the left, one level per command: avoid deep recursion.
        spine = [tree]
        while spine[-1].get("Cmd", {}).get("Type") == "BinaryCmd":
            spine.append(spine[-1]["Cmd"]["X"])
        built = self._wrap(spine[-1], self._node(spine[-1].get("Cmd")))
        for joined in reversed(spine[:-1]):
            command = joined["Cmd"]
            right = self._statement(command["Y"])
            built = self._wrap(joined, Binary(_OPERATORS[command["Op"]], built, right))
        return built

    def _wrap(self, tree: Tree, node: Node | None) -> Statement:
        end = (tree.get("Semicolon") or tree["End"])["Offset"]
        return Statement(
            node=node,
            text=self._text(tree["Pos"]["Offset"], end),
            redirects=tuple(self._redirect(item) for item in tree.get("Redirs", ())),
            is_negated=tree.get("Negated", False),
            is_background=tree.get("Background", False),
        )

    def _node(self, tree: Tree | None) -> Node | None:
        node = None if tree is None else self._built(tree)
        if isinstance(node, Command) and runs_subscript(node):
            raise Refused(SUBSCRIPT, node.text)
        return node

    def _built(self, tree: Tree) -> Node:
        match tree["Type"]:
            case "CallExpr":
                return Command(
                    kind="call",
                    text=self._slice(tree),
                    words=self._words(tree.get("Args", [])),
                    assignments=tuple(map(self._assignment, tree.get("Assigns", ()))),
                )
            case "DeclClause":
                return self._declare(tree)
            case "TestClause":
                return Command("test", self._slice(tree), self._all_words(tree["X"]))
            case "ArithmCmd":
                return Command("arithmetic", self._slice(tree), self._all_words(tree.get("X")))
            case "LetClause":
                return Command("let", self._slice(tree), self._all_words(tree["Exprs"]))
            case "Block" | "Subshell" as kind:
                return Group(kind == "Subshell", self.script(tree.get("Stmts")))
            case "IfClause":
                return self._if(tree)
            case "WhileClause":
                return Loop(
                    kind="until" if tree.get("Until") else "while",
                    words=(),
                    condition=self.script(tree.get("Cond")),
                    body=self.script(tree.get("Do")),
                )
            case "ForClause":
                return self._for(tree)
            case "CaseClause":
                items = tree.get("Items", [])
                return Case(
                    word=self._joined(tree["Word"]),
                    patterns=tuple(
                        self._joined(word) for item in items for word in item["Patterns"]
                    ),
                    branches=tuple(self.script(item.get("Stmts")) for item in items),
                )
            case "FuncDecl":
                return Function(tree["Name"]["Value"], self._statement(tree["Body"]))
            case "TimeClause":
                return Timed(self._statement(tree["Stmt"]) if "Stmt" in tree else None)
            case kind:
                raise Refused(f"`{kind}` of a shell is not judged.", self._slice(tree))

    def _if(self, tree: Tree) -> Node:
        other = tree.get("Else")
        otherwise: Script = ()
        if other is not None and "Cond" in other:
            otherwise = (Statement(self._if(other), self._slice(other)),)
        elif other is not None:
            otherwise = self.script(other.get("Then"))
        return If(self.script(tree.get("Cond")), self.script(tree.get("Then")), otherwise)

    def _for(self, tree: Tree) -> Node:
        loop = tree["Loop"]
        body = self.script(tree.get("Do"))
        if loop["Type"] == "CStyleLoop":
            parts = [loop.get(key) for key in ("Init", "Cond", "Post")]
            return Loop("arithmetic", self._all_words(parts), (), body)
        words = self._words(loop.get("Items", []), is_value=True)
        return Loop("for", words, (), body, loop["Name"]["Value"])

    def _declare(self, tree: Tree) -> Node:
        variant = tree["Variant"]
        first = words.one_word(self._slice(variant), plain(variant["Value"]), ())
        rest, assignments = [], []
        for argument in tree.get("Args", ()):
            if "Name" not in argument:
                rest += self._expanded(argument["Value"])
            elif argument.get("Naked") and "Index" not in argument:
                rest.append(
                    words.one_word(self._slice(argument), plain(argument["Name"]["Value"]), ())
                )
            else:
                assignments.append(self._assignment(argument, has_braces=True))
        for word in rest:
            if word.value is not None and (found := re.fullmatch(_ASSIGNMENT, word.value)):
                value = word._replace(value=found[4], scripts=())
                assignments.append(Assignment(found[1], word.text, (value,), bool(found[3])))
        return Command("declare", self._slice(tree), (first, *rest), tuple(assignments))

    # Braces in a value expand only after `export` and similar builtins.
    def _assignment(self, tree: Tree, *, has_braces: bool = False) -> Assignment:
        values = list(self._all_words(tree.get("Index")))
        if "Value" in tree:
            value = tree["Value"]
            values += (
                self._expanded(value, is_value=True)
                if has_braces
                else [self._joined(value, is_value=True)]
            )
        for element in tree.get("Array", {}).get("Elems", ()):
            values += self._all_words(element.get("Index"))
            if "Value" in element:
                values += self._expanded(element["Value"], is_value=True)
        return Assignment(
            name=tree["Name"]["Value"],
            text=self._slice(tree),
            values=tuple(values),
            appends=tree.get("Append", False),
        )

    def _redirect(self, tree: Tree) -> Redirect:
        targets = self._expanded(tree["Word"])
        is_one = len(targets) == 1
        target = targets[0] if is_one else self._joined(tree["Word"])
        return Redirect(
            operator=tree["Op"],
            text=self._text(tree["Pos"]["Offset"], tree["Word"]["End"]["Offset"]),
            target=target if is_one else target._replace(value=None),
            descriptor=tree.get("N", {}).get("Value", ""),
            body=self._body(tree) if tree["Op"] in ("<<", "<<-") else None,
        )

    def _body(self, tree: Tree) -> Word:
        """Return the text of a here-document, without its end line."""
        if "Hdoc" not in tree:
            return Word("", "")
        body = tree["Hdoc"]
        pieces = body_pieces(
            body["Parts"],
            is_literal=any(mark in self._slice(tree["Word"]) for mark in "\"'\\"),
            strips_tabs=tree["Op"] == "<<-",
        )
        text = self._slice(body).rpartition("\n")[0]
        return words.one_word(text, pieces, self._scripts(body))

    def _slice(self, tree: Tree) -> str:
        return self._text(tree["Pos"]["Offset"], tree["End"]["Offset"])

    def _text(self, start: int, end: int) -> str:
        return self._source[start:end].decode(errors="replace").rstrip()

    def _words(self, trees: list[Tree], *, is_value: bool = False) -> tuple[Word, ...]:
        return tuple(word for tree in trees for word in self._expanded(tree, is_value=is_value))

    def _expanded(self, tree: Tree, *, is_value: bool = False) -> list[Word]:
        """Return the words that result from brace expansion."""
        first, *others = tree["Parts"]
        if not others and first["Type"] == "Lit" and _PLAIN.fullmatch(first["Value"]):
            return [Word(self._slice(tree), first["Value"])]  # the common case
        return words.words_of(self._slice(tree), self._pieces(tree, is_value), self._scripts(tree))

    def _joined(self, tree: Tree, *, is_value: bool = False) -> Word:
        """Return a word whose braces bash does not expand."""
        return words.one_word(self._slice(tree), self._pieces(tree, is_value), self._scripts(tree))

    def _pieces(self, tree: Tree, is_value: bool) -> Pieces:
        pieces = pieces_of(tree["Parts"])
        text = known_text(pieces)
        if hides_code(text) or (is_value and may_become_code(text)):
            self.code.append(self._slice(tree))
        return pieces

    def _all_words(self, tree: Any) -> tuple[Word, ...]:
        """Return every word of an expression, in order."""
        return tuple(self._joined(word) for word in _find(tree, lambda node: "Parts" in node))

    def _scripts(self, tree: Tree) -> tuple[Script, ...]:
        """Return the scripts that bash runs to make a word, in order."""
        return tuple(
            self.script(found.get("Stmts"))
            for found in _find(tree, lambda node: node.get("Type") in ("CmdSubst", "ProcSubst"))
        )


def _find(tree: Any, is_wanted: Callable[[Tree], bool]) -> Iterator[Tree]:
    """Yield the wanted nodes in order, without those inside them; not recursive."""
    left = [tree]
    while left:
        node = left.pop()
        if isinstance(node, list):
            left += reversed(node)
        elif isinstance(node, dict) and is_wanted(node):
            yield node
        elif isinstance(node, dict):
            left += [child for child in reversed(node.values()) if isinstance(child, (dict, list))]
