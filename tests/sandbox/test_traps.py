"""Ways out of a view, and ways in which a view could break honest work; each was once seen."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path

import psutil
import pytest

from cuggino.sandbox import ROWS, Boundary, ViewRole, role_view
from tests.limits import LIMIT
from tests.sandbox.arena import PROTECTED, Arena, enclosed_as_other, needs_bubblewrap

Run = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def boundary(tmp_path: Path) -> Boundary:
    return needs_bubblewrap(tmp_path)


@pytest.fixture
def arena(tmp_path: Path) -> Arena:
    return Arena(tmp_path / "arena")


@pytest.fixture(params=["own", "other"])
def run(request: pytest.FixtureRequest, boundary: Boundary, arena: Arena) -> Run:
    """Run a command in the view of a role, as this user and as an ordinary one."""
    if request.param == "own":
        return lambda role, command: arena.run(boundary, role, command)
    return lambda role, command: arena.run_in(enclosed_as_other(arena, role), command)


_ESCAPES = """
umount .specs; umount -l .specs; mount -o remount,rw,bind .specs
mount -o remount,rw,bind / ; mount --bind /tmp .specs && echo x > .specs/zz
unshare -Urm bash -c 'umount -l .specs; mount -o remount,rw,bind .specs; echo x > .specs/zz'
unshare -Urm bash -c 'mkdir -p /tmp/m; mount -o rbind / /tmp/m && echo x > /tmp/m/$PWD/.specs/zz'
ln .specs/a.md src/hard && echo x >> src/hard
ln -s ../.specs/a.md src/soft; echo x > src/soft
echo z > /proc/1/root/$PWD/.specs/zz; echo x > /proc/self/cwd/.specs/zz
echo z > /proc/1/cwd/.specs/zz; chmod -R 777 .specs; chown -R 1234 .specs; touch .specs/a.md
setfattr -n user.x -v y .specs/a.md
mv .git old; mkdir .git; mv .claude old-claude; rm -rf .specs .claude .cuggino .git/hooks
python3 - <<'P'
import os, glob
for name in ("/proc/1/cwd/.specs/a.md", *glob.glob("/dev/vd*"), *glob.glob("/dev/sd*")):
    try: os.open(name, os.O_RDWR); print("OPENED", name)
    except OSError: pass
P
grep CapEff /proc/self/status
"""


@pytest.mark.parametrize("role", ["implementing", "reviewing"])
def test_nothing_leads_out_of_the_view(arena: Arena, run: Run, role: ViewRole) -> None:
    """Neither mounts, namespaces, links, other processes' folders nor devices reach the files."""
    names = PROTECTED if role == "implementing" else ["."]
    before = arena.state_of(names)
    times = (arena.project / ".specs/a.md").stat().st_mtime_ns
    done = run(role, _ESCAPES)
    assert before == arena.state_of(names), done.stderr
    assert times == (arena.project / ".specs/a.md").stat().st_mtime_ns
    assert "OPENED" not in done.stdout
    capabilities = int(done.stdout.rpartition("CapEff:")[2].split()[0], 16)
    assert not capabilities >> 21 & 1, "CAP_SYS_ADMIN"
    assert (arena.project / ".git/HEAD").exists()


@pytest.mark.skipif(os.getuid() != 0, reason="only root owns a project of several users")
def test_root_writes_files_of_others(arena: Arena, boundary: Boundary) -> None:
    """Root can write a project that another user owns, as one mounted into a container."""
    for path in (arena.project / "src", arena.project / "src/app.py"):
        os.chown(path, 1000, 1000)
        path.chmod(0o755 if path.is_dir() else 0o644)
    done = arena.run(boundary, "implementing", "echo x > src/app.py && echo y > src/new.py")
    assert 0 == done.returncode, done.stderr
    assert "x\n" == (arena.project / "src/app.py").read_text()


