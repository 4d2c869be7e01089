"""Decisions for each relevant subcommand, option and setting of git."""

from __future__ import annotations

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Level, Policy
from tests.guard.commands.listed import allowed, denied

NEVER = words(
    "filter-branch fast-import send-email instaweb daemon credential credential-cache "
    "credential-store shell svn p4 cvsimport cvsserver cvsexportcommit archimport quiltimport "
    "difftool mergetool gui citool gitk http-backend upload-pack receive-pack upload-archive "
    "web--browse maintenance for-each-repo hook imap-send fetch-pack send-pack http-fetch "
    "http-push remote-ext remote-fd sh-setup checkout-index read-tree unpack-objects scalar "
    "filter-repo mergetool--lib submodule--helper merge-one-file merge-index bugreport diagnose "
    "mailinfo mailsplit index-pack pack-objects"
)
READING = words(
    "annotate blame cat-file check-attr check-ignore check-mailmap check-ref-format cherry "
    "count-objects describe diff diff-files diff-index diff-tree fetch for-each-ref fsck "
    "get-tar-commit-id grep help log ls-files ls-remote ls-tree merge-base merge-tree name-rev "
    "patch-id range-diff rev-list rev-parse shortlog show show-branch show-index show-ref status "
    "stripspace var verify-commit verify-pack verify-tag version whatchanged column"
)
CHANGING = words(
    "add am apply bisect branch checkout cherry-pick clean clone commit commit-graph commit-tree "
    "gc init merge merge-file mktree mv notes pack-refs pull rebase reflog remote repack "
    "rerere reset restore revert sparse-checkout stash submodule switch tag update-index worktree "
    "write-tree multi-pack-index replace"
)
LOOKS = (
    *("stash list", "stash show", "worktree list", "remote", "remote -v", "remote show origin"),
    *("remote get-url origin", "notes", "notes show", "notes list", "bisect log"),
    *("submodule status", "submodule summary", "reflog", "reflog show", "reflog exists x"),
    *("bundle verify x", "bundle list-heads x", "sparse-checkout list", "rerere status"),
    *("rerere diff", "branch", "branch -a", "branch -vv", "branch --list --format=x"),
    *("branch --show-current", "branch --contains", "branch --no-merged", "tag", "tag -l"),
    *("tag -n3", "tag --points-at", "apply --check x", "apply --stat x", "apply --numstat x"),
    *("apply --summary x", "archive HEAD", "format-patch --stdout HEAD", "hash-object a"),
    *("interpret-trailers a", "config user.name", "config --get user.name"),
)
SETS = words(
    "core.hooksPath core.sshCommand core.fsmonitor core.editor core.pager core.askPass "
    "core.gitProxy core.worktree core.attributesFile core.excludesFile core.alternateRefsCommand "
    "alias.x pager.log include.path includeIf.x.path url.x.insteadOf filter.x.clean "
    "filter.x.smudge credential.helper gpg.program gpg.ssh.program sequence.editor diff.external "
    "diff.x.command diff.x.textconv diff.tool diff.guitool diff.x.wordRegex difftool.x.cmd "
    "merge.x.driver merge.tool mergetool.x.path commit.template commit.x.cmd tag.gpgSign "
    "commit.gpgSign push.gpgSign http.proxy http.cookieFile http.saveCookies http.sslCert "
    "http.sslKey http.sslCAInfo http.sslCAPath http.sslVerify http.extraHeader http.userAgent "
    "http.curloptResolve protocol.allow protocol.ext.allow submodule.x.update format.signature "
    "format.to format.cc format.outputDirectory gc.recentObjectsHook fetch.bundleURI "
    "clone.defaultRemoteName remote.x.uploadpack remote.x.receivepack remote.x.vcs remote.x.proxy "
    "web.browser init.templateDir sendemail.smtpServer uploadpack.packObjectsHook log.browser "
    "branch.x.editor http.x.helper diff.x.program fetch.x.hooksPath"
)
HARMLESS = words(
    "user.name user.email core.autocrlf core.quotePath init.defaultBranch pull.rebase "
    "push.default merge.conflictStyle rerere.enabled remote.origin.url branch.main.merge "
    "diff.algorithm format.pretty http.postBuffer"
)
STARTS = (
    *("fetch --upload-pack=id", "fetch --upload-p id", "pull --upload-pack id"),
    *("push --receive-pack=id", "push --exec id", "push --exe=id", "ls-remote --exec=id x"),
    *("archive --exec=id HEAD", "archive --remote=x --exec id HEAD", "clone -u id x src/x"),
    *("clone --config core.x=1 x src/x", "clone -c core.x=1 x src/x", "clone --template=x x src/x"),
    *("clone --bundle-uri=x x src/x", "clone --reference x x src/x", "init --template=x"),
    *("clone --reference-if-able x x src/x", "clone --separate-git-dir=src/y x src/x"),
    *("init --separate-git-dir=src/x", "rebase -x id", "rebase --exec id", "rebase -ix id main"),
    *("grep -O x", "grep -Oid x", "grep --open-files-in-pager=id x", "grep --open=id x"),
    *("log --ext-diff", "diff --ext-diff", "show --ext-diff", "apply --unsafe-paths x"),
    *("-c core.pager=id log", "-c alias.x=!id x", "--exec-path=src log", "--git-dir=x log"),
    *("--config-env=core.pager=X log", "--work-tree=x log", "--namespace=x log", "-p log"),
    *("--paginate log", "submodule foreach id", "remote add x ext::id", "clone ext::id src/x"),
    *("fetch ext::id", "push --repo=ext::id", "archive --remote=ext::id HEAD"),
    *("clean -xf", "clean -X -f", "clean -fi", "stash -a", "stash --all", "apply -i x"),
    *("add --pathspec-from-file=x", "commit --pathspec-from-file x", "bisect run bash -c eval"),
    *("config -e", "config --edit", "config edit", "config rename-section a b"),
    *("config --rename-section a b", "config --remove-section a", "config remove-section a"),
    *("config --global user.name x", "config --system user.name x", "config -f x user.name x"),
    *("config --file x user.name x", "config --worktree user.name x", "config --add alias.x y"),
    *("config --unset core.hooksPath", "config --unset-all core.hooksPath", "config set alias.x y"),
    *("config --replace-all alias.x y", "config unset core.hooksPath"),
)
SKIPS = (
    *("commit --no-verify -m x", "commit -n -m x", "commit -nm x", "commit --template=x"),
    *("commit -t x", "merge --no-verify x", "rebase -i x", "add -e", "add -i"),
    *("rebase --interactive x", "rebase --edit-todo", "rebase --no-verify x", "add --edit"),
    *("add -p", "add --patch", "add --interactive", "branch --edit-description"),
)
DESTROYS = (
    *("rm a", "clean -f src", "clean --force src", "stash clear", "push -f", "push --force"),
    *("push --mirror", "push --force-with-lease", "push -d origin x", "push --delete origin x"),
    *("push origin +x", "push --prune origin", "push origin :x", "push --force-if-includes"),
    *("branch -D x", "branch -f x y", "branch --force x y", "reflog expire", "reflog delete x"),
    *("reflog drop x", "gc --prune=now", "prune", "update-ref a b", "symbolic-ref a b"),
    *("symbolic-ref -d a", "symbolic-ref --delete a", "worktree remove -f src"),
    *("worktree remove --force src", "submodule deinit -f x", "submodule deinit --force x"),
    "submodule deinit --all",
)


