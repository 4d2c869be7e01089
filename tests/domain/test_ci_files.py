"""Changes to the definitions of CI and git hooks are recognized by their paths."""

from __future__ import annotations

import pytest

from cuggino.domain import touches_ci
from tests.vectors import each


@each(
    "path",
    [
        ".github/workflows/ci.yml",
        ".github/actions/setup/run.sh",
        ".github",
        "packages/web/.github/dependabot.yml",
        "tools/setup/action.yml",
        ".GitHub/Workflows/CI.YML",
        ".gitlab-ci.yml",
        ".gitlab/ci/test.yml",
        "templates/deploy.gitlab-ci.yml",
        "ci/test.yaml",
        ".ci/jobs/test.yml",
        ".circleci/config.yml",
        "azure-pipelines.yml",
        "azure-pipelines-release.yaml",
        "azure-pipeline.yml",
        "Jenkinsfile",
        "deploy/Jenkinsfile.release",
        "release.jenkinsfile",
        ".buildkite/pipeline.sh",
        ".woodpecker.yml",
        ".woodpecker/build.yml",
        "bitbucket-pipelines.yml",
        ".travis.yml",
        "appveyor.yml",
        ".cirrus.star",
        "cloudbuild.yaml",
        ".husky/pre-commit",
        "web/.husky/pre-commit",
        ".githooks/pre-push",
        ".pre-commit-config.yaml",
        ".pre-commit-hooks.yaml",
        "lefthook.yml",
        ".lefthook-local.toml",
        ".simple-git-hooks.json",
        ".gitlab-ci.yml.d/../.gitlab-ci.yml",
        ".github\\workflows\\ci.yml",
        *(".gitlab-ci/a", ".gitea/a", ".forgejo/a", ".semaphore/a", ".teamcity/a", ".tekton/a"),
        *(".azure-pipelines/a", ".azuredevops/a", ".builds/a", ".harness/a", ".drone/a"),
        *(".codefresh/a", ".lefthook/a", ".hooks/a", ".git-hooks/a", "githooks/a", "git-hooks/a"),
    ],
)
def test_a_definition_counts(path: str) -> None:
    assert touches_ci([path]) == (path,)


@pytest.mark.parametrize(
    "path",
    [
        "",
        ".",
        "Makefile",
        "package.json",
        "scripts/test.sh",
        "src/github/workflows.py",
        "docs/gitlab-ci.md",
        "ci/run.sh",
        "src/jenkinsfiles.py",
        "precision/data.yml",
        "lefthook.md",
        "src/action.py",
        ".gitignore",
    ],
)
def test_other_files_do_not_count(path: str) -> None:
    assert touches_ci([path]) == ()


def test_the_order_is_kept_and_both_sides_of_a_rename_count() -> None:
    changed = ["z/.gitlab-ci.yml", "src/a.py", ".github/workflows/a.yml", "old.yml"]
    assert touches_ci(iter(changed)) == ("z/.gitlab-ci.yml", ".github/workflows/a.yml")