@pytest.mark.parametrize("role", ["implementing", "reviewing"])
def test_sandboxes_within_work(arena: Arena, run: Run, role: ViewRole) -> None:
    """Agents and browsers bring their own; they begin in the view and cannot widen it."""
    if shutil.which("bwrap") is None:
        pytest.skip("bubblewrap is not installed")
    before = arena.state_of([".specs"])
    done = run(
        role,
        "bwrap --unshare-all --die-with-parent --ro-bind / / --dev /dev "
        "sh -c 'cat src/app.py'; "
        "bwrap --unshare-user --bind / / sh -c 'echo x > .specs/a.md' 2>&1; true",
    )
    assert done.stdout.startswith('print("foo 2")\n'), done.stderr
    assert before == arena.state_of([".specs"])


def test_parents_of_the_specifications_cannot_be_renamed(arena: Arena, boundary: Boundary) -> None:
    """A new folder does not take the place of `docs/specs`; its siblings can be written."""
    arena.write({"docs/specs/a.md": "spec\n", "docs/guide.md": "guide\n"})
    before = arena.state_of(["docs/specs"])
    command = "mv docs x; mkdir -p docs/specs; mv docs/specs y; echo z > docs/specs/a.md"
    done = arena.run(
        boundary, "implementing", f"{command}; echo new > docs/guide.md", specs="docs/specs"
    )
    assert before == arena.state_of(["docs/specs"]), done.stderr
    assert not (arena.project / "x").exists()
    assert "new\n" == (arena.project / "docs/guide.md").read_text()


def test_a_worktree_keeps_its_repository(arena: Arena, boundary: Boundary, tmp_path: Path) -> None:
    """The `.git` file and the main repository's hooks and configuration hold; commits work."""
    main, place = arena.project, tmp_path / "linked"
    subprocess.run(
        ["git", "worktree", "add", "-q", "-b", "side", place], cwd=main, check=True, timeout=LIMIT
    )
    arena.project = place
    arena.folder = place / ".cuggino/wip/session"
    before = ((place / ".git").read_text(), (main / ".git/config").read_text())
    done = arena.run(
        boundary,
        "implementing",
        "echo 'gitdir: /tmp/evil' > .git; mv .git x; rm .git; git config user.name Evil; "
        f"touch {main}/.git/hooks/pre-commit {main}/src/z; echo x > src/app.py; "
        "git commit -qam linked && git log --format=%s -1",
    )
    assert before == ((place / ".git").read_text(), (main / ".git/config").read_text())
    assert not (main / ".git/hooks/pre-commit").exists()
    assert not (main / "src/z").exists()
    assert "linked\n" == done.stdout, done.stderr


def test_git_works_and_leaves_no_ghosts(arena: Arena, run: Run) -> None:
    """`git add --all` finds no placeholder, and nothing is left in the project's folder."""
    before = {path.name for path in arena.project.iterdir()}
    done = run(
        "implementing",
        "set -e; echo x > src/app.py; git add -A; git commit -qm work; git checkout -qb b; "
        "git mv src/util.py src/moved.py; git commit -qm moved; git checkout -q main; "
        "git merge -q b; git tag t; git gc -q; git stash list; git worktree add -q /tmp/w other; "
        "git worktree remove /tmp/w; git status --porcelain",
    )
    assert (0, "") == (done.returncode, done.stdout), done.stderr
    assert before == {path.name for path in arena.project.iterdir()}


def test_a_linked_folder_of_specifications_is_protected(arena: Arena, boundary: Boundary) -> None:
    """Nothing can be mounted on a link, so its target is protected; the link is verified later."""
    (arena.project / ".specs").rename(arena.project / "real")
    (arena.project / ".specs").symlink_to("real")
    before = arena.state_of(["real"])
    arena.run(boundary, "implementing", "echo x > .specs/a.md; rm -rf real; touch real/z")
    assert before == arena.state_of(["real"])


