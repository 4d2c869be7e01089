"""Compilers and similar tools write files in many ways and run other programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy
from tests.guard.commands.listed import allowed, denied
from tests.guard.judging import reason_of

COMPILERS = words(
    "gcc g++ cc c++ c89 c99 clang clang++ gfortran cpp gcc-13 clang-17 clang++-18 g++-9 gcc-4.9"
    " x86_64-linux-gnu-gcc arm-none-eabi-g++ i686-w64-mingw32-cc musl-gcc /usr/bin/gcc"
)
WRITES = (
    "-o .git/x", "-o.git/x", "-pipe -o.git/x", "-Wno-error -o.git/x", "--output=.git/x",
    "--output .git/x", "-output-pch=.git/x", "-MD -MF .git/x", "-MD -MF.git/x", "-MJ .git/x",
    "-MJ.git/x", "-J .git", "-J.git", "-aux-info .git/x", "-aux-info=.git/x",
    "-save-temps -dumpdir .git/", "-save-temps -dumpbase .git/x", "-serialize-diagnostics .git/x",
    "--serialize-diagnostics .git/x", "-Xclang -dependency-file -Xclang .git/x",
    "-Xclang -dependency-dot -Xclang .git/x", "-Xclang -header-include-file -Xclang .git/x",
    "-fdump-tree-all=.git/x", "-fdump-final-insns=.git/x", "-fopt-info=.git/x",
    "-fopt-info-vec-missed=.git/x", "-fprofile-dir=.git", "-fprofile-note=.git/x",
    "-fprofile-generate=.git", "-fprofile-instr-generate=.git/x", "-fcs-profile-generate=.git",
    "-foptimization-record-file=.git/x", "-ftime-trace=.git/x", "-fmodule-output=.git/x",
    "-fmodules-cache-path=.git", "-fcrash-diagnostics-dir=.git", "-fdeps-file=.git/x",
    "-Xclang -index-store-path=.git", "-fdiagnostics-add-output=sarif:file=.git/x",
    "-fdiagnostics-set-output=sarif:version=2.1,file=.git/x", "-Wl,-o,.git/x", "-Wl,-o.git/x",
    "-Wl,-Map=.git/x", "-Wl,-Map,.git/x", "-Wl,-map,.git/x", "-Wl,--out-implib,.git/x",
    "-Wl,--output-def=.git/x", "-Wl,-dependency_info,.git/x", "-Wl,-object_path_lto,.git/x",
    "-Wl,--reproduce=.git/x", "-Wl,--lto-obj-path=.git/x", "-Wl,--time-trace-file=.git/x",
    "-Xlinker -Map -Xlinker .git/x", "-Wa,-a=.git/x", "-Wa,-alh=.git/x", "-Wa,--MD,.git/x",
    "-Xassembler -o -Xassembler .git/x", "-Wp,-MD,.git/x", "-Wp,-MMD,.git/x",
    "-Xpreprocessor -MD -Xpreprocessor .git/x",
)  # fmt: skip
RUNS = (
    "@src/a", "-Wl,@src/a", "-B src/", "-Bsrc/", "-B/usr/../tmp/x", "--prefix=src/",
    "-fplugin=./x.so", "-fplugin=x.so", "-fplugin=/tmp/x.so", "-fpass-plugin=./x.so",
    "-iplugindir=src/b", "-fuse-ld=./x", "--ld-path=src/x", "-specs=src/x.specs", "-specs ./a",
    "--specs=./a", "-Wl,-plugin,./x.so", "-Wl,-plugin=x.dylib", "-Xlinker --plugin=./x.dll",
    "-Xclang -load -Xclang ./x.so", "-Wl,--load-pass-plugin=./x.so", "--config=src/a",
    "--config ./a", "'-fmodule-mapper=|id'", "--gcc-toolchain=./a", "--gcc-install-dir=./a",
    "--ptxas-path=./a", "-Wl,--error-handling-script=./a", "-wrapper rm,-rf,.git",
    "-wrapper sh,-c,'rm -rf .git'", "--wrapper rm,-rf,.git", "-mllvm -load=./x.so",
)  # fmt: skip
FINE = (
    "gcc -o build/x src/a.c",
    "gcc -Wall -Wno-error -O2 -g -pipe -std=c11 -Iinclude -DX=1 -MMD -MF build/x.d -c a.c -o x.o",
    "gcc -fdump-tree-all -fdump-ipa-inline=stderr -fdump-tree-original=stdout -c a.c",
    "gcc -fopt-info-vec=- -c a.c",
    "gcc -save-temps=obj -o build/x a.c",
    "gcc -E a.c -o -",
    "gcc -B/usr/libexec/mold -fuse-ld=mold a.c",
    "gcc -shared -fPIC -Wl,-soname,libx.so.1 -Wl,-Bstatic -o libx.so a.c",
    "gcc -Wl,-rpath,/usr/lib,-Map=build/x.map a.c",
    "gcc -fplugin=annobin -fplugin=/usr/lib/gcc/x/plugin/a.so a.c",
    "gcc -fplugin=/opt/x.so -fpass-plugin=/lib64/x.so -fplugin=/nix/store/a/x.so a.c",
    "clang -fplugin=/Library/x.dylib -B/Applications/Xcode.app/usr/bin a.c",
    "arm-none-eabi-gcc --specs=nano.specs -specs=nosys.specs -T link.ld -o x.elf a.c",
    "clang -Wl,-rpath,@loader_path/../lib -install_name @rpath/a.dylib -o x a.c",
    "clang -Wl,-rpath,@executable_path a.c",
    "clang -fsanitize=address -o /dev/null a.c",
    "gcc -wrapper valgrind,-q a.c",
    "gcc -wrapper gdb,--args a.c",
    "gcc --version",
    "gcc -print-search-dirs",
    "cpp -I include -D A a.c",
    "cpp -include /etc/a.h a.c",
    "cpp -MT x -MQ y -x c a.c build/a.i",
    "cpp a.c -o build/a.i",
    "as -o build/a.o a.s",
    "ld -Bdynamic -plugin /usr/lib/x.so -o build/x a.o",
    "gcc @ a.c",
)
OTHERS = (
    "cpp a.c .git/x",
    "cpp -I src a.c .git/x",
    "cpp -U X a.c .git/x",
    "as -o .git/x a.s",
    "as -a=.git/x a.s",
    "as --MD .git/x a.s",
    "x86_64-elf-as -o.git/x a.s",
    "ld -o .git/x a.o",
    "ld -Map=.git/x a.o",
    "ld -Map .git/x a.o",
    "ld.gold -o .git/x a.o",
    "ld.lld -o .git/x a.o",
    "ld.bfd -o .git/x a.o",
    "ld.mold -o .git/x a.o",
    "ld -plugin ./x.so a.o",
    "llvm-strip .git/x",
    "arm-none-eabi-strip .git/x",
    "llvm-objcopy-15 a .git/x",
    "gcc-ar rcs .git/x a.o",
    "llvm-ranlib .git/x",
)


@pytest.mark.parametrize("compiler", COMPILERS)
def test_compiler_is_recognized_under_each_name(compiler: str, project: str) -> None:
    """A compiler is recognized with a version, a target prefix or a path."""
    commands = [f"{compiler} -MF .cuggino.json a.c", f"{compiler} -o.git/x a.c"]
    assert [] == allowed(commands, Policy(project, level="roles"))
    assert [] == denied([f"{compiler} -o src/x a.c"], Policy(project, level="roles"))


def test_compiler_outputs_are_checked(project: str) -> None:
    """Every output option is checked, including those of programs the compiler starts."""
    commands = [f"clang {option} -c a.c" for option in WRITES]
    commands += OTHERS
    assert [] == allowed(commands, Policy(project, level="roles"))
    listed = Policy(project, extra_commands=("clang",))
    assert [] == allowed(commands[: len(WRITES)], listed)


def test_compiler_may_write_in_the_project(project: str) -> None:
    """The same options may write unprotected files."""
    options = [option.replace(".git", "src/b") for option in WRITES]
    policy = Policy(project, level="roles")
    assert [] == denied([f"clang {option} -c a.c" for option in options], policy)


def test_compiler_runs_only_installed_code(project: str) -> None:
    """Libraries and programs of the tree, and option files that were not checked, are denied."""
    commands = [f"gcc {option} a.c" for option in RUNS]
    assert [] == allowed(commands, Policy(project, level="roles"))
    assert [] == allowed(commands, Policy(project, extra_commands=("gcc",)))


def test_common_compiler_calls_are_allowed(project: str) -> None:
    """Printing a file and names that only resemble options are allowed."""
    assert [] == denied(FINE, Policy(project, level="roles"))


def test_unknown_target_is_allowed_only_for_an_implementer(project: str) -> None:
    """A restricted role needs a known target, and so does anything that is run."""
    commands = [
        'gcc -o "$out" "$src"',
        "gcc $(pkg-config --cflags x) -o build/x a.c",
        'gcc -Wl,-Map,"$m" a.c',
        'gcc -B "$d" a.c',
    ]
    implementing = role_policy("implementing", project=Path(project), level="roles")
    assert [] == denied(commands, implementing)
    limited = Policy(project, level="roles", writable=("build",), role="planning")
    assert [] == allowed(commands, limited)
    assert "" == reason_of("gcc -c a.c -o build/x", limited)
    assert reason_of('gcc -wrapper "$x" a.c', implementing)


def test_read_only_role_may_only_check_with_a_compiler(project: str) -> None:
    """Without an output name the result would be written to the current folder."""
    limited = Policy(project, level="roles", writable=(), role="planning")
    looks = words("-E -M -MM -fsyntax-only -### --version -dumpmachine -print-libgcc-file-name")
    assert [] == denied((f"gcc {option} a.c" for option in looks), limited)
    assert [] == allowed(["gcc a.c", "gcc -c a.c", "clang -S a.c"], limited)
    assert "" == reason_of("gcc", limited)
