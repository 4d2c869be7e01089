"""Pushes of a real git: those that arrive, are refused, or hang; and the commits since another."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from reactivex import interval, operators as ops

import cuggino
from cuggino import run
from cuggino.events import CommitPerformed, PushFailed, PushPerformed
from cuggino.git import push_gist
from cuggino.stages import GitRepository, push_to
from cuggino.stages.repository import commits_since
from cuggino.testing import no_leaks
from tests.git_project import GitProject, commit, is_alive


@pytest.fixture
def remote(project: GitProject, tmp_path: Path) -> Path:
    """A bare repository that the project calls `origin`."""
    path = tmp_path / "remote.git"
    project.git("init", "--quiet", "--bare", str(path))
    project.git("remote", "add", "origin", str(path))
    return path


def pushed(
    project: GitProject, target: str = "origin/main", *, timeout: float = 60
) -> PushPerformed | PushFailed | None:
    """Run the push stage and return its outcome."""
    repository = GitRepository(project.root, timeout=timeout)
    return run(push_to(repository, target, "abc", iteration=2))


def refused(project: GitProject, target: str = "origin/main", *, timeout: float = 60) -> str:
    """The words of the push that fails."""
    event = pushed(project, target, timeout=timeout)
    assert isinstance(event, PushFailed)
    assert 2 == event.iteration
    return event.message


def make_commit(project: GitProject, name: str) -> str:
    """Commit a file; gives the hash of the commit."""
    project.write(name)
    assert isinstance(commit(project), CommitPerformed)
    return project.git("rev-parse", "HEAD").strip()


def ssh(project: GitProject, tmp_path: Path, script: str) -> str:
    """Make `origin` a host behind ssh; gives a program that plays ssh."""
    project.git("remote", "add", "origin", "ssh://host.invalid/x.git")
    program = tmp_path / "ssh"
    program.write_text(f"#!/bin/sh\n{script}\n")
    program.chmod(0o755)
    return str(program)


class TestPushed:
    @pytest.mark.parametrize("target", ["origin/main", "origin/feature/a-page"])
    def test_the_commit_arrives(self, project: GitProject, remote: Path, target: str) -> None:
        """The remote's branch is made, and then is the present commit; other branches are not."""
        for name in ("a", "b"):
            head = make_commit(project, name)
            expected = PushPerformed(iteration=2, commit_hash="abc", remote=target)
            assert expected == pushed(project, target)
            branch = target.partition("/")[2]
            refs = project.git("for-each-ref", "--format=%(refname) %(objectname)", cwd=remote)
            assert f"refs/heads/{branch} {head}\n" == refs

    def test_nothing_new_is_no_failure(self, project: GitProject, remote: Path) -> None:
        """A commit that the remote has already counts as pushed."""
        make_commit(project, "a")
        pushed(project)
        assert isinstance(pushed(project), PushPerformed)

    def test_a_later_push_brings_the_commit_along(self, project: GitProject, remote: Path) -> None:
        """After a push that failed the next one pushes both commits."""
        make_commit(project, "a")
        moved = remote.rename(remote.with_name("away.git"))
        assert refused(project)
        moved.rename(remote)
        make_commit(project, "b")
        assert isinstance(pushed(project), PushPerformed)
        assert "2\n" == project.git("rev-list", "--count", "main", cwd=remote)

    def test_a_detached_head(self, project: GitProject, remote: Path) -> None:
        """The current commit is pushed, even without a branch."""
        head = make_commit(project, "a")
        project.git("checkout", "--quiet", "--detach")
        assert isinstance(pushed(project), PushPerformed)
        assert head == project.git("rev-parse", "main", cwd=remote).strip()