def test_submodules_keep_their_hooks(arena: Arena, boundary: Boundary) -> None:
    """Hooks and configuration of a submodule run with git commands in the project."""
    module = arena.project / ".git/modules/lib"
    subprocess.run(["git", "init", "-q", "--bare", module], check=True, timeout=LIMIT)
    before = arena.state_of([".git/modules/lib/hooks", ".git/modules/lib/config"])
    assert before
    arena.run(
        boundary,
        "implementing",
        "cd .git/modules/lib; echo x >> config; touch hooks/z; mv hooks h; cd ..; mv lib l",
    )
    assert before == arena.state_of([".git/modules/lib/hooks", ".git/modules/lib/config"])


def test_terminals_keep_their_session(arena: Arena, boundary: Boundary) -> None:
    """A new terminal session would take job control from interactive programs."""
    enclosure = boundary.enclose(arena.view("pm"))
    assert enclosure is not None
    assert "--new-session" not in enclosure.words
    assert "--die-with-parent" in enclosure.words


def test_sockets_of_the_machine_are_out_of_reach(arena: Arena, boundary: Boundary) -> None:
    """Sockets in folders for temporary files are hidden, abstract ones are refused."""
    import tempfile

    with (
        tempfile.TemporaryDirectory(dir="/tmp") as folder,
        closing(socket.socket(socket.AF_UNIX)) as named,
        closing(socket.socket(socket.AF_UNIX)) as abstract,
    ):
        named.bind(f"{folder}/s")
        named.listen()
        abstract.bind(f"\0{folder}")
        abstract.listen()
        code = (
            "import socket, sys\n"
            "for at in (f'{sys.argv[1]}/s', chr(0) + sys.argv[1]):\n"
            "    try: socket.socket(socket.AF_UNIX).connect(at); print('CONNECTED', repr(at))\n"
            "    except OSError as error: print(error.errno)"
        )
        done = arena.run(boundary, "reviewing", f'python3 -c "$CODE" {folder}', env={"CODE": code})
    assert "2\n" in done.stdout, done.stderr
    if boundary.overlay == "loader":
        assert "CONNECTED" not in done.stdout


@pytest.mark.parametrize("role", ROWS)
def test_sockets_of_services_are_hidden(arena: Arena, role: ViewRole) -> None:
    """Docker, D-Bus and the user's services would act outside of the view."""
    hidden = {str(path) for path in arena.view(role).hidden}
    assert {"/run/docker.sock", "/run/dbus", "/run/systemd", f"/run/user/{os.getuid()}"} <= hidden


