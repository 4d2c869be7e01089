"""Each hint about an unknown target, with a command that depends on it."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import pytest

from cuggino.guard.commands.wordlist import words
from cuggino.guard.policy import Policy
from cuggino.guard.roles import role_policy
from tests.guard.judging import make_project, reason_of

NAMES = words("a z A Z _ _a a_ aZ9 f1")
AT_HOME = ('"~/a"', "'~/a'", '"b ~/a"', '"b:~/a"', '"b=~/a"', '"b(~/a"', "~/a", "$HOME/a")
AWAY = words(
    '/et* "/$x" /$x ../* "../$x" / .. ../x - ~ $HOME ${HOME}/x "/etc" \'/etc\' ".." \'..\' "$HOME"'
)
HERE = ("$PWD", "${PWD}", "$(pwd)", "$(git rev-parse --show-toplevel)")
OUTSIDE = (
    "cat /etc/x", 'cat "/etc/x"', "cat '/etc/x'", "x --d=/etc", "/etc/x", "ls ~/x", "ls ../x",
    "ls ../../x", "ls ..", "ls .. -a", 'ls ".."', "ls '..'", "ls ..; x", "ls ..|x", "ls ..&",
    "(ls ..)", "ls ..\nls", "ls\t/etc/x", "cat '../x'", "x -d=../x", "x --d=~/x",
)  # fmt: skip
INSIDE = ("ls src", "ls ./x", "ls ..x", "ls a..", "ls a~", "ls x/y", "x --d=src/y")
FILLED = (
    "read F <<< {0}", "read -r F <<< {0}", "mapfile F <<< {0}", "readarray F <<< {0}",
    "readarray -t F <<< {0}", "printf -v F {0}", "printf  -v F {0}", "getopts a: F {0}",
    "read A F <<< 'b {0}'",
)  # fmt: skip
PASSED_OVER = (
    "-not -path './.git/*'", "-not -path \"./.git/*\"", "-not -path ./.git/x", "! -path './.git/*'",
    "\\! -path './.git/*'", "-not  -path './.git/*'", "-not -name .git", "-not -iname .git",
    "! -name '.git'", "! -iname '.git'", "-not -wholename './.git/*'", "-not -iwholename ./.git",
    "-not -path './a b/.git'", "-not -path \"./a b/.git\"", "! -name  'a .git'", "! -name  .git",
    "-name 'a .git' -prune -o", '-path "./a b/.git" -prune -o', "-path  ./.git -prune -o",
    "-not -ipath './.git/*'", "-name .git -prune -o", "-path ./.git -prune -o",
    "-path './.git' -prune -o", '-name ".git" -prune -o', "-iname .git -prune -o",
    "-ipath ./.git -prune -o", "-name .git  -prune -o",
)  # fmt: skip
EXCLUDED = (
    "--exclude-dir=.git", "--exclude-dir .git", "--exclude-dir='.git'", '--exclude-dir=".git"',
    "--exclude=.git", "--exclude .git", "--exclude-path=.git", "--exclude 'x .git'",
    '--exclude="x .git"',
)  # fmt: skip
FILTERED = (
    "grep -v .git",
    "grep -v '.git/x'",
    'grep -v ".git/x"',
    "grep  -v  .git",
    "grep -v 'x .git'",
    'grep -v "x .git"',
)


@pytest.fixture(scope="module")
def project(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Create one project for all commands."""
    return make_project(tmp_path_factory.mktemp("words") / "project")


@pytest.fixture(scope="module")
def policy(project: Path) -> Policy:
    """Return the policy of the implementer, who may write the whole project."""
    return role_policy("implementing", project=project, level="roles")


def allowed(commands: Iterable[str], policy: Policy) -> list[str]:
    """Return the allowed commands."""
    return [command for command in commands if not reason_of(command, policy)]


def denied(commands: Iterable[str], policy: Policy) -> list[str]:
    """Return the denied commands."""
    return [command for command in commands if reason_of(command, policy)]


