"""Compilers, assemblers and linkers: what they write beside `-o`, and the programs they would run.

Their options are no clusters of letters as elsewhere, and each of them hands some on to the next:
`-Wl,-Map,FILE`. A value is looked at wherever it may be one, so that none is hidden by another.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from cuggino.guard.commands.base import Call, Judge, plain_word
from cuggino.guard.commands.files import unsure
from cuggino.guard.commands.options import is_doubtful
from cuggino.guard.commands.wordlist import words
from cuggino.guard.shell.tree import Word

NAMES = words("gcc g++ cc c++ c89 c99 clang clang++ gfortran cpp as ld")
_LINKERS = ("ld", "-Wl,")
_WRITTEN = frozenset(
    words(
        "o output output-pch MF MJ J aux-info dumpdir dumpbase serialize-diagnostics"
        " dependency-file dependency-dot header-include-file Map map out-implib output-def"
        " dependency_info object_path_lto reproduce lto-obj-path time-trace-file"
    )
)
"""Options whose value is written, beside them, behind them or behind `=`."""
_WRITTEN_INNER = _WRITTEN | {"MD", "MMD"}
"""As the preprocessor and the assembler know them: with the file behind them."""
_WRITTEN_AFTER = re.compile(
    r"fdump-[\w-]+|fopt-info[\w-]*|fprofile-(dir|note|generate|instr-generate)"
    r"|fcs-profile-generate|foptimization-record-file|ftime-trace|fmodule-output"
    r"|fmodules-cache-path|fcrash-diagnostics-dir|fdeps-file|index-store-path|a[cdghlmns]*"
    r"|fdiagnostics-(add|set)-output"
)
"""Options whose value is written, but only when it stands behind `=`."""
_JOINED = re.compile(r"-(o|MF|MJ|J)(.+)", re.DOTALL)
_LOADED = frozenset(
    words(
        "B prefix fplugin fpass-plugin iplugindir fuse-ld ld-path specs plugin load"
        " load-pass-plugin config fmodule-mapper gcc-toolchain gcc-install-dir ptxas-path"
        " error-handling-script"
    )
)
"""Options that name a program or a library that is run, or where such are looked for."""
_LOADED_JOINED = re.compile(r"-(B)(.+)", re.DOTALL)
_SYSTEM = re.compile(r"/(usr|opt|lib\w*|Library|Applications|nix/store)/(?!(.*/)?\.\.(/|$)).*")
_NAMED = re.compile(r"(?!.*\.(so|dylib|dll)$)[\w.+-]+", re.ASCII)
"""What is looked for among the compiler's own."""
_FILE_KEY = re.compile(r"\w+:(.*,)?file=")
"""What stands before the name in `-fdiagnostics-add-output=sarif:file=NAME`."""
_BEFORE_VALUE = re.compile(r"-([IDUAxo]|M[FTQ]|i[a-z]+|Xpreprocessor)")
_RPATH = re.compile(r"@(rpath|loader_path|executable_path)(/|$)")
_PRINTED = ("", "-", "stdout", "stderr")
_HANDS_ON = {
    "-Xlinker": "-Wl,", "-Xassembler": "-Wa,", "-Xpreprocessor": "-Wp,", "-Xclang": "-Xclang",
    "-mllvm": "-Xclang",
}  # fmt: skip
_WRITES_NOTHING = re.compile(r"-(E|MM?|fsyntax-only|###)|--?(version|help|dump|print).*")