class TestRefused:
    def test_a_rejection_is_not_forced(self, project: GitProject, remote: Path) -> None:
        """A remote with newer commits is left alone, and the event gives git's reason."""
        make_commit(project, "a")
        pushed(project)
        theirs = make_commit(project, "theirs")
        pushed(project)
        project.git("reset", "--quiet", "--hard", "HEAD~1")
        make_commit(project, "ours")
        assert "git push exited with code 1: [rejected] (non-fast-forward)" == refused(project)
        assert theirs == project.git("rev-parse", "main", cwd=remote).strip()

    def test_no_configuration_forces(self, project: GitProject, remote: Path) -> None:
        """A remote that is configured for forced pushes is not forced either."""
        project.git("config", "remote.origin.push", "+refs/heads/*:refs/heads/*")
        self.test_a_rejection_is_not_forced(project, remote)

    def test_the_words_of_the_remote(self, project: GitProject, remote: Path) -> None:
        """The message of a hook of the remote is reported."""
        hook = remote / "hooks/pre-receive"
        hook.write_text("#!/bin/sh\necho 'main is protected' >&2; exit 1\n")
        hook.chmod(0o755)
        make_commit(project, "a")
        assert (
            "git push exited with code 1: [remote rejected] (pre-receive hook declined)"
            " / remote: main is protected"
        ) == refused(project)

    def test_the_words_of_the_own_hook(self, project: GitProject, remote: Path) -> None:
        """The message of the project's own hook is reported."""
        project.hook("pre-push", "echo 'tests are red' >&2; exit 1")
        make_commit(project, "a")
        assert "git push exited with code 1: tests are red" == refused(project)

    def test_no_such_remote(self, project: GitProject) -> None:
        """A missing remote is reported by its name."""
        make_commit(project, "a")
        message = refused(project, "nowhere/main")
        assert message.startswith("git push exited with code 128: fatal: 'nowhere' does not")

    def test_no_commit_yet(self, project: GitProject, remote: Path) -> None:
        """Without a commit there is nothing to push, and git's reason is reported."""
        assert "error: src refspec HEAD does not match any" in refused(project)

    def test_no_git(
        self, project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """Without git a push is a `PushFailed` event, not an error."""
        monkeypatch.setenv("PATH", str(tmp_path / "empty"))
        assert "cannot start git" in refused(project)

    def test_credentials_are_not_shown(self) -> None:
        """User name and password of a URL are removed from git's messages."""
        said = "fatal: unable to access 'https://me:geheim@host/x.git/': nobody there"
        assert "fatal: unable to access 'https://host/x.git/': nobody there" == push_gist(said)

    def test_other_errors_stay_errors(self) -> None:
        """An error that is not git's is the error of the stage."""

        class Broken:
            def push(self, remote: str, branch: str) -> None:
                raise ZeroDivisionError(remote, branch)

        with pytest.raises(ZeroDivisionError):
            run(push_to(Broken(), "a/b/c", "abc", iteration=1))  # type: ignore[arg-type]


class TestHanging:
    def test_a_remote_that_hangs_is_ended(
        self, project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """At the timeout the push and its processes are ended."""
        program = ssh(project, tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600")
        monkeypatch.setenv("GIT_SSH_COMMAND", program)
        make_commit(project, "a")
        with no_leaks():
            assert "git push was ended after 5 s" == refused(project, timeout=5)
        assert not is_alive(int((tmp_path / "pid").read_text()))

    def test_disposal_ends_the_push(
        self, project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A push that is disposed leaves no process."""
        program = ssh(project, tmp_path, f"echo $$ > {tmp_path}/pid; sleep 600")
        monkeypatch.setenv("GIT_SSH_COMMAND", program)
        make_commit(project, "a")
        pushing = GitRepository(project.root).push("origin", "main")
        pid = tmp_path / "pid"
        at_work = interval(0.01).pipe(ops.filter(lambda _: pid.exists() and pid.read_text() != ""))
        with no_leaks():
            assert run(pushing.pipe(ops.take_until(at_work))) is None
        assert not is_alive(int((tmp_path / "pid").read_text()))

    def test_a_password_is_not_asked_for(
        self, project: GitProject, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """A remote that wants a password fails at once, even where a window would ask for it."""
        asking = tmp_path / "ask"
        asking.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked; sleep 600\n")
        asking.chmod(0o755)
        monkeypatch.setenv("GIT_ASKPASS", str(asking))
        monkeypatch.setenv("SSH_ASKPASS", str(asking))
        project.git("config", "core.askPass", str(asking))
        # A helper of git's own protocol that needs a password, as the one for HTTP does.
        helper = tmp_path / "git-remote-locked"
        helper.write_text(
            "#!/bin/sh\n"
            "printf 'protocol=https\\nhost=x.invalid\\n\\n' | git credential fill >&2 || exit 1\n"
            "echo 'fatal: the password is wrong' >&2; exit 1\n"
        )
        helper.chmod(0o755)
        monkeypatch.setenv("PATH", str(tmp_path), prepend=":")
        project.git("remote", "add", "origin", "locked::x")
        make_commit(project, "a")
        with no_leaks():
            assert "git push exited with code" in refused(project)
        assert not (tmp_path / "asked").exists()


# -- `commits_since`, with a real repository


def git(folder: Path, *words: str) -> str:
    command = ["git", "-C", str(folder), "-c", "user.name=n", "-c", "user.email=e@x", *words]
    return subprocess.check_output(command, text=True).strip()


def commit_in(folder: Path, subject: str) -> str:
    git(folder, "commit", "-q", "--allow-empty", "-m", subject)
    return git(folder, "rev-parse", "HEAD")


def since(folder: Path, base: str | None) -> list[list[str]]:
    found = cuggino.run(commits_since(folder, base))
    assert isinstance(found, list)
    return found


def test_what_is_behind_a_commit(tmp_path: Path) -> None:
    """The abbreviated hash and the subject of each, the oldest first."""
    git(tmp_path, "init", "-q")
    base = commit_in(tmp_path, "feat: a")
    first, second = commit_in(tmp_path, "fix: b\n\nlong text"), commit_in(tmp_path, "docs: ä c")
    found = since(tmp_path, base)
    assert ["fix: b", "docs: ä c"] == [subject for _, subject in found]
    for full, (short, _) in zip((first, second), found, strict=True):
        assert full.startswith(short)
    assert [] == since(tmp_path, second)


def test_the_first_commits(tmp_path: Path) -> None:
    """Without a commit before all are new; in an empty repository there are none."""
    git(tmp_path, "init", "-q")
    assert [] == since(tmp_path, None)
    commit_in(tmp_path, "feat: a")
    commit_in(tmp_path, "feat: b")
    assert ["feat: a", "feat: b"] == [subject for _, subject in since(tmp_path, None)]


def test_an_amended_commit(tmp_path: Path) -> None:
    """An amended commit is a new one, although the old one is on no branch any more."""
    git(tmp_path, "init", "-q")
    commit_in(tmp_path, "feat: a")
    base = commit_in(tmp_path, "feat: b")
    git(tmp_path, "commit", "-q", "--amend", "--allow-empty", "-m", "feat: c")
    assert ["feat: c"] == [subject for _, subject in since(tmp_path, base)]


def test_no_repository(tmp_path: Path) -> None:
    """There are none, also where the commit before is not known."""
    assert [] == since(tmp_path, None)
    assert [] == since(tmp_path, "0" * 40)
    git(tmp_path, "init", "-q")
    commit_in(tmp_path, "feat: a")
    assert [] == since(tmp_path, "0" * 40)


def test_settings_of_a_person(tmp_path: Path) -> None:
    """Colours and signatures that are always shown do not get between."""
    git(tmp_path, "init", "-q")
    base = commit_in(tmp_path, "feat: a")
    for key, value in (("color.ui", "always"), ("log.showSignature", "true"), ("log.follow", "1")):
        git(tmp_path, "config", key, value)
    commit_in(tmp_path, "feat: b")
    assert ["feat: b"] == [subject for _, subject in since(tmp_path, base)]


def test_at_most_the_latest(tmp_path: Path) -> None:
    """Of very many it is the latest 200."""
    git(tmp_path, "init", "-q")
    stream = "".join(
        f"commit refs/heads/x\ncommitter n <e@x> {n} +0000\ndata {len(f'c{n}')}\nc{n}\n"
        for n in range(1, 206)
    )
    command = ["git", "-C", str(tmp_path), "fast-import", "--quiet"]
    subprocess.run(command, input=stream.encode(), check=True)
    git(tmp_path, "checkout", "-q", "x")
    found = [subject for _, subject in since(tmp_path, None)]
    assert [f"c{n}" for n in range(6, 206)] == found
