"""Archives, patches and downloads: what they write, and the programs they would start."""

from __future__ import annotations

import re

from cuggino.guard.commands.base import Call, Judge, first, plain_word
from cuggino.guard.commands.files import in_place, unclear_words
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.shell.tree import Word

_TAR_RUN = ("--to-command", "--use-compress-program", "--checkpoint-action", "--rsh-command",
            "--info-script", "--new-volume-script", "-F", "--rmt-command")  # fmt: skip
_ZIP_WRITES = re.compile(r"-[a-zA-Z]*O|-lf|--(ou|logf)")
_TAR = Syntax(
    short="fCITXbgKNLVHF",
    long=("file", "directory", "to-command", "use-compress-program", "checkpoint-action",
          "rsh-command", "info-script", "new-volume-script", "rmt-command", "exclude",
          "exclude-from", "files-from", "transform", "xform", "strip-components", "owner", "group",
          "mode", "mtime", "listed-incremental", "starting-file", "index-file", "blocking-factor"),
    flags=("extract", "create", "list", "get", "append", "update", "delete", "absolute-names",
           "one-top-level",
           "exclude-vcs", "file-type", "gzip", "verbose", "overwrite", "remove-files"),
)  # fmt: skip


def tar(call: Call) -> str:
    """Extracting writes into its folder, creating writes the archive; nothing is run."""
    args = call.args
    if args and args[0].value and not args[0].value.startswith("-"):
        args = _old_style(args)
    given = parse_options(args, _TAR)
    if given.has(*_TAR_RUN) or any(
        re.search(r"[^\w+-]", word.value or "/") for word in given.values("-I")
    ):
        return "tar must not start another program: leave that option out"
    for change in given.values("--transform", "--xform"):
        if any(name in (change.value or "") for name in call.site.policy.protected):
            return f"tar must not give names that are protected: '{change.text}'"
    if given.has("-P", "--absolute-names"):
        return "tar must not write absolute names: leave -P out"
    extracts = given.has("-x", "--extract", "--get")
    written = given.values("--index-file", "-g", "--listed-incremental")
    if given.has("-c", "-r", "-u", "-A", "--create", "--append", "--update", "--delete"):
        written += [word for word in given.values("-f", "--file") if word.value != "-"]
    if given.has("--remove-files"):
        return "tar must not remove what it packs: leave --remove-files out"
    if extracts and not given.has("-O", "--to-stdout"):
        written += given.values("-C", "--directory") or [plain_word(".")]
        written += given.values("--one-top-level")
    return first(map(call.site.write, written)) or (unclear_words(call, given) if extracts else "")


def _old_style(args: tuple[Word, ...]) -> tuple[Word, ...]:
    """`tar xzf a.tar` as `tar -x -z -f a.tar`."""
    rest = list(args[1:])
    made: list[Word] = []
    for letter in args[0].value or "":
        made.append(plain_word(f"-{letter}"))
        if letter in _TAR.short and rest:
            made.append(rest.pop(0))
    return (*made, *rest)


def unzip(call: Call) -> str:
    """It writes below `-d`, or where it runs."""
    given = parse_options(call.args, Syntax(short="dxP"))
    if given.has("-l", "-p", "-t", "-Z", "-v", "-c"):
        return ""
    return first(map(call.site.write, given.values("-d") or [plain_word(".")])) or unclear_words(
        call, given
    )


def zip_(call: Call) -> str:
    """The archive is written, and nothing else; nothing is run, nothing moved into it."""
    given = parse_options(call.args, Syntax(short="bnxit"))
    if any(_ZIP_WRITES.match(word.value or word.prefix) for word in call.args):
        return "zip must only write its archive: leave out -O, --out, -lf and --logfile-path"
    if given.has("-T", "-TT", "-m", "--unzip-command", "--move"):
        return "zip must only pack: leave out -T, -TT and -m"
    return first(map(call.site.write, given.operands[:1]))


def patch(call: Call) -> str:
    """The file it patches, or the folder where it finds the names in the patch."""
    given = parse_options(
        call.args,
        Syntax(short="iopdrBDFgVYzx", long=("input", "output", "strip", "directory", "reject-file",
               "prefix", "suffix", "basename-prefix", "fuzz", "ifdef"), flags=("dry-run",)),
    )  # fmt: skip
    if given.has("--dry-run"):
        return ""
    named = [*given.values("-o", "--output", "-r", "--reject-file", "-d", "--directory")]
    for prefix in given.values("-B", "--prefix", "--basename-prefix", "-z", "--suffix"):
        if "/" in (prefix.value or "/"):
            return "patch must keep its copies beside the file: leave that option out"
    return first(map(call.site.write, (*named, *given.operands[:1], plain_word("patched")))) or (
        unclear_words(call, given)
    )


def curl(call: Call) -> str:
    """`-o`, `-O`, `-D`, `-c` and their like write."""
    given = parse_options(
        call.args,
        Syntax(
            short="AbcCdDeEFHhKmoPQrtTuUwxXyYz",
            long=("output", "output-dir", "dump-header", "cookie-jar", "trace", "trace-ascii",
                  "stderr", "data", "data-binary", "data-raw", "header", "request", "user", "form",
                  "url", "max-time", "connect-timeout", "retry", "config", "cookie", "referer",
                  "user-agent", "write-out", "proxy", "cacert", "cert", "key", "upload-file",
                  "libcurl", "etag-save", "hsts", "alt-svc", "range", "retry-delay", "json"),
            flags=("fail", "silent", "show-error", "location", "compressed", "insecure", "head",
                   "include", "verbose", "get", "remote-name", "remote-header-name"),
        ),
    )  # fmt: skip
    written = given.values(
        "-o", "--output", "--output-dir", "-D", "--dump-header", "-c", "--cookie-jar", "--trace",
        "--trace-ascii", "--stderr", "--libcurl", "--etag-save", "--hsts", "--alt-svc",
    )  # fmt: skip
    if given.has("-O", "--remote-name", "--remote-name-all"):
        written.append(plain_word("download"))
    if given.has("-K", "--config") and call.site.is_full:
        return "curl must not read its options from a file: write them out"
    return first(call.site.write(word) for word in written if word.value != "-")


def wget(call: Call) -> str:
    """It writes where it runs, below `-P`, or the file of `-O`."""
    given = parse_options(
        call.args,
        Syntax(short="aBeDGiIloOPQRtTUwXA",
               long=("output-document", "output-file", "append-output", "directory-prefix",
                     "use-askpass", "execute", "save-cookies", "warc-file", "header", "timeout",
                     "rejected-log", "hsts-file",
                     "tries", "user-agent", "post-data", "body-data", "method")),
    )  # fmt: skip
    if given.has("--use-askpass", "-e", "--execute"):
        return "wget must not start another program: leave that option out"
    written = given.values(
        "-O", "--output-document", "-o", "--output-file", "-a", "--append-output", "-P",
        "--directory-prefix", "--save-cookies", "--warc-file", "--rejected-log", "--hsts-file",
    )  # fmt: skip
    if not given.has("-O", "--output-document", "-P", "--directory-prefix", "--spider"):
        written.append(plain_word("download"))
    return first(call.site.write(word) for word in written if word.value != "-")


JUDGES: dict[str, Judge] = {
    "tar": tar,
    "gtar": tar,
    "bsdtar": tar,
    "unzip": unzip,
    "zip": zip_,
    "patch": patch,
    "gpatch": patch,
    "curl": curl,
    "wget": wget,
    "compress": in_place,
}
