"""`cuggino demo`."""

from __future__ import annotations

import shlex
import shutil
import sys
import tempfile
from pathlib import Path

import click

from cuggino import Config, ConfigError, Runtime, save_config
from cuggino.git import Git, gist, git_failure
from cuggino_cli.follow.follower import follow
from cuggino_cli.follow.output import OutputOptions, output_options
from cuggino_cli.follow.views import View
from cuggino_cli.help.manual import Sectioned, manual

_DEMO = Path(__file__).parents[1] / "demo"
_FOCUS = "the temperature conversions of .specs/temperature.md"


@click.command(
    "demo",
    cls=Sectioned,
    epilog=manual(
        ("cuggino demo", "Takes about ten seconds."),
        (
            "cuggino demo --directory /tmp/demo --verbose",
            "In a folder of your choice, with the agents' full output.",
        ),
        ("cuggino demo --json", "As JSON, for another program."),
        exits="as those of cuggino run; 0 when all is well.",
        see=("run", "setup"),
    ),
)
@click.option("--directory", metavar="DIR", help="Where to create the project; must not exist yet.")
@output_options
def command(directory: str | None, output: OutputOptions) -> int:
    """Watch a whole run in a throw-away project; no key needed.

    A scripted agent plans, implements, gets one request for changes and is approved. The loop, the
    setup and check commands and the commits are real.
    """
    folder = make_project(directory)
    if not output.json:
        click.echo(f"The demo project is in {folder}")
    # By its name, as in a configuration: so that the run can be resumed.
    runtime = Runtime.live(cwd=folder, agent=f"scripted:{_DEMO / 'scenario.toml'}")
    where = shlex.quote(str(folder))
    hint = f"`cd {where} && cuggino run --resume` continues where it stopped"
    view = View(output=output, hint=hint, focus=_FOCUS)
    code = follow(lambda stop: runtime.run(focus=_FOCUS, interrupt=stop), view, runtime)
    if not output.json:
        click.echo(f"\nLook around: git -C {where} log --stat")
    return code


def make_project(directory: str | None) -> Path:
    """Create the demo project: files, configuration, and a repository with one commit."""
    if failure := git_failure(Path.cwd()):
        raise ConfigError(failure, hint="install git (again), the demo makes commits")

    if directory is None:
        folder = Path(tempfile.mkdtemp(prefix="cuggino-demo-"))
    else:
        folder = Path(directory).resolve()
        try:
            folder.mkdir(parents=True)
        except OSError as error:
            raise ConfigError(
                f"--directory {directory}: {error.strerror}", hint="name a folder that is not there"
            ) from error
    shutil.copytree(_DEMO / "project", folder, dirs_exist_ok=True)
    (folder / "gitignore").rename(folder / ".gitignore")
    python = shlex.quote(sys.executable)
    save_config(
        folder,
        Config(
            max_iterations=3,
            setup_command=f"{python} -m compileall -q .",
            check_command=f"{python} -m unittest -q",
            gate="block",
            commit=True,
        ),
    )
    for words in (
        ("init", "--quiet"),
        ("config", "user.name", "cuggino demo"),
        ("config", "user.email", "demo@cuggino.invalid"),
        ("config", "commit.gpgsign", "false"),
        ("add", "--all"),
        ("commit", "--quiet", "--message", "Start with a specification"),
    ):
        said = Git(cwd=folder).now(*words)
        if said.code:
            raise ConfigError(f"git {words[0]} failed: {gist(said.words)}")
    return folder
