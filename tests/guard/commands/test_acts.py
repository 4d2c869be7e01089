"""Level `roles`: actions that no file sandbox sees, and everyday writes with their target."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.guard.policy import Level, Policy
from cuggino.guard.roles import role_policy
from tests.guard.commands.listed import allowed, denied
from tests.guard.judging import make_project, reason_of

PUBLISHES = (
    *("npm publish", "npm -w a publish", "pnpm publish", "yarn publish", "yarn npm publish"),
    *("bun publish", "deno publish", "uv publish", "poetry publish", "pdm publish", "gem push a"),
    *("hatch publish", "flit publish", "cargo publish", "twine upload dist/*", "vsce publish"),
    *("python -m twine upload dist/*", "goreleaser release", "docker push a/b", "podman push a"),
    *("docker compose push", "docker build --push .", "helm upgrade a b", "mvn deploy"),
    *("gradle publish", "dotnet nuget push a", "kubectl apply -f a", "kubectl -n a delete pod b"),
    *("terraform apply", "terraform -chdir=a destroy", "pulumi up", "vercel deploy"),
    *("gh pr create", "gh pr merge 1", "gh release create v1", "gh repo delete a"),
    *("gh issue close 1", "gh api -X POST a", "gh api a -f b=c"),
    "gh api graphql -f query='mutation { a }'",
)
LOOKS = (
    *("npm publish --dry-run", "npm run publish", "npm dist-tag ls", "cargo publish --dry-run"),
    *("goreleaser release --snapshot", "docker images", "kubectl get pods", "kubectl logs a"),
    *("kubectl apply --dry-run=client -f a", "helm list", "terraform plan", "mvn test"),
    *("gh pr view 1", "gh pr diff", "gh run list", "gh auth status", "gh api a"),
    *("gh pr checkout 1", "gh api graphql -f query='{ a }'", "gh", "docker compose up -d"),
    "dotnet build",
)
STARTS = (
    *("bash -c '{0}'", "sh -lc '{0}'", "eval '{0}'", "eval {0}", "trap '{0}' EXIT", "env A=1 {0}"),
    *("sudo -u a {0}", "timeout 5 nice {0}", "xargs {0}", "find . -exec {0} \\;", "watch {0}"),
    *("npx -c '{0}'", "poetry run {0}", "uv run {0}", "su -c '{0}'", "flock a -c '{0}'"),
    *("parallel {0} ::: a", "x=$({0})", "f() {{ {0}; }}; f", "if {0}; then ls; fi"),
    *("alias a='{0}'", "bash <<< '{0}'", "bash <<E\n{0}\nE", "echo '{0}' | sh"),
    *("cat <<E | bash\n{0}\nE", "! {0}", 'a="{0}"; $a', "command {0}", "nohup {0} &"),
    *("env -i bash -c '{0}'", "busybox sh -c '{0}'"),
)
ENDINGS = (
    *("git push", "git push origin main", "git reset --hard", "git checkout .", "git stash drop"),
    *("git -C src push", "git -c a.b=c push", "/usr/lib/git-core/git-push", "g=git; $g push"),
    *("git subtree push --prefix a b c", "git lfs push origin", "git send-email a"),
    *("git svn dcommit", "git filter-branch a", "git clean -fdx", "git -c alias.a=push a"),
    'git "$a"',
)
SAYS = (
    *("echo git push", "grep 'git push' a", "git log --grep push", "git commit -m 'git push'"),
    *("find . -name git", "npm run push", "git subtree add a b", "git lfs pull", "$a push"),
    *("xargs a", "curl http://localhost/a | sh", "bash a.sh push", 'eval "$(ssh-agent -s)"'),
    "python -c 'a'",
)


ENDS = (
    *("kill -9 -1", "kill -- -1", "pkill -u root", "pkill -f cuggino", "pkill -9 claude"),
    *("killall -u me", "killall5", "sudo reboot", "bash -c 'pkill .'", "shutdown now"),
    "pkill -v x",
)
ENDS_OWN = (
    *("kill 123", "kill -9 %1", "kill -1 123", "kill $PID", "pkill -f vite", "pkill node"),
    *("killall node", "pkill -f 'next dev'", "kill $(cat .pid)", "xargs kill", "kill -l"),
)


def test_processes_of_others_are_not_ended(project: str) -> None:
    """Those that a session may have started can be."""
    policy = Policy(project, level="roles")
    assert [] == allowed(ENDS, policy)
    assert [] == denied(ENDS_OWN, policy)


@pytest.mark.parametrize("level", ["roles", "full"])
def test_publishing_needs_permission(level: Level, project: str) -> None:
    """Publishing needs a person's decision, at both levels."""
    policy = Policy(project, level=level, extra_commands=("extended", "pulumi"))
    assert [] == allowed(PUBLISHES, policy)


def test_publishing_can_be_permitted(project: str) -> None:
    """`allowDestructive` permits it; looking and rehearsing is always allowed."""
    policy = Policy(project, level="roles")
    assert [] == denied(PUBLISHES, policy._replace(allow_destructive=True))
    assert [] == denied(LOOKS, policy)


@pytest.mark.parametrize("command", ["git push", "git reset --hard", "npm publish"])
def test_an_action_is_found_whatever_starts_it(command: str, project: str) -> None:
    """Shells, wrappers, runners, functions and pipes to a shell hide nothing."""
    commands = [start.format(command) for start in STARTS]
    assert [] == allowed(commands, Policy(project, level="roles"))
    harmless = [start.format("ls src") for start in STARTS if "| " not in start]
    assert [] == denied(harmless, Policy(project, level="roles"))