def compiler(call: Call) -> str:
    """Every file that is named must be allowed; nothing is run but the compiler's own programs."""
    handed: dict[str, list[Word]] = {call.name: list(call.args)}
    for word, after in pairwise((*call.args, plain_word(""))):
        start = _start(word)
        if start[:4] in ("-Wl,", "-Wa,", "-Wp,"):
            handed.setdefault(start[:4], []).extend(_pieces(word))
        elif start in _HANDS_ON:
            handed.setdefault(_HANDS_ON[start], []).append(after)
        elif start in ("-wrapper", "--wrapper") and (reason := _wrapped(call, after)):
            return reason
    has_named = False
    for stage, given in handed.items():
        for target in _targets(stage, given):
            has_named = True
            if reason := call.site.change(target):
                return reason
        if reason := _loaded(call, stage, given):
            return reason
    for word in call.args if has_named and not call.site.is_full else ():
        if is_doubtful(word) and not call.site.is_lenient:
            return unsure(call.name, word)
    is_unnamed = call.site.is_limited and not has_named and bool(call.args)
    if is_unnamed and not any(_WRITES_NOTHING.fullmatch(_start(word)) for word in call.args):
        return call.site.write_path("a.out")
    return ""


def _start(word: Word) -> str:
    return word.value if word.value is not None else word.prefix


def _pieces(word: Word) -> list[Word]:
    """`-Wl,a,b` as the words that the linker gets; what is not known ends the last of them."""
    pieces = [plain_word(piece) for piece in _start(word).split(",")[1:]]
    if word.value is None:
        pieces[-1] = Word(word.text, None, pieces[-1].value or "")
    return pieces


def _with_value(given: list[Word]) -> Iterator[tuple[str, Word, bool]]:
    """Each option by its name without dashes, what may be its value, and whether behind `=`."""
    for word, after in pairwise((*given, plain_word(""))):
        start = _start(word)
        if not start.startswith("-"):
            continue
        name, equals, value = start.lstrip("-").partition("=")
        if equals:
            yield name, _rest(word, _FILE_KEY.sub("", value)), True
        elif word.value is not None:
            yield start.lstrip("-"), after, False


def _rest(word: Word, value: str) -> Word:
    """The end of the word, as a word of its own."""
    known = None if word.value is None else value
    return Word(word.text, known, value, word.has_glob)


def _targets(stage: str, given: list[Word]) -> Iterator[Word]:
    """What the stage would write."""
    written = _WRITTEN_INNER if stage in ("as", "-Wa,", "-Wp,") else _WRITTEN
    for name, value, is_after in _with_value(given):
        if (name in written or (is_after and _WRITTEN_AFTER.fullmatch(name))) and (
            value.value not in _PRINTED
        ):
            yield value
    for word in given:
        joined = _JOINED.fullmatch(_start(word))
        if joined is not None and _start(word).lstrip("-") not in written:
            yield _rest(word, joined[2])
    if stage == "cpp":
        files = [
            word
            for before, word in pairwise((plain_word(""), *given))
            if not _start(word).startswith("-") and not _BEFORE_VALUE.fullmatch(_start(before))
        ]
        yield from files[1:2]


def _loaded(call: Call, stage: str, given: list[Word]) -> str:
    """Why a program, library or list of options must not be taken from where it is named."""
    for word in given:
        start = _start(word)
        if start.startswith("@") and len(start) > 1 and not _RPATH.match(start):
            return f"{call.name} must not read its options from a file: write them out"
    named = list(_with_value(given))
    for word in given:
        if (joined := _LOADED_JOINED.fullmatch(_start(word))) is not None:
            named.append((joined[1], _rest(word, joined[2]), True))
    for name, value, _ in named:
        if name not in _LOADED or (name == "B" and stage in _LINKERS) or value.value == "":
            continue
        if value.value is None and call.site.is_lenient:
            continue
        text = value.value or ""
        is_own = name not in ("B", "prefix") and _NAMED.fullmatch(text) is not None
        if not is_own and not _SYSTEM.fullmatch(text):
            return (
                f"{call.name} must not run or load '{value.text}' by -{name}: only what is"
                " installed in the system"
            )
    return ""


def _wrapped(call: Call, value: Word) -> str:
    """`-wrapper PROGRAM,ARGUMENT`: started with each program of the compiler behind it."""
    if value.value is None:
        return f"It cannot be told what {call.name} -wrapper starts: write it out"
    started = (*map(plain_word, value.value.split(",")), plain_word("cc1"))
    return call.site.judge(started, call.site)


JUDGES: dict[str, Judge] = dict.fromkeys(NAMES, compiler)
