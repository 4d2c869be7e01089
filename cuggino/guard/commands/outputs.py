"""Options by which tools write files, and formatters that rewrite what they are given."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, first
from cuggino.guard.commands.wordlist import words

_OUTPUTS = frozenset(
    words(
        "out output outfile outdir outputfile outputdir outputpath outputdirectory distdir dest"
        " destination junitxml logfile reportfile reportdir basetemp targetdir artifactdir"
        " buildpath workdir coveragedir coveragedirectory coverageoutput declarationdir"
        " tsbuildinfofile coverprofile cpuprofile memprofile blockprofile mutexprofile save writeto"
        " cachedir cachelocation cachefile baselinefile generatebaseline logjunit coveragehtml"
        " coverageclover coveragexml coveragetext coveragephp installdir installroot bindir"
        " buildroot toolpath modulesfolder destdir localdir"
    )
)
"""Options of any program whose value is written, without dashes and in lower case."""
_FOLDERS = words("--prefix --dir --cwd --directory --project-dir --working-dir")
_MAKES = (*_FOLDERS, *words("-C DESTDIR PREFIX prefix"))
_PIP = words("-t --target --prefix --root --src -d -w --wheel-dir")
_OWN: dict[str, tuple[str, ...]] = {
    **dict.fromkeys(
        words(
            "gcc cc g++ c++ clang clang++ ld rustc eslint webpack rollup deno biome pandoc dot nvcc"
            " tcc icc icx emcc em++ ghc ocamlc ocamlopt swiftc nasm yasm bison flex swig ldc2"
            " gnatmake fpc iconv xmllint ruff"
        ),
        ("-o",),
    ),
    **dict.fromkeys(words("javac kotlinc scalac groovyc coverage"), ("-d",)),
    **dict.fromkeys(words("npm yarn bun uv poetry pdm composer cmake mvn"), _FOLDERS),
    **dict.fromkeys(words("make gmake"), _MAKES),
    **dict.fromkeys(words("ninja pnpm"), (*_FOLDERS, "-C")),
    **dict.fromkeys(words("pip pip3"), _PIP),
    "go": (*_FOLDERS, "-C", "-o"),
    "cargo": (*_FOLDERS, "-C", "--root"),
    "gem": words("-i -n --install-dir --bindir"),
    "dotnet": ("-o",),
    "cpanm": words("-l -L --local-lib --local-lib-contained"),
    "luarocks": ("--tree",),
}
"""More of these options, by program."""
_JOINED = frozenset(words("-o -C -i -t -l -L"))
"""Short options whose value may follow in the same word."""
_ANY_OUTPUT = (
    r"(?i)--?[\w-]*(output|dir|directory|dest|destination|path|file|folder|root|prefix|blob|section"
    r"|store|report|trace|emit)"
)
"""Options, of any program, whose value is a path."""
_LOOKS = (
    r"(?i)exclude|ignore|skip|omit|prune|config|input|filter|msg|message|edit|git-?dir|from|read"
    r"|pattern|match|include|hidden|watch|source"
)
"""Parts of the names of options that only read from a path, or ignore it."""
_OWN_O = frozenset(words("od ag ack hexdump stat nl strings ssh mount"))
"""Programs whose `-o` names no file."""
_CHECKS = r"--(check|diff|dry-run|version|help|list-different|check-only|print-config)"
QUIET = frozenset(
    words(
        "ls pwd cat head tail wc grep diff cut tr tac which ps lsof echo sleep cd true false"
        " : exit return break continue shift type times jobs disown umask let dirs pushd popd"
        " egrep fgrep printf npx bunx uvx pnpx"
    )
)
"""Programs that write nothing, even if their options suggest it."""
_REWRITES = {
    **dict.fromkeys(words("rustfmt black phpcbf isort cargo-fmt"), ""),
    **dict.fromkeys(words("gofmt goimports"), r"-\w*w"),
    **dict.fromkeys(words("eslint standard stylelint"), "--fix"),
    "prettier": "--write|-w",
    "biome": r"--(write|apply|fix)[\w-]*",
    "rubocop": r"-[aAx]|--auto-?correct[\w-]*|--fix-layout",
    "ruff": "--fix|format",
    "autopep8": "-i|--in-place",
    "php-cs-fixer": "fix",
    "clang-format": "-i",
    "shfmt": "-w|--write",
    "yq": "-i|--in-?place",
}
"""Formatters that rewrite their operands: always, or with these arguments."""


def outputs_reason(call: Call) -> str:
    """Return why a tool may not write what its options or operands name."""
    args, own = call.args, _OWN.get(call.name, ())
    for index, word in enumerate(args):
        if word.value is None:
            continue
        if call.site.is_full and (reason := _guarded(call, index)):
            return reason
        name, equals, value = word.value.partition("=")
        if name in own or _is_output(name):
            if equals:
                target = word._replace(value=value, has_tilde=value.startswith("~"))
            elif index + 1 < len(args):
                target = args[index + 1]
            else:
                continue
        elif name[:2] in own and name[:2] in _JOINED and (call.name, name[:2]) != ("go", "-o"):
            target = word._replace(value=word.value[2:])
        else:
            continue
        if target.value in (None, "") or target.has_glob or (target.value or "").startswith("-"):
            continue
        if reason := call.site.output(target):
            return reason
    return _rewritten(call)


def _is_output(name: str) -> bool:
    return name[:1] == "-" and name.replace("-", "").replace("_", "").lower() in _OUTPUTS


def _guarded(call: Call, index: int) -> str:
    """Return why the value of an unknown option may not be a protected path."""
    text = call.args[index].value or ""
    name, equals, value = text.partition("=")
    if not text.startswith("-") or re.search(_LOOKS, name):
        return ""
    named = re.split(r"[=:]", value) if equals else []  # `--cov-report=KIND:FILE`
    is_short = text[:2] in ("-o", "-O") and call.name not in _OWN_O
    if is_short or re.fullmatch(_ANY_OUTPUT, text):
        after = next((word.value or "" for word in call.args[index + 1 :]), "")
        named += re.split(r"[=:]", text[2:] if is_short and text[2:] else after)
    return first(call.site.paths.guards(path, call.site.known) for path in named if path)


def _rewritten(call: Call) -> str:
    pattern = _REWRITES.get(call.name)
    if pattern is None:
        return ""
    texts = [word.value or "" for word in call.args]
    is_asked = not pattern or any(re.fullmatch(pattern, text) for text in texts)
    if not is_asked or any(re.fullmatch(_CHECKS, text) for text in texts):
        return ""
    files = [word for word in call.args if word.value and not word.value.startswith("-")]
    # The first operand of yq is what it calculates.
    files = files[call.name == "yq" :]
    return first(call.site.write(word) for word in files if not word.has_glob)