def test_actions_of_git(project: str) -> None:
    """Pushing and discarding are denied in every form; a mere mention is not."""
    assert [] == allowed(ENDINGS, Policy(project, level="roles"))
    assert [] == denied(SAYS, Policy(project, level="roles"))


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
    *("cp .specs/a.md src", "rm -rf build", "rm src/*.ts", "mkdir -p src", "tee /tmp/x"),
    *("ls 2>&1", 'echo x > "$f"', 'rm -rf "$d"', "cd $d && rm a", "ls >&2", "ls > /dev/null"),
    "touch -r .git a",
)
MORE = (
    *("gcc -o .git/x a.c", "tar xf a.tar -C .git", "sort -o .git/x a", "uniq a .git/x"),
    *("git checkout main -- .specs", "curl -so .git/x u", "wget -O .git/x u", "tsc --outDir .git"),
    *("gem install --install-dir /etc x", "gem install -i /etc x", "pip install -t /etc x"),
    *("python -m pip install --target=/etc x", "npm --prefix /etc install"),
    *("cargo install --root /", "make install DESTDIR=/opt", "uv pip install --target /etc x"),
    *("pytest --basetemp=/etc/x", "bundle install --bindir=/etc", "yarn --modules-folder /etc"),
    *("go build -o /etc/x", "unzip a -d /etc", "black .git/x.py", "echo x > .git/$f"),
    'rm -rf "$HOME/x"',
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
    *("ln -sf src link", "mv src/a link", "ln -sf src link/../x", "ln -s /etc x", "ln -st . /etc"),
    *("ln -s ../../up src/x", "ln /etc/x a", "echo x > link", "echo x > file", "mv src/a link/x"),
    *("tee file", "ln -s ../.git src/x", "ln -s ../../gone x && echo y > x", "rmdir link/x"),
    *("ln -s $PWD/a /etc/x", "ln -sr ../up x"),
)


@pytest.fixture(scope="module")
def specified(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create a project with specifications."""
    folder = make_project(tmp_path_factory.mktemp("direct") / "home" / "project")
    (folder / ".specs").mkdir()
    (folder / "link").symlink_to("/etc")
    (folder / "file").symlink_to("/etc/hosts")
    (folder / "loop").symlink_to("loop")
    (folder.parent / "up").mkdir()
    return folder


def implementing(specified: Path) -> Policy:
    return role_policy("implementing", project=specified, level="roles")


@pytest.mark.parametrize("place", PROTECTED)
def test_writes_to_protected_paths_are_explained(place: str, specified: Path) -> None:
    """Redirections and everyday programs that name a protected path are denied at once."""
    commands = [write.format(place) for write in WRITES]
    policy = implementing(specified)
    assert [] == [command for command in commands if not reason_of(command, policy)]


def test_writes_outside_the_project_are_explained(specified: Path) -> None:
    """Nothing outside the project is written, and the project itself is not removed."""
    policy = implementing(specified)
    assert [] == [command for command in ELSEWHERE if not reason_of(command, policy)]


def test_the_same_programs_work_elsewhere(specified: Path) -> None:
    """Reading, other files, and targets that are known only at run time are allowed."""
    policy = implementing(specified)
    assert [] == [command for command in FINE if reason_of(command, policy)]


def test_options_that_name_an_output_are_explained(specified: Path) -> None:
    """So are the files and folders that programs write by an option."""
    policy = implementing(specified)
    assert [*MORE] == [command for command in MORE if reason_of(command, policy)]


def test_a_link_is_removed_or_replaced_itself(specified: Path) -> None:
    """What acts on a link may do so wherever it leads; what goes through it is judged there."""
    policy = implementing(specified)
    assert [] == [command for command in LINKS if reason_of(command, policy)]
    assert [*THROUGH] == [command for command in THROUGH if reason_of(command, policy)]
    full = Policy(str(specified), allow_destructive=True, extra_commands=("extended", "unlink"))
    assert [] == [command for command in LINKS if reason_of(command, full) and "git" not in command]
    assert [*THROUGH] == [command for command in THROUGH if reason_of(command, full)]


def test_paths_are_left_to_a_sandbox_that_confines_the_session(specified: Path) -> None:
    """Then actions alone are judged."""
    policy = implementing(specified)._replace(confined=True)
    commands = (*(write.format(".git/x") for write in WRITES), *MORE, *THROUGH, *ELSEWHERE)
    assert [] == [command for command in commands if reason_of(command, policy)]
    own = policy._replace(protected=(*policy.protected, "verdicts-1.log"))
    assert reason_of("echo x >> /tmp/a/verdicts-1.log", own)
    assert reason_of("rm -f /tmp/a/verdicts-1.log", own)
    assert "" == reason_of("echo x > .git/x && rm -rf .specs", own)
    acts = ("git push", "npm publish", "git reset --hard", "gh repo delete x", "git stash drop")
    assert [*acts] == [command for command in acts if reason_of(command, policy)]


def test_what_is_not_obvious_is_left_to_the_sandbox(specified: Path) -> None:
    """The sandbox prevents other writes, or verification undoes them."""
    policy = implementing(specified)
    assert [] == [command for command in OBSCURE if reason_of(command, policy)]


def test_roles_that_only_look(specified: Path) -> None:
    """A reviewer may write its review and scratch files, and no other file."""
    review = specified / ".cuggino" / "wip" / "x.review.md"
    policy = role_policy("reviewing", project=specified, level="roles", review=review)
    fine = (f"cat a > {review}", "pytest > /tmp/out", "mkdir -p src", "npm test", "git diff")
    assert [] == [command for command in fine if reason_of(command, policy)]
    writes = ("echo x > src/a", "rm src/a", "sed -i s/a/b/ src/a", "touch a", "git commit -m x")
    assert [] == [command for command in writes if not reason_of(command, policy)]
