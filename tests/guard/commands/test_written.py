"""Options and subcommands that write a file or start a program in less known ways."""

from __future__ import annotations

import pytest

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
    "tar xf a.tar -C src --one-top=.git/hooks",
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
    "fd . src -Hxrm",
    "fd . src --exec=rm",
    "gawk -l ./x.so 1",
    "gawk -l./x.so 1",
    "gawk --load=./x.so 1",
)
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


@pytest.mark.parametrize("command", [*FINE, *LOOKS])
def test_harmless_variant_is_allowed(command: str, project: str) -> None:
    """Options that write nothing, or only in the project, are allowed."""
    policy = Policy(project, level="roles")
    assert "" == reason_of(command, policy)
