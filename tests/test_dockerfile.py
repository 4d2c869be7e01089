"""The images: what a linter says of the Dockerfile, and what must be true of its targets.

No container engine is needed, and none is used: that the images build is not proven here.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest

from cuggino.security.sandbox import NO_SANDBOX
from tests.real_claude import VERSION

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"
TARGETS = {"base": "system", "node": "agent", "python": "agent", "golang": "agent", "ruby": "agent"}
"""What a person may build, and what each is built on."""


class Instruction(NamedTuple):
    """An instruction of a stage: `RUN`, and what follows it, on one line."""

    name: str
    value: str


class Stage(NamedTuple):
    """A stage of the build, on top of another stage or of an image."""

    name: str
    parent: str
    instructions: list[Instruction]

    def values(self, name: str) -> list[str]:
        """What follows each instruction of the name."""
        return [found.value for found in self.instructions if found.name == name]


def parse(text: str) -> tuple[dict[str, str], dict[str, Stage]]:
    """The arguments in front of the first stage, with their defaults, and the stages."""
    arguments: dict[str, str] = {}
    stages: dict[str, Stage] = {}
    lines = "\n".join(line for line in text.splitlines() if not line.lstrip().startswith("#"))
    for line in re.sub(r"\\\n\s*", " ", lines).splitlines():
        if not line.strip():
            continue
        name, _, value = line.partition(" ")
        if name == "FROM":
            parent, middle, stage = value.split()
            assert (True, "AS") == (stage not in stages, middle)
            stages[stage] = Stage(stage, parent, [])
        elif stages:
            list(stages.values())[-1].instructions.append(Instruction(name, value.strip()))
        else:
            assert "ARG" == name
            key, _, default = value.partition("=")
            arguments[key] = default
    return arguments, stages


ARGUMENTS, STAGES = parse(DOCKERFILE.read_text(encoding="utf-8"))


def chain(stage: str) -> list[Stage]:
    """The stage and all that it is built on, the first one first."""
    found = STAGES[stage]
    return [*(chain(found.parent) if found.parent in STAGES else []), found]


def environment(stage: str) -> dict[str, str]:
    """The variables that the stage ends with."""
    settings = [value for part in chain(stage) for value in part.values("ENV")]
    return dict(word.split("=", 1) for value in settings for word in value.split())


def copied(stage: Stage) -> list[str]:
    """The files that the stage takes from the repository."""
    found = [value.split()[:-1] for value in stage.values("COPY") if "--from=" not in value]
    return [source for sources in found for source in sources]


def test_the_linter_has_nothing_to_say() -> None:
    """hadolint finds nothing; on CI it must be there."""
    places = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    hadolint = shutil.which("hadolint", path=places)
    if hadolint is None:
        if os.environ.get("CI") == "true":
            pytest.fail("hadolint must be there on CI: pip install -e '.[dev]'")
        pytest.skip("no hadolint here: pip install -e '.[dev]'")
    ran = subprocess.run(
        [hadolint, "--no-color", "--failure-threshold", "style", str(DOCKERFILE)],
        capture_output=True,
        text=True,
        timeout=60,
        cwd=ROOT,
    )
    assert (0, "", "") == (ran.returncode, ran.stdout, ran.stderr)


def test_the_targets_are_built_on_each_other() -> None:
    """Every target is there, on what it should be on; the one without an agent is the default."""
    assert TARGETS == {name: STAGES[name].parent for name in STAGES if name in TARGETS}
    assert "system" == STAGES["agent"].parent
    assert "base" == list(STAGES)[-1]
    for place, (name, stage) in enumerate(STAGES.items()):
        assert stage.parent not in STAGES or list(STAGES).index(stage.parent) < place, name


def test_images_from_outside_have_a_tag() -> None:
    """Each image has a tag of arguments with defaults, never `latest`, and none has musl."""
    outside = {name: stage.parent for name, stage in STAGES.items() if stage.parent not in STAGES}
    assert {"node-image", "python-image", "golang-image", "ruby-image", "system"} == set(outside)
    for parent in outside.values():
        image = re.sub(r"\$\{(\w+)\}", lambda match: ARGUMENTS[match[1]], parent)
        assert re.fullmatch(r"[a-z]+:([\d.]+-)?(slim-)?bookworm(-slim)?", image), image


def test_versions_are_arguments_of_the_build() -> None:
    """The version of each language can be chosen, and each has a default that is a number."""
    for language in ("NODE", "PYTHON", "GOLANG", "RUBY"):
        assert re.fullmatch(r"\d+(\.\d+)*", ARGUMENTS[f"{language}_VERSION"])
        source = STAGES[f"{language.lower()}-image"].parent
        assert f"{language.lower()}:${{{language}_VERSION}}" == source.partition("-")[0]


@pytest.mark.parametrize("name", STAGES)
def test_what_a_stage_uses_is_declared(name: str) -> None:
    """Each `${NAME}` is an argument of its stage or of one below, or an earlier variable."""
    known = {"PATH"}  # from the image
    for stage in chain(name):
        for instruction in stage.instructions:
            if instruction.name == "ARG":
                key, _, default = instruction.value.partition("=")
                assert default
                known.add(key)
                continue
            assert set(re.findall(r"\$\{(\w+)\}", instruction.value)) <= known
            assert [] == re.findall(r"\$(?!\{)", instruction.value)
            if instruction.name == "ENV":
                known.update(word.split("=")[0] for word in instruction.value.split())


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_ends_as_a_common_user(name: str) -> None:
    """Nothing runs as root: the last instruction names the user that was made for it."""
    assert Instruction("USER", "cuggino") == STAGES[name].instructions[-1]
    assert any("useradd" in value for part in chain(name) for value in part.values("RUN"))


@pytest.mark.parametrize("name", TARGETS)
def test_a_change_of_cuggino_leaves_the_large_layers(name: str) -> None:
    """cuggino is the last that a target takes, and no layer below depends on it."""
    assert "COPY --from=build /opt/cuggino /opt/cuggino" == " ".join(STAGES[name].instructions[-2])
    assert [] == [source for part in chain(name) for source in copied(part)]


@pytest.mark.parametrize("name", TARGETS)
def test_a_target_has_its_settings(name: str) -> None:
    """Sandbox, browsers, folder and program are what the README says."""
    settings = environment(name)
    assert ("AUTONOE_NO_SANDBOX", "1") == (NO_SANDBOX, settings[NO_SANDBOX])
    assert "/tmp/playwright-browsers" == settings["PLAYWRIGHT_BROWSERS_PATH"]
    assert "chromium" == settings["PLAYWRIGHT_MCP_BROWSER"]
    folders = [value for part in chain(name) for value in part.values("WORKDIR")]
    assert ["/workspace"] == folders
    entry = [value for part in chain(name) for value in part.values("ENTRYPOINT")]
    assert ['["tini", "--", "cuggino"]'] == entry


def test_the_programs_of_the_targets_are_installed() -> None:
    """Each target installs what its line in the head of the file promises."""
    system, agent = (" ".join(STAGES[name].values("RUN")) for name in ("system", "agent"))
    for program in ("bash", "ca-certificates", "curl", "git", "python3-venv", "tini"):
        assert program in system.split()
    assert "@anthropic-ai/claude-code@${CLAUDE_VERSION}" in agent
    assert "install-deps chromium" in agent
    for name in ("python", "golang", "ruby"):
        assert any(f"--from={name}-image" in value for value in STAGES[name].values("COPY"))
    assert f"CLAUDE_VERSION={VERSION}" in STAGES["agent"].values("ARG")


def test_stages_that_are_copied_from_come_before() -> None:
    """Each `COPY --from` names a stage above its own."""
    names = list(STAGES)
    for place, stage in enumerate(STAGES.values()):
        for source in re.findall(r"--from=(\S+)", " ".join(stage.values("COPY"))):
            assert names.index(source) < place


def test_what_is_copied_exists_and_nothing_else_is_sent() -> None:
    """Each file that is copied is in the repository, and only those are sent to the builder."""
    sources = [source for stage in STAGES.values() for source in copied(stage)]
    assert sources
    assert [] == [source for source in sources if not (ROOT / source).exists()]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert "*" == rules[0]
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    assert {Path(source).parts[0] for source in sources} == sent


def test_the_wheel_gets_all_it_is_made_of() -> None:
    """What the project's description of its build names is copied into the stage that builds."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {
        "pyproject.toml",
        project["project"]["readme"],
        *project["project"]["license-files"],
        project["tool"]["hatch"]["version"]["path"],
        *project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    }
    assert set() == needed - set(copied(STAGES["build"]))
    # The SDK brings a second copy of the claude program, which is large and installed already.
    extras = {*project["project"]["optional-dependencies"]} - {"test", "dev", "all", "sdk"}
    (asked,) = re.findall(r"'\.\[([\w,]+)\]'", " ".join(STAGES["build"].values("RUN")))
    assert extras == set(asked.split(","))


def test_no_secret_has_a_place_in_an_image() -> None:
    """No argument and no variable is there to hold a key: they are given when a container runs."""
    names = {*ARGUMENTS}
    for stage in STAGES.values():
        names |= {value.split("=")[0] for value in stage.values("ARG")} | {*environment(stage.name)}
    assert set() == {n for n in names if re.search("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", n)}