DISCARDS = (
    *("reset --hard", "reset --hard origin/main", "reset --har HEAD~1", "reset --merge"),
    *("checkout .", "checkout -- .", "checkout HEAD -- .", "checkout -f", "checkout --force main"),
    *("checkout :/", "restore .", "restore --source=HEAD~1 :/", "restore -SW .", "restore ./"),
    *("restore --staged --worktree .", "switch -f main", "switch --discard-changes main"),
    *("stash drop", "stash drop stash@{1}", "stash clear", "clean -f src"),
    *("branch -D x", "branch -d -f x", "push", "push origin main", "push -u origin HEAD"),
    *("push --force", "push -f", "push --force-with-lease", "push --tags", "reflog expire --all"),
    *("update-ref -d refs/heads/x", "gc --prune=now", "-C . reset --hard", "prune"),
)
"""Work may be a person's, and what is pushed has left the machine."""
LEAVES = (
    *("reset", "reset --soft HEAD~1", "reset HEAD a.txt", "checkout main", "checkout -b x"),
    *("checkout -- a.txt", "restore a.txt", "restore --staged .", "restore -S .", "switch main"),
    *("stash", "stash pop", "stash list", "clean -n", "branch -d x", "push --dry-run", "gc"),
)


def _git(parts: tuple[str, ...] | list[str]) -> list[str]:
    return [f"git {part}" for part in parts]


