"""Which module judges the arguments of which program: only that one is loaded for a call."""

from __future__ import annotations

import importlib
import re
from types import MappingProxyType

from cuggino.guard.commands.base import Judge
from cuggino.guard.commands.wordlist import words

MODULES: dict[str, tuple[str, ...]] = {
    "git": ("git",),
    "find": words("find gfind"),
    "copying": words("cp gcp mv ln install rsync scp"),
    "files": words(
        "rm rmdir unlink shred mkdir mkfifo touch truncate tee chown chgrp dd split csplit gzip"
        " gunzip bzip2 bunzip2 xz unxz zstd"
    ),
    "attributes": words("chattr chflags setfacl setfattr xattr file"),
    "compilers": words("gcc g++ cc c++ c89 c99 clang clang++ gfortran cpp as ld"),
    "cmake": ("cmake",),
    "text": words("sort gsort uniq tree date awk gawk mawk nawk jq rg fd fdfind"),
    "sed": words("sed gsed"),
    "writers": words(
        "link mknod rename prename gpg gpg2 xxd base64 base32 7z 7za 7zr 7zz objcopy strip ar"
        " ranlib pip pip2 pip3 sqlite3 sponge fallocate mktemp dos2unix unix2dos mac2unix"
        " unix2mac indent ctags ed ex vi vim nvim nano pico emacs less"
    ),
    "transfer": words("tar gtar bsdtar unzip zip patch gpatch curl wget compress"),
    "processes": words("chmod pkill"),
    "shells": words(
        "sh bash dash zsh ksh mksh fish ash rbash csh tcsh yash pwsh eval source . trap watch"
    ),
    "builtins": words(
        "read mapfile readarray printf unset getopts wait jobs set shopt hash test [ declare"
        " typeset local export readonly alias enable compgen complete compopt bind fc coproc"
        " zmodload emulate zargs setopt autoload noglob nocorrect"
    ),
    "wrappers": words(
        "timeout gtimeout nohup time nice ionice chrt taskset stdbuf setsid caffeinate unbuffer"
        " strace ltrace xvfb-run dbus-run-session cross-env dotenv flock sudo doas busybox toybox"
        " su runuser chroot unshare nsenter systemd-run script expect parallel pkexec setpriv capsh"
        " start-stop-daemon batch at crontab env genv command builtin exec xargs gxargs valgrind"
        " eatmydata fakeroot faketime rlwrap ccache sccache distcc bear"
    ),
    "launchers": words("perf gdb hyperfine pyenv rbenv asdf direnv volta"),
    "runners": words(
        "npx bunx uvx pnpx uv poetry pdm hatch bundle bundler conda composer yarn pnpm npm tox rye"
        " pipenv mise symfony yarnpkg bun pipx rustup go"
    ),
    "inline": (
        *words("python python2 python3 node bun deno ruby php perl irb"),
        *(f"python3.{minor}" for minor in range(6, 20)),
    ),
}
"""By module; a program may stand in two, and is judged by both."""

_MODULES_OF: dict[str, tuple[str, ...]] = {}
for _module, _programs in MODULES.items():
    for _program in _programs:
        _MODULES_OF[_program] = (*_MODULES_OF.get(_program, ()), _module)
KNOWN = MappingProxyType(_MODULES_OF)
"""By program."""

TOOLS = frozenset(("runners", "inline", "writers"))
"""Their programs write in more ways than their own module looks at."""


_TOOLCHAIN = re.compile(
    r"(?:\w+(?:-\w+){1,3}-|llvm-|gcc-|musl-)?"
    r"(gcc|g\+\+|c\+\+|clang\+\+|clang|gfortran|cpp|cc|as|ld|ar|ranlib|strip|objcopy)"
    r"(?:\.(?:bfd|gold|lld|mold))?(?:-[\d.]+)?",
    re.ASCII,
)


def known_name(name: str) -> str:
    """The name under which the table has it: `gcc` for `gcc-13` and `x86_64-linux-gnu-gcc`."""
    if name in KNOWN or (found := _TOOLCHAIN.fullmatch(name)) is None:
        return name
    return found[1]


def judges_of(name: str) -> list[Judge]:
    """Those that look at the arguments of the program."""
    found: list[Judge] = []
    for module in KNOWN.get(name, ()):
        judges = importlib.import_module(f"cuggino.guard.commands.{module}").JUDGES
        found.append(judges[name])
    return found


def is_tool(name: str) -> bool:
    """Whether it is to be judged as a tool of a language, too: any program without a module."""
    return name not in KNOWN or not TOOLS.isdisjoint(KNOWN[name])
