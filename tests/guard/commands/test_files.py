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
MORE = (
    *("gcc -o .git/x a.c", "tar xf a.tar -C .git", "sort -o .git/x a", "uniq a .git/x"),
    *("git checkout main -- .specs", "curl -so .git/x u", "wget -O .git/x u", "tsc --outDir .git"),
    *("gem install --install-dir /etc x", "gem install -i /etc x", "pip install -t /etc x"),
    *(
        "python -m pip install --target=/etc x",
        "npm --prefix /etc install",
        "cargo install --root /",
    ),
    *("make install DESTDIR=/opt", "uv pip install --target /etc x", "pytest --basetemp=/etc/x"),
    *("bundle install --bindir=/etc", "yarn --modules-folder /etc", "go build -o /etc/x"),
    *("unzip a -d /etc", "black .git/x.py", "echo x > .git/$f", 'rm -rf "$HOME/x"'),
)
OBSCURE = (
    *("dd of=.git/x", "awk '{print > \".git/x\"}' a", "vim -es -c wq .git/config", "PATH=. ls"),
    *("python -c \"open('.git/x', 'w')\"", 'f=.git/x; echo > "$f"', "rsync -a a .git"),
)
LINKS = (
    *("rm link", "rm -f ./link", "unlink link", "mv link src/link", "mv src/a file", "rm file"),
    *("ln -sfn src link", "ln -sfT src link", "ln -sf src/a file"),
    *("git rm link", "rm -r link loop", "ln -s ../docs src/docs", "ln -s nowhere src/x"),
    *("ln -s x y && rm y", "rm loop", "cp src/a new"),
)
THROUGH = (
    *("rm -r link/", "rm link/x", "rm -rf link/*", "mv src/a link/", "mv link/x a", "cp a link"),
    *(
        "ln -sf src link",
        "mv src/a link",
        "ln -sf src link/../x",
        "ln -s /etc x",
        "ln -st . /etc",
        "ln -s ../../up src/x",
        "ln /etc/x a",
    ),
    *("echo x > link", "echo x > file", "mv src/a link/x", "tee file", "ln -s ../.git src/x"),
    *("ln -s ../../gone x && echo y > x", "rmdir link/x", "ln -s $PWD/a /etc/x", "ln -sr ../up x"),
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a project with specifications."""
    folder = make_project(tmp_path_factory.mktemp("direct") / "home" / "project")
    (folder / ".specs").mkdir()
    (folder / "link").symlink_to("/etc")
    (folder / "file").symlink_to("/etc/hosts")
    (folder / "loop").symlink_to("loop")
    (folder.parent / "up").mkdir()
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


def test_options_that_name_an_output_are_explained(project: Path) -> None:
    """So are the files and folders that programs write by an option."""
    policy = implementing(project)
    assert [*MORE] == [command for command in MORE if reason_of(command, policy)]


def test_a_link_is_removed_or_replaced_itself(project: Path) -> None:
    """What acts on a link may do so wherever it leads; what goes through it is judged there."""
    policy = implementing(project)
    assert [] == [command for command in LINKS if reason_of(command, policy)]
    assert [*THROUGH] == [command for command in THROUGH if reason_of(command, policy)]
    full = Policy(str(project), allow_destructive=True, extra_commands=("extended", "unlink"))
    assert [] == [command for command in LINKS if reason_of(command, full) and "git" not in command]
    assert [*THROUGH] == [command for command in THROUGH if reason_of(command, full)]


def test_paths_are_left_to_a_sandbox_that_confines_the_session(project: Path) -> None:
    """Then actions alone are judged."""
    policy = implementing(project)._replace(confined=True)
    commands = (*(write.format(".git/x") for write in WRITES), *MORE, *THROUGH, *ELSEWHERE)
    assert [] == [command for command in commands if reason_of(command, policy)]
    own = policy._replace(protected=(*policy.protected, "verdicts-1.log"))
    assert reason_of("echo x >> /tmp/a/verdicts-1.log", own)
    assert reason_of("rm -f /tmp/a/verdicts-1.log", own)
    assert "" == reason_of("echo x > .git/x && rm -rf .specs", own)
    acts = ("git push", "npm publish", "git reset --hard", "gh repo delete x", "git stash drop")
    assert [*acts] == [command for command in acts if reason_of(command, policy)]


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