def test_home_folders(policy: Policy) -> None:
    """A home folder is recognized by its variable and by a tilde, but not in a longer name."""
    at_home = words('$HOME/a ${HOME}/a ~/$x ~/${x}b ~$x/a ~"$x"/a')
    assert [] == allowed((f"echo x > {word}" for word in at_home), policy)
    assert [] == allowed((f'echo x > "{word}"' for word in at_home[:2]), policy)
    assert [] == allowed((f"F={value}; rm -f $F" for value in AT_HOME), policy)
    others = words("$HOMES/a ${HOMES}/a $HOME_A b~/$x ${x}~ $x/~")
    assert [] == denied((f"echo x > {word}" for word in others), policy)
    assert [] == denied((f"F={value}; rm -f $F" for value in ("a~", "b~/a", '"b a~"')), policy)


def test_spellings_of_a_variable(policy: Policy) -> None:
    """The value of a variable counts with and without braces and quotes."""
    for form in ("${0}", '"${0}"', "${{{0}}}", '"${{{0}}}"', '"${0}/b"', "${{{0}}}/b"):
        outside = (f"{name}=/etc/x; echo x > {form.format(name)}" for name in NAMES)
        assert [] == allowed(outside, policy)
        inside = (f"{name}=src/x; echo x > {form.format(name)}" for name in NAMES)
        assert [] == denied(inside, policy)
    for form in ('"src/${0}"', "src/${{{0}}}"):
        climbs = (f"{name}=../../x; echo x > {form.format(name)}" for name in NAMES)
        assert [] == allowed(climbs, policy)
    given = ('"$1"', '"$@"', '"$*"', "$1", "${1}", "$@", "$*", '"${@}"', "${9}")
    assert [] == allowed((f"set -- /etc/x; rm -f {word}" for word in given), policy)
    assert [] == denied((f"set -- src/x; rm -f {word}" for word in given), policy)


def test_names_that_begin_like_protected_ones(policy: Policy) -> None:
    """A name that only begins like a protected one is allowed if it ends there."""
    for form in ("${0}", '"${0}"', "${{{0}}}", '"${{{0}}}"'):
        whole = (f"{name}=.g; echo x > {form.format(name)}" for name in NAMES)
        assert [] == denied(whole, policy)
    parts = ("${F}it", '"${F}it/x"', "$F$x", '"$F"it', "${F%x}it", "${F}*", "${F:0:2}it")
    assert [] == allowed((f"F=.g; echo x > {part}" for part in parts), policy)
    patterns = ("'.g*'", "'.g?t'", "'.[f-h]it'", ".g*", "src/../.g?t")
    assert [] == allowed((f"F={pattern}; echo x > $F/config" for pattern in patterns), policy)
    wholes = ("'.g*/x'", "'.g?t/x'", "'.[f-h]it/x'", ".g*/x")
    assert [] == allowed((f"F={whole}; echo x > $F" for whole in wholes), policy)
    assert [] == denied((f"F={whole}; rm -f $F" for whole in ("'src/*.o'", "src/?.o")), policy)
    assert "" == reason_of("F='.g*'; echo x > \"$F/config\"", policy)
    folders = ('"$F/x"', "$F/x", "${F}/x", '"$F"/x')
    assert [] == denied((f"F=.g; echo x > {folder}" for folder in folders), policy)


def test_parent_folders(policy: Policy) -> None:
    """Two dots count as a name, but not within another name."""
    above = ('"$d"/..', '"$d/.."', "$d/..", "$d/../x", '"$d/../x"', '"$d"/../..', "${d}/..")
    assert [] == allowed((f"rm -rf {word}" for word in above), policy)
    assert [] == denied((f"rm -rf {word}" for word in ('"$d/..x"', "$d/...", "$d/x..")), policy)