def test_git_starting_programs_is_denied_under_the_allowlist(project: str) -> None:
    """No subcommand or option that starts a program is treated as harmless."""
    commands = _git([*NEVER, *STARTS])
    assert [] == allowed(commands, Policy(project, allow_destructive=True))


def test_skipping_hooks_is_denied_under_the_allowlist(project: str) -> None:
    """Skipping the user's hooks is denied, and so is opening an editor."""
    assert [] == allowed(_git(SKIPS), Policy(project, allow_destructive=True))
    assert [] == denied(_git(SKIPS), Policy(project, level="roles"))


def test_destructive_git_needs_permission(project: str) -> None:
    """With the user's permission it is allowed inside the project only."""
    assert [] == allowed(_git(DESTROYS), Policy(project))
    assert [] == denied(_git(DESTROYS), Policy(project, allow_destructive=True))


@pytest.mark.parametrize("level", ["roles", "full"])
def test_git_that_discards_work_needs_permission(project: str, level: Level) -> None:
    """At both levels, whoever works; what leaves all work in place is free."""
    policy = Policy(project, level=level)
    assert [] == allowed(_git([*DISCARDS, "clean -f", "clean -fd"]), policy)
    assert [] == denied(_git(DISCARDS), policy._replace(allow_destructive=True))
    assert [] == denied(_git(LEAVES), policy)


def test_parts_of_git_by_their_path(project: str) -> None:
    """A part of git is used through git, whose command line can be judged."""
    commands = ["/usr/lib/git-core/git-push", "/usr/libexec/git-core/git-reset --hard"]
    assert [] == allowed(commands, Policy(project, level="roles"))
    assert [] == allowed(commands, Policy(project))


def test_known_git_commands_are_allowed(project: str) -> None:
    """Reading is allowed for every role, changing for roles that may change the project."""
    limited = Policy(project, level="roles", writable=("docs",))
    assert [] == denied(_git([*READING, *LOOKS]), Policy(project))
    assert [] == denied(_git([*READING, *LOOKS]), limited)
    assert [] == denied(_git(CHANGING), Policy(project))
    assert {f"git {name}" for name in ("notes", "reflog", "remote", "tag", "branch")} == set(
        allowed(_git(CHANGING), limited)
    )


@pytest.mark.real_agent
def test_only_harmless_settings_are_changed(project: str) -> None:
    """Only known harmless settings may be changed, for one command or permanently."""
    forms = [f"git config {key} x" for key in SETS]
    forms += [f"git -c {key}=x log" for key in SETS]
    forms += [f"git config set {key} x" for key in SETS]
    assert [] == allowed(forms, Policy(project))
    assert [] == denied((f"git config {key} x" for key in HARMLESS), Policy(project))
