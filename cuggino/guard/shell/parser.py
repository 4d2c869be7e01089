"""The parser: the text of a command to the tree that is judged, or a refusal."""

from __future__ import annotations

from collections.abc import Mapping

from cuggino.guard.shell.build import Builder
from cuggino.guard.shell.expressions import SUBSCRIPT
from cuggino.guard.shell.known import put_in
from cuggino.guard.shell.refusals import check_text, check_tree
from cuggino.guard.shell.shfmt import run_shfmt
from cuggino.guard.shell.tree import Refused, Script


def parse(text: str, *, shfmt: str, known: Mapping[str, str] | None = None) -> Script:
    """Return the commands that bash 5 would run; `shfmt` is the path of the parser program.

    `known` are the values of variables that the commands cannot change.

    Raises `Refused`, and nothing else, when the result is not certain: the text is not bash, is too
    long, is read differently by shells, or the parser fails (AUT-217). Blank text gives an empty
    script. Takes time linear in the length of the text, at most about two seconds.
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
    except Exception as error:  # deny what cannot be parsed, for any reason
        raise Refused(f"It cannot be judged ({type(error).__name__}); simplify it.") from error