def test_default_values(policy: Policy) -> None:
    """Default values count, with each operator and names of any length."""
    for operator in words(":- - := = :+ +"):
        forms = ("${{F{0}{1}}}", '"${{F{0}{1}}}"', "${{FILE_1{0}{1}}}", "${{F{0}{1}}}/b")
        outside = [f"echo x > {form.format(operator, '/etc/x')}" for form in forms]
        assert [] == allowed(outside, policy)
        inside = [f"echo x > {form.format(operator, 'src/x')}" for form in forms]
        assert [] == denied(inside, policy)
        assert reason_of(f"rm -rf ${{F{operator}.}}", policy)
    begun = ("${F:-/etc/$x}", "${F:-/etc/`ls`}", '"${F:-"/etc/x"}"', "${F:-'/etc/x'}", "${F:-.$x}")
    assert [] == allowed((f"echo x > {word}" for word in begun), policy)
    assert [] == allowed(["echo x > ${F:-a}${G:-/etc/x}", "echo x > ${F:-a$b}${G:-/etc/x}"], policy)
    assert [] == denied(
        ["echo x > ${F:-$x}", "echo x > ${F:-src/$x}", "echo x > ${F:-`ls`}", "echo x > ${F:-}"],
        policy,
    )


def test_the_current_folder(policy: Policy) -> None:
    """The current folder is recognized in each spelling, alone and before a path."""
    for place in HERE:
        outside = (f'"{place}/../x"', f'"{place}"/../x', f"{place}/../x", f'"{place}/src/../../x"')
        assert [] == allowed((f"echo x > {word}" for word in outside), policy)
        whole = (f'"{place}"', place, f'"{place}/"', f'"{place}"/', f'"{place}/."', f"{place}/*")
        assert [] == allowed((f"rm -rf {word}" for word in whole), policy)
        inside = (f'"{place}/src/x"', f"{place}/x", f'"{place}"/a/b', f'"{place}/$x"')
        assert [] == denied((f"echo x > {word}" for word in inside), policy)


def test_variables_filled_by_builtins(policy: Policy) -> None:
    """A variable filled by a builtin is unknown, whatever the builtin's options."""
    for fill in FILLED:
        outside = fill.format("/etc/x")
        assert [] == allowed([f'{outside}; echo x > "$F"'], policy)
        assert [] == denied([f'{fill.format("src/x")}; echo x > "$F"'], policy)
        assert [] == denied([f'{outside}; echo x > "$G"'], policy)


def test_command_output(policy: Policy) -> None:
    """Output of a command is unsafe if the command reads absolute paths, a home folder, or `..`."""
    assert [] == allowed((f"rm -f $({command})" for command in OUTSIDE), policy)
    inside = (*INSIDE, f"find {policy.project}/src -name x")
    assert [] == denied((f"rm -f $({command})" for command in inside), policy)
    assert [] == allowed(["ls /etc/* | xargs -I{} rm {}", "ls /etc/* | xargs rm"], policy)
    assert [] == denied(["ls src/* | xargs -I{} rm {}", "ls src/* | xargs rm"], policy)


def test_excluded_names(policy: Policy) -> None:
    """Excluding a protected name, as find and grep can, does not count as naming it."""
    changes = "xargs sed -i s/a/b/"
    commands = [f"find . {left_out} -name '*.md' | {changes}" for left_out in PASSED_OVER]
    commands += [f"grep -rl foo {left_out} . | {changes}" for left_out in EXCLUDED]
    commands += [f"git ls-files | {left_out} | {changes}" for left_out in FILTERED]
    assert [] == denied(commands, policy)
    others = (
        f"find . -path './.git/*' | {changes}",
        f"find . -name .git | {changes}",
        f"grep -rl foo --include=.git . | {changes}",
        f"git ls-files | grep .git/x | {changes}",
        f"git ls-files | egrep -v x .git/x | {changes}",
    )
    assert [] == allowed(others, policy)


def test_protected_names(policy: Policy) -> None:
    """A protected name is recognized in any case and with quotes, but not within another name."""
    named = words(
        ".git .git/x ./.git .GIT .claude .mcp.json .cuggino .cuggino.json .autonoe a/.git"
    )
    named += (".g'i't", '.g"it"/x', ".g\\it", "'.git'", ".git:", "x=.git", ".git.")
    assert [] == allowed((f'echo {word}; cp x "$f"' for word in named), policy)
    others = words(".gitignore .github x.git .git-x .gitx .git.bak -.git .claude-x a.mcp.json")
    assert [] == denied((f'echo {word}; cp x "$f"' for word in others), policy)


