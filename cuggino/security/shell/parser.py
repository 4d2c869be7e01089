"""The door: the text of a command to the tree that is judged, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping

from cuggino.security.shell.build import Builder
from cuggino.security.shell.expressions import SUBSCRIPT
from cuggino.security.shell.known import put_in
from cuggino.security.shell.refusals import check_text, check_tree
from cuggino.security.shell.shfmt import run_shfmt
from cuggino.security.shell.tree import Refused, Script


def parse(text: str, *, shfmt: str, known: Mapping[str, str] | None = None) -> Script:
    """The commands that bash 5 would run, with `shfmt` the path of the parser.

    `known` are the values of variables that the commands cannot change.

    Raises `Refused`, and nothing else, when that cannot be told for sure: no bash, too much of
    it, something that shells read differently, a parser that fails (AUT-217). Blank text gives an
    empty script. Takes time linear in the length of the text, at most some two seconds.
    """
    try:
        check_text(text)
        if not text.strip(" \t\n"):
            return ()
        tree = run_shfmt(shfmt, text)
        source = text.encode()
        evaluates = check_tree(tree, source)
        if known and "$" in text:
            tree = put_in(tree, known)
        builder = Builder(source)
        script = builder.script(tree.get("Stmts"))
        if evaluates and builder.code:
            raise Refused(SUBSCRIPT, builder.code[0])
        return script
    except Refused:
        raise
    except Exception as error:  # whatever it is, what is not understood is not run
        raise Refused(
            f"It cannot be judged ({type(error).__name__}); write it in a plainer way."
        ) from error