def test_a_hidden_socket_that_is_shown(
    arena: Arena, boundary: Boundary, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """A project whose checks use Docker shows its socket, also one within a hidden folder."""
    services = tmp_path / "services"
    services.mkdir()
    monkeypatch.setattr("cuggino.sandbox.view.SOCKETS", (str(services),))
    address = str(services / "docker.sock")
    ask = f"import socket; socket.socket(socket.AF_UNIX).connect({address!r}); print('reached')"
    with socket.socket(socket.AF_UNIX) as server:
        server.bind(address)
        server.listen()
        for show, said in ((), ""), ((address,), "reached\n"):
            view = role_view("implementing", project=arena.project, home=arena.home, show=show)
            enclosure = boundary.enclose(view)
            assert enclosure is not None
            done = arena.run_in(enclosure, f'python3 -c "{ask}"')
            assert said == done.stdout, done.stderr


def test_files_handed_over_are_visible(arena: Arena, boundary: Boundary, tmp_path: Path) -> None:
    """The private folder for temporary files does not hide what the program must read.

    What is gone by the time that it starts, as a package that is being replaced, stops nothing.
    """
    prompt, package = tmp_path / "prompt.md", tmp_path / "package"
    prompt.write_text("the prompt")
    package.mkdir()
    view = arena.view("reviewing").with_program(visible=[prompt, package])
    enclosure = boundary.enclose(view)
    assert enclosure is not None
    package.rmdir()
    done = arena.run_in(enclosure, f"cat {prompt}; echo x > {prompt}; ls {tmp_path}")
    assert "the prompt" == prompt.read_text()
    assert done.stdout.startswith("the prompt")


@pytest.mark.parametrize("role", ["planning", "reviewing"])
def test_a_file_can_be_renamed_into_place(arena: Arena, run: Run, role: ViewRole) -> None:
    """Agents write a file beside the wanted one and rename it: this works in their own folder."""
    place = arena.folder.relative_to(arena.project)
    done = run(
        role, f"set -e; echo one > {place}/r.md; echo two > {place}/t; mv {place}/t {place}/r.md"
    )
    assert 0 == done.returncode, done.stderr
    assert "two\n" == (arena.folder / "r.md").read_text()


def test_tests_and_builds_work_and_vanish(arena: Arena, run: Run) -> None:
    """A role that looks writes in the project, replaces folders, and changes nothing."""
    before = arena.state_of(["."])
    done = run(
        "reviewing",
        "set -e; mkdir -p src/__pycache__ && touch src/__pycache__/x; rm -rf tests; mkdir tests; "
        "touch tests/y; ls tests; git stash -q; git checkout -q other; mv src lib; "
        "echo z > ~/.profile",
    )
    assert (0, "y\n") == (done.returncode, done.stdout), done.stderr
    assert before == arena.state_of(["."])
    assert not (arena.home / ".profile").exists()


def test_nothing_outside_is_written(arena: Arena, run: Run, tmp_path: Path) -> None:
    """Neither the system, the home folder nor other projects; state of the program stays."""
    other = tmp_path / "other"
    other.mkdir()
    run(
        "implementing",
        f"touch {other}/z /etc/z /var/z /usr/z ~/z /var/tmp/cuggino-z /tmp/cuggino-z; "
        "touch ~/.claude/z; touch src/z",
    )
    assert [] == list(other.iterdir())
    for path in ("/etc/z", "/var/z", "/usr/z", "/var/tmp/cuggino-z", "/tmp/cuggino-z"):
        assert not Path(path).exists()
    assert [".claude"] == [path.name for path in arena.home.iterdir()]
    assert (arena.state / "z").exists()
    assert (arena.project / "src/z").exists()


def test_named_paths_cannot_be_read(arena: Arena, boundary: Boundary) -> None:
    """`sandboxHide` keeps keys from every role."""
    (arena.home / ".ssh").mkdir()
    (arena.home / ".ssh/id").write_text("secret")
    (arena.home / ".netrc").write_text("secret")
    command = "cat ~/.ssh/id ~/.netrc; cp -r ~/.ssh src/"
    for role in ("implementing", "reviewing"):
        done = arena.run(boundary, role, command, hide=["~/.ssh", "~/.netrc"])
        assert "secret" not in done.stdout
    assert "secret" in arena.run(boundary, "implementing", command).stdout


def test_the_tree_ends_with_its_first_process(arena: Arena, boundary: Boundary) -> None:
    """Processes that left their session end with the namespace, not only with their parent."""
    enclosure = boundary.enclose(arena.view("reviewing"))
    assert enclosure is not None
    mark = f"7{os.getpid()}"
    command = f"for i in $(seq 20); do setsid sleep {mark} & done; echo up; wait"
    process = subprocess.Popen(
        enclosure.command(["bash", "-c", command]), cwd=arena.project, stdout=subprocess.PIPE
    )
    assert process.stdout is not None
    assert b"up\n" == process.stdout.readline()
    process.send_signal(signal.SIGKILL)
    process.wait(LIMIT)
    process.stdout.close()
    end = time.monotonic() + LIMIT
    while left := list(_running(mark)):
        assert time.monotonic() < end, left
        time.sleep(0.01)


def _running(mark: str) -> Iterator[int]:
    for process in psutil.process_iter(["cmdline"]):
        if mark in (process.info["cmdline"] or []):
            yield process.pid