def test_dots_and_slashes_protect_nothing(project: Path) -> None:
    """A dot, two dots and a slash occur in most commands and protect nothing."""
    policy = Policy(str(project), level="roles", protected=(".git", "/", ".", ".."))
    assert "" == reason_of('cp ./x .. ; cp x "$f"', policy) or reason_of("cp x ..", policy)
    assert "" == reason_of('ls . .. /; cp x "$f"', policy)


def test_unknown_targets_after_leaving_the_project(policy: Policy) -> None:
    """After `cd` or `pushd` home, up, back or to an absolute path, unknown targets are denied."""
    for verb in ("cd", "pushd", "cd --", "cd  --", "pushd --"):
        gone = [f'{verb} {place}; echo x > "$f"' for place in AWAY]
        gone += [f'{verb} {place} && echo x > "$f"' for place in AWAY]
        assert [] == allowed(gone, policy)
        assert [] == denied([f'{verb} src; echo x > "$f"', f'{verb} "$d"; touch "$f"'], policy)
    ends = ("cd; {0}", "cd && {0}", "cd&&{0}", "cd || ls; {0}", "cd\n{0}", "cd ; {0}", "cd;{0}")
    assert [] == allowed((end.format('echo x > "$f"') for end in ends), policy)
    stays = ("cd & {0}", "cd | {0}", "(cd); {0}", "abcd; {0}", "cdx; {0}")
    assert [] == denied((end.format('echo x > "$f"') for end in stays), policy)


def test_unknown_folders(policy: Policy) -> None:
    """In an unknown folder only new files and the project's own may be written."""
    entered = (
        'cd "$d" && {0}', "cd $d; {0}", "cd `ls`; {0}", "cd s*; {0}", "cd s?c; {0}",
        "pushd $d; {0}",
        'cd -- "$d"; {0}', "cd x$(ls); {0}", 'cd "$(dirname "$x")"; {0}',
    )  # fmt: skip
    assert [] == allowed((command.format("echo x > b") for command in entered), policy)
    assert [] == denied((command.format('echo x > "$f"') for command in entered), policy)
    known = words("$(pwd) $(mktemp,-d) $(git,rev-parse,--show-toplevel)")
    for place in (word.replace(",", " ") for word in known):
        inside = [f'cd  "{place}" ; touch b', f"cd  --  {place}; touch b"]
        inside += [f'cd "{place}" && touch b', f"cd {place}; touch b", f'cd -- "{place}"; touch b']
        pushed = [f'pushd "{place}"; touch b', f'pushd "{place}"; popd; touch b']
        assert [] == denied([*inside, *pushed], policy)
    elsewhere = (
        "find . -name x -execdir touch b \\;", "find . -name x -okdir touch b \\;",
        'env -C "$d" touch b', 'env --chdir "$d" touch b', 'env --chdir="$d" touch b',
    )  # fmt: skip
    assert [] == allowed(elsewhere, policy)


def test_programs_in_variables(policy: Policy) -> None:
    """A program in a variable is judged by its value; the shell's own variables mean a shell."""
    runs = (
        "$SHELL -c 'rm -rf /etc'", '"$BASH" -c "rm -rf /etc"', "${SHELL} -c 'rm -rf /etc'",
        '$X -c "$y"', "R=rm; $R -rf /etc", "R=rm; ${R} -rf /etc", 'R="rm -rf"; "$R" /etc',
        'R="rm -rf"; $R /etc', "X=A=b; $X ls", 'X="A=b ls"; $X', "ls | xargs -I{} {} x",
        "ls | xargs env", "ls | xargs env A=b",
        "R=ls; R=rm; $R -rf /etc",
    )  # fmt: skip
    assert [] == allowed(runs, policy)
    fine = (
        "$SHELL -c 'rm -rf src/x'", "$BASH -c ls", "$X x", "${X} -c 'print(1)'", "R=ls; $R /etc",
        'R="ls -l"; $R /etc', "R=; $R ls", "$(which python3) x.py", '"$d/bin/x" -y', "${X[0]} x",
    )  # fmt: skip
    assert [] == denied(fine, policy)
