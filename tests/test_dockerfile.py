"""The Dockerfile passes a linter, and its targets have the promised contents.

No container engine is used, so nothing proves that the images build.
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

from cuggino.config.browser import PLAYWRIGHT_MCP
from tests.limits import LIMIT
from tests.real_claude import VERSION

ROOT = Path(__file__).parents[1]
DOCKERFILE = ROOT / "Dockerfile"
TARGETS = {"base": "system", "node": "agent", "python": "agent", "golang": "agent", "ruby": "agent"}
"""The targets, each with its base."""


class Instruction(NamedTuple):
    """An instruction of a stage, on one line."""

    name: str
    value: str


class Stage(NamedTuple):
    """A stage of the build, based on a stage or an image."""

    name: str
    parent: str
    instructions: list[Instruction]

    def values(self, name: str) -> list[str]:
        """Return the arguments of each instruction of this name."""
        return [found.value for found in self.instructions if found.name == name]


def parse(text: str) -> tuple[dict[str, str], dict[str, Stage]]:
    """Return the global arguments with their defaults, and the stages."""
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
    """Return the stage and its bases, base first."""
    found = STAGES[stage]
    return [*(chain(found.parent) if found.parent in STAGES else []), found]


def copied(stage: Stage) -> list[str]:
    """Return the files that the stage copies from the repository."""
    found = [value.split()[:-1] for value in stage.values("COPY") if "--from=" not in value]
    return [source for sources in found for source in sources]


def test_lint() -> None:
    """hadolint reports nothing; CI requires it."""
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
        timeout=LIMIT,
        cwd=ROOT,
    )
    assert (0, "", "") == (ran.returncode, ran.stdout, ran.stderr)


def test_targets_build_on_each_other() -> None:
    """Every target has its base; the one without an agent is the default."""
    assert TARGETS == {name: STAGES[name].parent for name in STAGES if name in TARGETS}
    assert "system" == STAGES["agent"].parent
    assert "base" == list(STAGES)[-1]
    for place, (name, stage) in enumerate(STAGES.items()):
        assert stage.parent not in STAGES or list(STAGES).index(stage.parent) < place, name


def test_external_images_are_tagged() -> None:
    """Each image has a tag from arguments, never `latest`, and none uses musl."""
    outside = {name: stage.parent for name, stage in STAGES.items() if stage.parent not in STAGES}
    assert {"node-image", "python-image", "golang-image", "ruby-image", "system"} == set(outside)
    for parent in outside.values():
        image = re.sub(r"\$\{(\w+)\}", lambda match: ARGUMENTS[match[1]], parent)
        assert re.fullmatch(r"[a-z]+:([\d.]+-)?(slim-)?bookworm(-slim)?", image), image


def test_versions_are_arguments_of_the_build() -> None:
    """The version of each language is an argument with a numeric default."""
    for language in ("NODE", "PYTHON", "GOLANG", "RUBY"):
        assert re.fullmatch(r"\d+(\.\d+)*", ARGUMENTS[f"{language}_VERSION"])
        source = STAGES[f"{language.lower()}-image"].parent
        assert f"{language.lower()}:${{{language}_VERSION}}" == source.partition("-")[0]


@pytest.mark.parametrize("name", TARGETS)
def test_targets_run_as_an_unprivileged_user(name: str) -> None:
    """Nothing runs as root: the last instruction sets the user."""
    assert Instruction("USER", "cuggino") == STAGES[name].instructions[-1]
    assert any("useradd" in value for part in chain(name) for value in part.values("RUN"))


@pytest.mark.parametrize("name", TARGETS)
def test_changing_cuggino_keeps_the_large_layers(name: str) -> None:
    """cuggino is the last layer of a target, and no layer below depends on it."""
    assert "COPY --from=build /opt/cuggino /opt/cuggino" == " ".join(STAGES[name].instructions[-2])
    assert [] == [source for part in chain(name) for source in copied(part)]


def test_programs_of_the_targets_are_installed() -> None:
    """Each target installs the programs listed at the top of the file."""
    system, agent = (" ".join(STAGES[name].values("RUN")) for name in ("system", "agent"))
    for program in ("bash", "bubblewrap", "ca-certificates", "curl", "git", "python3-venv", "tini"):
        assert program in system.split()
    assert "@anthropic-ai/claude-code@${CLAUDE_VERSION}" in agent
    assert "install-deps chromium" in agent
    for name in ("python", "golang", "ruby"):
        assert any(f"--from={name}-image" in value for value in STAGES[name].values("COPY"))
    assert f"CLAUDE_VERSION={VERSION}" in STAGES["agent"].values("ARG")


def test_the_browser_has_one_version() -> None:
    """The image and the help name the version of the browser's server that runs use."""
    version = PLAYWRIGHT_MCP.rpartition("@")[2]
    assert f"PLAYWRIGHT_MCP_VERSION={version}" in STAGES["agent"].values("ARG")
    help_page = (ROOT / "cuggino_cli" / "help" / "safety.md").read_text(encoding="utf-8")
    assert [version] == re.findall(r"@playwright/mcp@([\d.]+)", help_page)


