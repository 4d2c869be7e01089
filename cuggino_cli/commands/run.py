"""`cuggino run`."""

from __future__ import annotations

from pathlib import Path

import click

from cuggino_cli.follow import OutputOptions, follow, output_options


@click.command("run", epilog="Exit codes: 0 approved, 10 spec issue, 11 max iterations, 1 failed.")
@click.option(
    "--focus", "-f", required=True, metavar="TEXT|@FILE", help="What to work on, or a file with it."
)
@click.option("--review", metavar="FILE", help="Your own review, for the first planning agent.")
@click.option("--slow", is_flag=True, help="Review after every task.")
@click.option("--agent", "-a", metavar="NAME", help="claude, or scripted:FILE.")
@output_options
def command(
    focus: str, review: str | None, slow: bool, agent: str | None, output: OutputOptions
) -> int:
    """Plan, implement and review until the work matches the specs.

    The rest of the settings comes from .cuggino.json; see `cuggino setup`.
    """
    from cuggino import Runtime
    from cuggino.storage import read_text_file

    folder = Path.cwd()
    runtime = Runtime.live(cwd=folder, agent=agent)
    text = read_text_file(folder / review, what="--review") if review else None
    return follow(runtime.run(focus=focus, review=text, slow=slow), output)
