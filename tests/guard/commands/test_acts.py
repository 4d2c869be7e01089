"""Level `roles`: actions that no file sandbox sees, however they are started."""

from __future__ import annotations

import pytest

from cuggino.guard.policy import Level, Policy
from tests.guard.commands.listed import allowed, denied

PUBLISHES = (
    *("npm publish", "npm -w a publish", "pnpm publish", "yarn publish", "yarn npm publish"),
    *("bun publish", "deno publish", "uv publish", "poetry publish", "pdm publish", "gem push a"),
    *("hatch publish", "flit publish", "cargo publish", "twine upload dist/*", "vsce publish"),
    *("python -m twine upload dist/*", "goreleaser release", "docker push a/b", "podman push a"),
    *("docker compose push", "docker build --push .", "helm upgrade a b", "mvn deploy"),
    *("gradle publish", "dotnet nuget push a", "kubectl apply -f a", "kubectl -n a delete pod b"),
    *("terraform apply", "terraform -chdir=a destroy", "pulumi up", "vercel deploy"),
    *(
        "gh pr create",
        "gh pr merge 1",
        "gh release create v1",
        "gh repo delete a",
        "gh issue close 1",
    ),
    *("gh api -X POST a", "gh api a -f b=c", "gh api graphql -f query='mutation { a }'"),
)
LOOKS = (
    *("npm publish --dry-run", "npm run publish", "npm dist-tag ls", "cargo publish --dry-run"),
    *("goreleaser release --snapshot", "docker images", "kubectl get pods", "kubectl logs a"),
    *("kubectl apply --dry-run=client -f a", "helm list", "terraform plan", "mvn test"),
    *(
        "gh pr view 1",
        "gh pr diff",
        "gh run list",
        "gh auth status",
        "gh api a",
        "gh pr checkout 1",
    ),
    *("gh api graphql -f query='{ a }'", "gh", "docker compose up -d", "dotnet build"),
)
STARTS = (
    *("bash -c '{0}'", "sh -lc '{0}'", "eval '{0}'", "eval {0}", "trap '{0}' EXIT", "env A=1 {0}"),
    *("sudo -u a {0}", "timeout 5 nice {0}", "xargs {0}", "find . -exec {0} \\;", "watch {0}"),
    *("npx -c '{0}'", "poetry run {0}", "uv run {0}", "su -c '{0}'", "flock a -c '{0}'"),
    *(
        "parallel {0} ::: a",
        "x=$({0})",
        "f() {{ {0}; }}; f",
        "if {0}; then ls; fi",
        "alias a='{0}'",
    ),
    *("bash <<< '{0}'", "bash <<E\n{0}\nE", "echo '{0}' | sh", "cat <<E | bash\n{0}\nE", "! {0}"),
    *('a="{0}"; $a', "command {0}", "nohup {0} &", "env -i bash -c '{0}'", "busybox sh -c '{0}'"),
)
ENDINGS = (
    *("git push", "git push origin main", "git reset --hard", "git checkout .", "git stash drop"),
    *("git -C src push", "git -c a.b=c push", "/usr/lib/git-core/git-push", "g=git; $g push"),
    *(
        "git subtree push --prefix a b c",
        "git lfs push origin",
        "git send-email a",
        "git svn dcommit",
    ),
    *("git filter-branch a", "git clean -fdx", "git -c alias.a=push a", 'git "$a"'),
)
SAYS = (
    *("echo git push", "grep 'git push' a", "git log --grep push", "git commit -m 'git push'"),
    *(
        "find . -name git",
        "npm run push",
        "git subtree add a b",
        "git lfs pull",
        "$a push",
        "xargs a",
    ),
    *("curl http://localhost/a | sh", "bash a.sh push", 'eval "$(ssh-agent -s)"', "python -c 'a'"),
)


ENDS = (
    *("kill -9 -1", "kill -- -1", "pkill -u root", "pkill -f cuggino", "pkill -9 claude"),
    *(
        "killall -u me",
        "killall5",
        "sudo reboot",
        "bash -c 'pkill .'",
        "shutdown now",
        "pkill -v x",
    ),
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
