"""How words are read as options and operands, and the tables of programs and profiles."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cuggino.guard.commands.base import plain_word
from cuggino.guard.commands.options import Syntax, parse_options
from cuggino.guard.commands.processes import chmod_reason, pkill_reason
from cuggino.guard.commands.table import KNOWN, is_tool, judges_of
from cuggino.guard.extensions import chosen_profiles
from cuggino.guard.paths import Paths
from cuggino.guard.policy import Policy
from cuggino.guard.profiles import PROFILES, READING, WRITING, listed, pkill_targets
from cuggino.guard.roles import role_policy
from cuggino.guard.shell.tree import Word
from tests.guard.judging import make_project, reason_of
from tests.vectors import each, not_followed, rows

SYNTAX = Syntax("to", ("target-directory", "output"), ("verbose", "verify"), attached="i")


@pytest.mark.parametrize(
    ("text", "options", "operands"),
    [
        ("a -t b c", [("-t", "b")], ["a", "c"]),
        ("-tb a", [("-t", "b")], ["a"]),
        ("-vt b a", [("-v", None), ("-t", "b")], ["a"]),
        ("--target=b a", [("--target-directory", "b")], ["a"]),
        ("--targ b a", [("--target-directory", "b")], ["a"]),
        ("--output-x a", [("--output-x", None)], ["a"]),
        ("-i a", [("-i", None)], ["a"]),
        ("-i.bak a", [("-i", ".bak")], ["a"]),
        ("-- -t a", [], ["-t", "a"]),
        ("- a", [], ["-", "a"]),
    ],
)
def test_options_and_operands(
    text: str, options: list[tuple[str, str | None]], operands: list[str]
) -> None:
    """Values follow, adjoin or come after `=`; `--` ends the options; long ones may be short."""
    given = parse_options(tuple(map(plain_word, text.split())), SYNTAX)
    assert options == [(o.name, o.value.value if o.value else None) for o in given.options]
    assert operands == [word.value for word in given.operands]


@each(
    "word, is_unclear",
    [
        (Word('"$f"', None), True),
        (Word('"src/$f"', None, "src/"), False),
        (Word("src/$f", None, "src/"), True),
        (Word('"src/$@"', None, "src/"), True),
        (Word("$(x)", None), True),
        (Word('"$(pwd)/a"', None), False),
        (Word('--since="$(date +"%F")"', None, "--since="), False),
        (Word('-m"a $(x \'"\') $y"', None, "-ma "), False),
        (Word('"src/"$f"/x"', None, "src/"), True),
        (Word('"src/${f[@]}"', None, "src/"), True),
        (Word('"src/$(ls "$x")"', None, "src/"), False),
        (Word('"src/$(ls)"$(ls)', None, "src/"), True),
        (Word("\"$(cat <<'EOF'\nit's (\nEOF\n)\"", None, "x"), False),
        (Word("plain", "plain"), False),
        (Word('"$PWD/a"', None), False),
        (Word('"${PWD}/a"', None), False),
        (Word('"$HOME/a"', None), False),
        (Word('"${HOME}/a"', None), False),
        (Word('"$TMPDIR/a"', None), False),
        (Word('"${TMPDIR}/a"', None), False),
        (Word('"$PWDX/a"', None), True),
        (Word('"$OLDPWD/a"', None), True),
        (Word('"$PWD"', None), True),
        (Word("$PWD/a", None), True),
        (Word('"src/$x"$', None, "src/"), False),
        (Word('"src/$x"$"b"', None, "src/"), False),
        (Word("\"src/$x\"$'b'", None, "src/"), False),
        (Word("src/`ls`", None, "src/"), True),
        (Word('"src/`ls`"', None, "src/"), False),
        (Word('"src/`ls`"$x', None, "src/"), True),
        (Word('"src/`ls', None, "src/"), True),
        (Word("'src/$x", None, "src/"), True),
        (Word("'$x'\"$y\"", None, "s"), False),
        (Word("'$x'$y", None, "s"), True),
        (Word('"src/$x', None, "src/"), True),
        (Word("src/\\$x", None, "src/"), False),
        (Word('"src/\\"$x"', None, "src/"), False),
        (Word('"src/$*"', None, "src/"), True),
        (Word('"src/${@}"', None, "src/"), True),
        (Word('"src/${@:1}"', None, "src/"), True),
        (Word('"src/${*}"', None, "src/"), True),
        (Word('"src/${f[*]}"', None, "src/"), True),
        (Word('"src/${!f[@]}"', None, "src/"), True),
        (Word('"src/${!f@}"', None, "src/"), True),
        (Word('"src/${!f*}"', None, "src/"), True),
        (Word('"src/${f[0]}"', None, "src/"), False),
        (Word('"src/${f#x}"', None, "src/"), False),
        (Word('"src/${f:-"$x"}"', None, "src/"), False),
        (Word('"src/${f:-"${y:-")"}"}"', None, "src/"), False),
        (Word('"src/$(ls "$(x ")")")"', None, "src/"), False),
        (Word('"src/$(ls "${x:-"}"}")"', None, "src/"), False),
        (Word('"src/$(ls "\\"" x)"', None, "src/"), False),
        (Word("\"src/$(ls ')' x)\"", None, "src/"), False),
        (Word('"src/$(ls \\) x)"', None, "src/"), False),
        (Word('"src/$(ls (a) b)"', None, "src/"), False),
        (Word('"src/$(ls"', None, "src/"), True),
        (Word('"src/$(ls \')"', None, "src/"), True),
        (Word('"src/$(ls "$(x")"', None, "src/"), True),
        (Word('"src/$(cat <<E)"', None, "src/"), True),
        (Word('"src/$(ls # )\n)"', None, "src/"), True),
        (Word('"src/$(ls;# )\n)"', None, "src/"), True),
        (Word('"src/$(ls\n# )\n)"', None, "src/"), True),
        (Word('"src/$(ls a#b)"', None, "src/"), False),
        (Word('"$(cat <<EOF\na (\nEOF\n)"', None, "x"), False),
        (Word('"$(cat <<-EOF\na (\n\tEOF\n)"', None, "x"), False),
        (Word('"$(cat << EOF\na (\nEOF\n)"', None, "x"), False),
        (Word('"$(cat <<\\EOF\na (\nEOF\n)"', None, "x"), False),
        (Word('"$(cat <<"EOF"\na (\nEOF\n)"', None, "x"), False),
        (Word('-m"$(cat <<EOF\na (\nEOF\n)"', None, "-m"), False),
        (Word('--message="$(cat <<EOF\na (\nEOF\n)"', None, "--message="), False),
        (Word('"$(cat <<\'EOF\na (\nEOF\n)"', None, "x"), True),
        (Word('"$(cat <<EOF\na (\nEND\n)"', None, "x"), True),
        (Word("xargs{}", None), True),
        (Word('"$(cat <<EOF\na (\n  EOF\n  )"', None, "x"), False),
        (Word('"src/${files[@]}"', None, "src/"), True),
        (Word('"src/${!files@}"', None, "src/"), True),
        (Word('"src/$(ls "${x:-")"$y}")"', None, "src/"), False),
        (Word('"src/$(ls "$(x ")"$y)")"', None, "src/"), False),
        (Word("{}", None, "x"), False),
        (Word("{}", None), True),
    ],
)
def test_unclear_words(word: Word, is_unclear: bool) -> None:
    """Only a double-quoted text that cannot start with a dash is surely one operand."""
    assert is_unclear == bool(parse_options((word,), SYNTAX).unclear)


COMMANDS = ("ls", "rg x", "sed -n 1p a", "pytest -q", "npm test")


@pytest.mark.parametrize(
    ("given", "expected"),
    [
        (None, ["ls", "pytest -q", "npm test"]),
        ([], ["ls", "pytest -q", "npm test"]),
        ("base", ["ls"]),
        ("extended", ["ls", "rg x", "sed -n 1p a"]),
        (["base", "extended"], ["ls", "rg x", "sed -n 1p a"]),
        (["extended", "python"], ["ls", "rg x", "sed -n 1p a", "pytest -q"]),
    ],
)
def test_chosen_profiles_decide_the_programs(
    given: object, expected: list[str], tmp_path: Path
) -> None:
    """`extended` must be named like a language, and can be the only profile."""
    policy = role_policy(
        "implementing", project=tmp_path, level="full", profiles=chosen_profiles(given)
    )
    assert expected == [command for command in COMMANDS if not reason_of(command, policy)]


def test_every_program_has_its_rules() -> None:
    """Each row of the table is a function, with a program of two rows judged by both."""
    assert all(map(callable, (judge for name in KNOWN for judge in judges_of(name))))
    assert 2 == len(judges_of("bun"))
    assert [] == judges_of("vitest")
    assert is_tool("vitest")
    assert is_tool("npm")
    assert not is_tool("git")
    assert not is_tool("rm")


ROWS = rows("validators")
NOT_FOLLOWED = not_followed("validators")


def validated(row: dict[str, Any], folder: Path) -> tuple[str, str]:
    """Return why the row's arguments are denied, and the words required in the reason."""
    project = str(make_project(folder / "project"))
    args = row["args"]
    wanted = (row["reason"] or "").replace("/project", project)
    policy = Policy(project, allow_destructive=True)
    kind = row["fn"].removeprefix("validate_")
    if kind == "chmod":
        return chmod_reason(args[0]), wanted
    if kind == "pkill":
        return pkill_reason(args[0], args[1]), wanted
    if kind == "path_within_project":
        state = row["fs"] or {}
        if state.get("realpath_error"):
            (folder / "project" / args[0]).symlink_to(args[0].removeprefix("./"))
        elif state.get("exists") and ".." not in args[0]:
            (folder / "project" / args[0]).write_text("x", encoding="utf-8")
        return Paths(policy, temporary=()).write(args[0], [project]), wanted
    words = ["bin/dev.sh" if kind == "dev_script" else kind, *args[0]]
    return reason_of(" ".join(words), policy), wanted


