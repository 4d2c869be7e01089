"""Options and subcommands that write a file or start a program in less known ways."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.judging import reason_of

EXTRA = ("extended", "rsync", "wget", "sqlite3")
WRITES_ELSEWHERE = (
    "git merge-file .cuggino.json src/a src/b",
    "git merge-file -L a -q ../x src/a src/b",
    "git merge-file --ours .git/hooks/pre-commit src/a src/b",
    "git interpret-trailers --in-place --trailer a=b .cuggino.json",
    "git interpret-trailers --in-pl --trailer 'a: b' src/a /etc/passwd",
    "git interpret-trailers --where end --in-place .autonoe/status.json",
    "git fast-export --export-marks .cuggino.json HEAD",
    "git blame --output .git/hooks/x src/a",
    "git annotate --output .git/hooks/x src/a",
    "git stash show -p --output .git/hooks/x",
    "git merge-tree --output .git/x a b",
    "tar -xf a.tar --one-top-level=/etc/x",
    "tar xf a.tar -C src --one-top=.git/hooks",
    "rsync -r --delete-after src/ ./",
    "rsync -r --delete-excluded src/ ./",
    "rsync -r --del src/ ./",
    "rsync -r --remove-source-files ./ /tmp/x",
    "rsync -r --remove-sent-files .git /tmp/x",
    "rsync -r --write-batch=.git/hooks/x src/ bin",
    "rsync -r --only-write-batch .git/hooks/x src/ bin",
    "wget --rejected-log=.git/config http://localhost/a",
    "wget --hsts-file .cuggino.json http://localhost/a",
    "zip a.zip src/a -O .cuggino.json",
    "zip a.zip src/a -rO .cuggino.json",
    "zip a.zip src/a --out .cuggino.json",
    "zip a.zip src/a --output-file=.cuggino.json",
    "zip a.zip src/a -lf .cuggino.json",
    "zip a.zip src/a --logfile-path=.cuggino.json",
    "awk -F: -i inplace '{print}' .git/config",
    "gawk -v x=1 -i inplace '{print}' .git/config",
    "gawk -v x=1 --include inplace '{print}' .git/config",
    "gawk -i inplace -e '{print}' .git/config",
    "gawk -i inplace -f src/a .git/config",
    "fd . src -Hx rm -rf .git",
    "fd . src -HX rm -rf .git",
    "fd . src -HIx rm -rf .git",
    "sqlite3 :memory: \"select writefile('.git/hooks/pre-commit','x')\"",
    "sqlite3 src/a.db 'ATTACH \".cuggino.json\" AS y; create table y.t(a)'",
    "sqlite3 :memory: 'VACUUM INTO \".cuggino.json\"'",
    "sqlite3 :memory: 'vacuum main into \".cuggino.json\"'",
    "sqlite3 .git/x.db 'select 1; create table a(b)'",
    "sqlite3 src/a.db '.out .git/x'",
    "sqlite3 src/a.db '.onc .git/x'",
    "sqlite3 src/a.db '.sav .git/x'",
    "gawk -o.git/x 1 src/a",
    "gawk -p.git/x 1 src/a",
    "gawk -d.git/x 1 src/a",
    "gawk --profile=.git/x 1 src/a",
    "gawk --pretty-print=.git/x 1 src/a",
    "gawk --dump-variables=.git/x 1 src/a",
    "gawk -W profile=.git/x 1 src/a",
    "gawk -Wprofile=.git/x 1 src/a",
    "tar -xf a.tar --transform 's,^,.git/,'",
    "tar -xf a.tar --xform=s,^,.git/hooks/,",
)
STARTS_UNSEEN = (
    "sqlite3 src/a.db '.sh id'",
    "sqlite3 src/a.db '.sys id'",
    "sqlite3 src/a.db '.load src/a'",
    "sqlite3 src/a.db '.once |sh' 'select 1'",
    "sqlite3 src/a.db '.out |sh'",
    "sqlite3 src/a.db '.import \"|id\" t'",
    "sqlite3 src/a.db '.excel'",
    "sqlite3 src/a.db 'select writefile(a, b) from t'",
    "fd . src -Hxrm",
    "fd . src --exec=rm",
    "gawk -l ./x.so 1",
    "gawk -l./x.so 1",
    "gawk --load=./x.so 1",
)
RUNS_IT_ALL_THE_SAME = (
    "bash +x -c 'rm -rf .git'",
    "bash +O extglob -c 'rm -rf .git'",
    "bash -c +x 'rm -rf .git'",
    "sh -c - 'rm -rf .git'",
    "sh +x src/a.sh",
    "busybox sh +x -c 'rm -rf .git'",
    "env - rm -rf .git",
    "env -i - rm -rf .git",
    "gawk -i inplace '{system(\"rm -rf .git\")}' src/a",
    "git bugreport -o .git",
    "git diagnose -o .git",
    "git mailinfo .git/x .git/y",
    "git mailsplit -o.git x",
    "git index-pack -o .git/x a.pack",
    "git pack-objects .git/x",
    "zstd src/a -o .git/x",
    "zstd src/a -o.git/x",
)
EDITS = (
    *(f"{name} .git/config" for name in words("ed ex vi vim nvim nano pico emacs sponge indent")),
    *(f"{name} .git/x" for name in words("dos2unix unix2dos mac2unix unix2mac ranlib fallocate")),
    "vim -es -c wq .git/config",
    "vim -S src/a -u NONE -T dumb .git/x",
    "vim -U x -t tag .git/x",
    "vim --cmd x +wq .git/config",
    "vim -w .git/x src/a",
    "vim -W .git/x src/a",
    "vim -i .git/x src/a",
    "nano -l .git/x",
    "nano -r 80 -T 4 -s spell -o . .git/x",
    "nano -Y sh -C src -Q x -X y -J 80 .git/x",
    "emacs --batch -l src/a.el -f save .git/x",
    "emacs -L src -T title -t tty -d :0 --eval x --load y --chdir src .git/x",
    "ed -s -p % .git/x",
    "ed --prompt % .git/x",
    "fallocate -l 1 -o 0 .git/x",
    "fallocate --length 1 --offset 2 .git/x",
    "dos2unix -c mac -D x .git/x",
    "dos2unix --convmode mac --display-enc x -n a .git/x",
    "ctags -f .git/x",
    "ctags -R -o .git/x src",
    "ctags -h .h -L src/a -I X --options x -f.git/x",
    "less -o .git/x src/a",
    "less -O.git/x src/a",
    "less -p x -P y -j 9 -k z -t t -T T -x 8 -y 9 -z 9 -b 9 -h 9 '-#' 9 -O .git/x src/a",
    "mktemp .git/XXXX",
    "mktemp -d .git/XXXX",
    "mktemp -p .git",
    "mktemp -p.git x.XXX",
    "mktemp --tmpdir=.git x.XXX",
    "mktemp --suffix .x .git/x.XXX",
    "ar rcs .git/x.a a.o",
    "ar -rcs .git/x.a a.o",
    "ar d .git/x.a a.o",
    "ar m .git/x.a a.o",
    "ar q .git/x.a a.o",
    "ar s .git/x.a",
    "ar ra b.o .git/x.a a.o",
    "ar rb b.o .git/x.a a.o",
    "ar ri b.o .git/x.a a.o",
    "ar --target=x r .git/x.a a.o",
    "cd .git && ar x ../src/x.a",
)
"""Programs that edit their operand, with the options before it."""
LOOKS = (
    "less -R .git/config",
    "mktemp",
    "mktemp -d",
    "mktemp -t .git/x.XXX",
    "mktemp -u .git/x.XXX",
    "mktemp --dry-run .git/x.XXX",
    "mktemp /tmp/x.XXX",
    "ar t .git/x.a",
    "ar p .git/x.a a.o",
    "ar",
    "ar x .git/x.a",
    "ar rcs src/x.a .git/a.o",
    "ctags -f - src",
    "ex -s +wq src/a",
    "vim +.git/x src/a",
    "gawk -o 1 .git/x",
    "gawk -l filefuncs 1 .git/x",
    "gawk -W posix 1 .git/x",
    "gawk -dx 1 .git/x",
    "gawk -Lfatal 1 .git/x",
    "gawk -D.git/x 1",
    "tar -xf a.tar --transform s,^,src/,",
    "zstd src/a -o src/b",
    "zstd -c .git/x",
)
FINE = (
    "git merge-file -p .cuggino.json src/a src/b",
    "git merge-file src/x src/a src/b",
    "git interpret-trailers --trailer 'a: b' src/a",
    "git interpret-trailers --in-place --trailer 'a: b' src/a",
    "git fast-export --all",
    "git blame -L 1,2 src/a",
    "tar -xf a.tar --one-top-level",
    "tar -xf a.tar --one-top-level=src/b",
    "rsync -r --delay-updates src/ bin",
    "rsync -r --delete src/ bin",
    "rsync -r --remove-source-files src/ bin",
    "wget --rejected-log=/tmp/log -O src/a http://localhost/a",
    "zip -r a.zip src",
    "zip -qr a.zip src -x src/o",
    "fd -tx . src",
    "fd -ex . src",
    "fd -HI . src -x grep a",
    "fd . src -HX grep a",
    "gawk -v x=1 -i inplace '{print}' src/a",
    "awk -F: '{print $1}' src/a",
    "sqlite3 .git/x.db 'select 1;'",
    "sqlite3 src/a.db \"select writefile('src/b', data) from t\"",
    "sqlite3 src/a.db '.out src/b' 'select 1'",
    "sqlite3 src/a.db '.explain on'",
    "env -i ls",
    "env - ls",
)


@pytest.mark.parametrize("command", [*WRITES_ELSEWHERE, *STARTS_UNSEEN])
def test_denied_although_the_program_is_listed(command: str, project: str) -> None:
    """An allowed program may still not write or start everything."""
    assert reason_of(command, Policy(project, extra_commands=EXTRA, allow_destructive=True))


@pytest.mark.parametrize(
    "command", [*WRITES_ELSEWHERE, *STARTS_UNSEEN, *RUNS_IT_ALL_THE_SAME, *EDITS]
)
def test_denied_where_any_program_may_run(command: str, project: str) -> None:
    """It is also denied at the level without an allowlist."""
    assert reason_of(command, Policy(project, level="roles"))


@pytest.mark.parametrize("command", [*FINE, *LOOKS])
def test_harmless_variant_is_allowed(command: str, project: str) -> None:
    """Options that write nothing, or only in the project, are allowed."""
    policy = Policy(project, level="roles")
    assert "" == reason_of(command, policy)


@pytest.mark.parametrize(
    "command",
    ["git merge-file src/x src/a src/b", "git interpret-trailers --in-place src/a"],
)
def test_read_only_roles_may_not_write_by_git(command: str, project: str) -> None:
    """A planning role and a verifying session may not change the project's files."""
    planning = Policy(project, level="roles", writable=(), role="planning")
    assert reason_of(command, planning)
    assert reason_of(command, Policy(project, mode="sync"))
