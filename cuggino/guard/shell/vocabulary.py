"""Node types that a syntax tree may contain; all others are refused."""

from __future__ import annotations


def _set(names: str) -> frozenset[str]:
    return frozenset(names.split())


TYPES = _set(
    "File CallExpr IfClause WhileClause ForClause CaseClause Block Subshell BinaryCmd FuncDecl"
    " ArithmCmd TestClause DeclClause LetClause TimeClause Lit SglQuoted DblQuoted ParamExp"
    " CmdSubst ArithmExp ProcSubst WordIter CStyleLoop BinaryArithm UnaryArithm ParenArithm Word"
    " BinaryTest UnaryTest ParenTest"
)
POSITIONS = _set(
    "Pos End Position Semicolon OpPos Lparen Rparen Lbrace Rbrace ThenPos FiPos WhilePos DoPos"
    " DonePos ForPos InPos Dollar ValuePos ValueEnd Left Right Case In Esac Time Let Hash"
)
KEYS = POSITIONS | _set(
    "Type Name Stmts Last Text Comments Cmd Negated Background Redirs Append Naked Index Value"
    " Array Op N Word Hdoc Assigns Args Cond CondLast Then ThenLast Else Until Do DoLast Loop Items"
    " Init Post X Y RsrvWord Parens Body Parts Backquotes Short Excl Length Param Slice Repl"
    " Names Exp Offset All Orig With Bracket Patterns Variant Elems PosixFormat Stmt Exprs"
)
NAMED = {
    "CoprocClause": "`coproc` is not judged; start the command with `&` instead.",
    "ExtGlob": "Extended patterns such as `!(x)` are not judged; name the files.",
    "Select": "`select` waits for input; use `for` instead.",
}
NESTING = _set(
    "IfClause WhileClause ForClause CaseClause Block Subshell FuncDecl TimeClause CmdSubst"
    " ProcSubst ParamExp DblQuoted ArithmExp ParenArithm ParenTest"
)
CHAINING = _set("BinaryCmd BinaryArithm UnaryArithm BinaryTest UnaryTest")
COMMANDS = _set("CallExpr DeclClause TestClause ArithmCmd LetClause")
COMPARING = _set("-eq -ne -lt -le -gt -ge -v -R")
REDIRECTS = _set("> >> >| < <> >& <& &> &>> << <<- <<<")