def is_met(row: dict[str, Any], folder: Path) -> bool:
    """Return True if the row's decision and reason are met."""
    reason, wanted = validated(row, folder)
    return row["allowed"] == (not reason) and wanted in reason


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in ROWS])
def test_recorded_decisions(row: dict[str, Any], tmp_path: Path) -> None:
    """Each row is met, except those listed as not followed (AUT-166 to AUT-170)."""
    assert is_met(row, tmp_path) == (row["id"] not in NOT_FOLLOWED)


@pytest.mark.parametrize("row", [pytest.param(row, id=row["id"]) for row in rows("profiles")])
def test_lists_have_all_programs_of_both_revisions(row: dict[str, Any]) -> None:
    """Every program and target of either revision's profiles is in ours (AUT-172)."""
    assert set(row["base"]) <= {*READING, *WRITING}
    for name, commands in row["commands"].items():
        assert set(commands) <= set(PROFILES[name].commands)
        assert set(row["pkill_targets"][name]) <= set(PROFILES[name].pkill_targets)


def test_base_is_always_listed_and_other_profiles_only_when_chosen() -> None:
    """Choosing a profile excludes the others, but never base (AUT-171)."""
    chosen = listed(Policy("/project", profiles=("node",)))
    assert {"ls", "git", "npm"} <= chosen
    assert not {"pip", "cargo", "phpunit"} & chosen
    assert {"pip", "cargo", "phpunit"} <= listed(Policy("/project"))
    assert {"node", "npm", "npx", "vite", "next"} == pkill_targets(
        Policy("/project", profiles=("node",))
    )


def test_rm_and_mv_need_permission_and_are_denied_in_sync() -> None:
    """Adding them to the allowed commands is not enough (AUT-165), and `sync` denies them."""
    assert not {"rm", "mv"} & listed(Policy("/project", extra_commands=("rm", "mv")))
    assert {"rm", "mv"} <= listed(Policy("/project", allow_destructive=True))
    synced = listed(Policy("/project", allow_destructive=True, mode="sync"))
    assert not {"rm", "mv", "mkdir", "cp", "chmod", "pkill"} & synced


def test_extended_profile_adds_everyday_tools() -> None:
    """rg, sed, touch and make are allowed only with `extended`."""
    assert {"rg", "sed", "touch", "make"} <= listed(Policy("/project", profiles=("extended",)))
    assert not {"rg", "sed", "touch", "make"} & listed(Policy("/project"))
