"""Level `roles`: everyday writes with their target spelled out."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy
from tests.guard.judging import make_project, reason_of

WRITES = (
    *("echo x > {0}", "echo x >> {0}", "echo x >| {0}", "ls &> {0}", "ls 2> {0}", ": > '{0}'"),
    *("rm {0}", "rm -rf {0}", "mv a {0}", "mv {0} a", "mv -t {0} a", "cp a {0}", "cp -r a b {0}"),
    *("cp -t {0} a", "ln -s a {0}", "ln {0} a", "sed -i s/a/b/ {0}", "sed -i.bak -e s/a/b/ {0}"),
    *("sed --in-place s/a/b/ {0}", "tee {0}", "tee -a {0} b", "touch {0}", "touch -d now {0}"),
    *("mkdir {0}/new", "mkdir -p {0}/new", "chmod 600 {0}", "truncate -s 0 {0}", "install a {0}"),
    *("cd src && rm ../{0}", "sudo tee {0}", "find . -exec cp a {0} \\;", "bash -c 'rm {0}'"),
    *("rm -rf {0}/*", "xargs rm {0}"),
)
PROTECTED = (".specs", ".git/config", ".cuggino.json", ".claude/settings.json", ".autonoe/x")
ELSEWHERE = ("rm -rf ~", "rm -rf /", "rm -rf *", "rm -rf .", "echo x > ../a", "cp a /etc/b",
             "echo x >> ~/.bashrc", "mv a ..", "rm -rf ../other", "touch /opt/x")  # fmt: skip
FINE = (
    *("cat .specs/a.md", "sed -n 1,5p .git/config", "sed s/a/b/ .specs/a.md", "ls > src/out"),
    *("cp .specs/a.md src", "rm -rf build", "rm src/*.ts", "mkdir -p src", "tee /tmp/x", "ls 2>&1"),
    *(
        'echo x > "$f"',
        'rm -rf "$d"',
        "cd $d && rm a",
        "ls >&2",
        "ls > /dev/null",
        "touch -r .git a",
    ),
)
OBSCURE = (
    *("gcc -o .git/x a.c", "tar xf a.tar -C .git", "dd of=.git/x", "awk '{print > \".git/x\"}' a"),
    *("python -c \"open('.git/x', 'w')\"", "vim -es -c wq .git/config", "sort -o .git/x a"),
    *("git checkout main -- .specs", 'f=.git/x; echo > "$f"', "rsync -a a .git", "PATH=. ls"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a project with specifications."""
    folder = make_project(tmp_path_factory.mktemp("direct") / "home" / "project")
    (folder / ".specs").mkdir()
    return folder


def implementing(project: Path) -> Policy:
    return role_policy("implementing", project=project, level="roles")


@pytest.mark.parametrize("place", PROTECTED)
def test_writes_to_protected_paths_are_explained(place: str, project: Path) -> None:
    """Redirections and everyday programs that name a protected path are denied at once."""
    commands = [write.format(place) for write in WRITES]
    policy = implementing(project)
    assert [] == [command for command in commands if not reason_of(command, policy)]


def test_writes_outside_the_project_are_explained(project: Path) -> None:
    """Nothing outside the project is written, and the project itself is not removed."""
    policy = implementing(project)
    assert [] == [command for command in ELSEWHERE if not reason_of(command, policy)]


def test_the_same_programs_work_elsewhere(project: Path) -> None:
    """Reading, other files, and targets that are known only at run time are allowed."""
    policy = implementing(project)
    assert [] == [command for command in FINE if reason_of(command, policy)]


def test_what_is_not_obvious_is_left_to_the_sandbox(project: Path) -> None:
    """The sandbox prevents other writes, or verification undoes them."""
    policy = implementing(project)
    assert [] == [command for command in OBSCURE if reason_of(command, policy)]


def test_roles_that_only_look(project: Path) -> None:
    """A reviewer may write its review and scratch files, and no other file."""
    review = project / ".cuggino" / "wip" / "x.review.md"
    policy = role_policy("reviewing", project=project, level="roles", review=review)
    fine = (f"cat a > {review}", "pytest > /tmp/out", "mkdir -p src", "npm test", "git diff")
    assert [] == [command for command in fine if reason_of(command, policy)]
    writes = ("echo x > src/a", "rm src/a", "sed -i s/a/b/ src/a", "touch a", "git commit -m x")
    assert [] == [command for command in writes if not reason_of(command, policy)]