def test_build_context_is_exactly_the_copied_files() -> None:
    """Each copied file exists, and only those are sent to the builder."""
    sources = [source for stage in STAGES.values() for source in copied(stage)]
    assert sources
    assert [] == [source for source in sources if not (ROOT / source).exists()]
    lines = (ROOT / ".dockerignore").read_text(encoding="utf-8").splitlines()
    rules = [line for line in lines if line and not line.startswith("#")]
    assert "*" == rules[0]
    sent = {rule[1:] for rule in rules if rule.startswith("!")}
    assert {Path(source).parts[0] for source in sources} == sent


def test_build_stage_copies_the_wheel_sources() -> None:
    """The build stage copies everything that pyproject.toml names."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    needed = {
        "pyproject.toml",
        project["project"]["readme"],
        *project["project"]["license-files"],
        project["tool"]["hatch"]["version"]["path"],
        *project["tool"]["hatch"]["build"]["targets"]["wheel"]["packages"],
    }
    assert set() == needed - set(copied(STAGES["build"]))
    extras = {*project["project"]["optional-dependencies"]} - {"test", "dev", "all"}
    (asked,) = re.findall(r"'\.\[([\w,]+)\]'", " ".join(STAGES["build"].values("RUN")))
    assert extras == set(asked.split(","))


def test_images_hold_no_secrets() -> None:
    """No argument and no variable holds a key; keys are passed at run time."""
    names = {*ARGUMENTS}
    for stage in STAGES.values():
        names |= {value.split("=")[0] for value in stage.values("ARG")}
        names |= {word.split("=")[0] for value in stage.values("ENV") for word in value.split()}
    assert set() == {n for n in names if re.search("KEY|TOKEN|SECRET|PASSWORD|CREDENTIAL", n)}


@pytest.mark.parametrize(
    ("tag", "target", "tags"),
    [
        ("v1.2.3", "python", ["1.2.3-python", "python"]),
        ("v1.2.3", "base", ["1.2.3-base", "base", "latest"]),
        ("v1.2.3rc1", "base", ["1.2.3rc1-base"]),
    ],
)
def test_tags_of_images(tag: str, target: str, tags: list[str]) -> None:
    """Images have the tags of Autonoe's; a pre-release replaces no other image."""
    program = ROOT / ".ci" / "image-tags"
    ran = subprocess.run(
        [program, "host/cuggino", tag, target],
        capture_output=True,
        text=True,
        timeout=LIMIT,
        check=True,
    )
    assert [f"host/cuggino:{name}" for name in tags] == ran.stdout.split()
    workflow = (ROOT / ".github" / "workflows" / "release.yml").read_text(encoding="utf-8")
    assert ".ci/image-tags " in workflow
    (targets,) = re.findall(r"target: \[(.*)\]", workflow)
    assert set(TARGETS) == set(targets.split(", "))
