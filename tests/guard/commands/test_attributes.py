"""Attributes of a protected file are protected too."""

from __future__ import annotations

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from tests.guard.commands.listed import allowed, denied

CHANGES = (
    "chattr +i {0}", "chattr -i {0}", "chattr =i {0}", "chattr -R +i {0}", "chattr -V -ia {0}",
    "chattr -p 5 {0}", "chattr -v 5 {0}", "chattr -f +i src/a {0}", "chflags uchg {0}",
    "chflags -R nouchg src/a {0}", "setfacl -b {0}", "setfacl -k {0}", "setfacl -nb {0}",
    "setfacl -m u:x:rw {0}", "setfacl -mu:x:rw {0}", "setfacl -x u:x {0}", "setfacl -M src/a {0}",
    "setfacl -X src/a {0}", "setfacl --modify=u:x:rw {0}", "setfacl --modify u:x:rw {0}",
    "setfacl --remove u:x {0}", "setfacl --set u::rw {0}", "setfacl --set-file src/a {0}",
    "setfacl --modify-file src/a {0}", "setfacl --remove-file src/a {0}",
    "setfacl --remove-all {0}", "setfacl -R -m u:x:rw {0}", "setfattr -n user.x -v y {0}",
    "setfattr -x user.x {0}", "setfattr --name user.x --value y {0}", "setfattr --remove a {0}",
    "xattr -w a b {0}", "xattr -d a {0}", "xattr -c {0}", "xattr -rc src/a {0}", "ranlib {0}",
)  # fmt: skip
UNSEEN = words("setfacl,--restore=a setfacl,--restore,a setfattr,--restore=a setfacl,-b,-")
COMPILES = (
    "cd .git && file -C",
    "file -C -m .git/x",
    "file -Cm .git/x",
    "file -m src/a:.git/x -C",
    "file --compile --magic-file=.git/x",
    "file --compile --magic-file .git/x",
    "file -P bytes=1 -e elf -F : -f src/a -C -m .git/x",
    "cd .git && file -C -m ../src/a",
)
FINE = (
    "setfacl --test -m u:x:rw .cuggino.json",
    "xattr .cuggino.json",
    "xattr -l .cuggino.json",
    "xattr -p a .git/x",
    "getfacl .cuggino.json",
    "lsattr .git",
    "file .cuggino.json",
    "file -b --mime-type .git/x",
    "file -m .git/x src/a",
    "file -C",
    "file -C -m src/magic",
)


def test_changing_attributes_needs_write_permission(project: str) -> None:
    """Flags, access lists and extended attributes are writes, whichever option changes them."""
    policy = Policy(project, level="roles")
    for place in (".cuggino.json", ".git", ".git/hooks/x"):
        assert [] == allowed((command.format(place) for command in CHANGES), policy)
    assert [] == denied((command.format("src/b") for command in CHANGES), policy)


def test_unseen_lists_of_files_are_denied(project: str) -> None:
    """Files that are named only by a backup or by standard input cannot be checked."""
    commands = [command.replace(",", " ") for command in UNSEEN]
    assert [] == allowed(commands, Policy(project, level="roles"))


def test_file_writes_only_when_it_compiles(project: str) -> None:
    """`file` writes only when compiling: beside the source or in the current folder."""
    policy = Policy(project, level="roles")
    assert [] == allowed(COMPILES, policy)
    assert [] == denied(FINE, policy)


def test_unknown_flags_pass_with_full_write_permission(project: str) -> None:
    """A role with restricted writes must spell its flags out."""
    command = 'setfacl -m "$acl" docs/a "$f"'
    assert [] == denied([command], Policy(project, level="roles"))
    limited = Policy(project, level="roles", writable=("docs",), role="planning")
    assert [] == allowed([command, 'chflags x "$f"', 'xattr -c "$f"'], limited)
