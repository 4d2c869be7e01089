"""`cuggino slots`: the clones that a watch works in, and the work that they hold."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

from cuggino import run
from cuggino.config import load_config
from cuggino.sandbox import views_of
from cuggino.stages import SlotFolder, SlotListing, SlotRef, clean_slots, list_slots
from cuggino.storage import Workspace
from cuggino_cli.follow.output import write_json
from cuggino_cli.help.manual import manual
from cuggino_cli.options.naming import one_line
from cuggino_cli.options.project import project_folder

_UNITS = ("B", "kB", "MB", "GB")
_STEP = 1000.0
_SHORT = 12


@click.group(
    "slots",
    epilog=manual(
        ("cuggino slots list", "All slots, and the work in them."),
        ("cuggino slots clean --dry-run", "What can be removed."),
        exits="0 done, 1 git failed, 2 a run is at work, or wrong usage.",
        see=("watch", "backlog", "help loops"),
    ),
)
def command() -> None:
    """List the clones of `watch --slots` and `run --hands`, and clean them up.

    Slots are folders beside the project ("slotFolder"), used again with their caches. So are gate
    trees, the clean checkouts where merged or committed work is checked. Work that has not landed
    is never removed: it stays in its slot, or under refs in refs/cuggino/kept/ and
    refs/cuggino/candidates/. Only that of attempts which have lost is, in refs/cuggino/attempts/.
    """


@command.command("list", epilog=manual(("cuggino slots list", "Slots, candidates and kept work.")))
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def list_command(as_json: bool) -> int:
    """List slots with their items and sizes, and refs with work.

    `git diff main...REF` shows what a ref holds, `git update-ref -d REF` discards it. While a run
    holds the project, its slots are not looked into.
    """
    folder = project_folder()
    busy = Workspace(folder).holder() is not None
    listing = run(list_slots(folder, **_settings(folder), busy=busy))
    assert listing is not None
    if as_json:
        write_json(_as_json(listing))
        return 0
    for line in _lines(listing):
        click.echo(line)
    return 0


@command.command("clean", epilog=manual(("cuggino slots clean", "Free the space of all slots.")))
@click.option("--dry-run", is_flag=True, help="Only show what would be removed.")
@click.option("--json", "as_json", is_flag=True, help="Print JSON, nothing else.")
def clean(dry_run: bool, as_json: bool) -> int:
    """Remove slots and refs without unlanded work, and the work of attempts that have lost.

    The next watch makes its slots anew, and runs the setup command in them.
    """
    folder = project_folder()
    settings = _settings(folder)
    with Workspace(folder).lock(command="cuggino slots clean"):
        cleaned = run(clean_slots(folder, **settings, dry_run=dry_run))
    assert cleaned is not None
    if as_json:
        write_json(
            {
                "removed": not dry_run,
                "folders": [_folder_json(one) for one in cleaned.folders],
                "refs": [_ref_json(one) for one in cleaned.refs],
                "left": _as_json(cleaned.left),
            }
        )
        return 0
    verb = "Would remove" if dry_run else "Removed"
    for folder_ in cleaned.folders:
        click.echo(f"{verb} {_line(folder_, cleaned.left.folder)}")
    for ref in cleaned.refs:
        click.echo(f"{verb} {_ref_line(ref)}")
    if not cleaned.folders and not cleaned.refs:
        click.echo("There is nothing to remove.")
    kept = [one for one in cleaned.left.folders if one.unlanded]
    for folder_ in kept:
        click.echo(f"Kept {_line(folder_, cleaned.left.folder)}")
    for ref in cleaned.left.refs:
        click.echo(f"Kept {_ref_line(ref)}")
    return 0


def _settings(folder: Path) -> dict[str, Any]:
    config = load_config(folder)
    return {
        "slot_folder": config.slot_folder,
        "specs": config.specs_path,
        "views": views_of(config),
    }


def _lines(listing: SlotListing) -> Iterator[str]:
    if not listing.folders and not listing.refs:
        yield "There are no slots."
        return
    if listing.folders:
        yield f"{listing.folder} ({_size(sum(one.size for one in listing.folders))})"
    yield from (f"  {_line(folder, listing.folder)}" for folder in listing.folders)
    yield from (_ref_line(ref) for ref in listing.refs)


def _line(folder: SlotFolder, home: Path) -> str:
    state = {"gate": "a gate tree", "remains": "left by a killed process"}.get(folder.kind, "")
    if folder.busy:
        state = "in use by a run" if folder.kind in ("slot", "hand") else state
    elif folder.unlanded:
        state = folder.unlanded
    elif folder.kind in ("slot", "hand"):
        state = "all work is safe"
    name = folder.folder.relative_to(home) if folder.kind != "aside" else folder.folder
    item = f"  {folder.item}" if folder.item else ""
    return one_line(f"{name}{item}  {_size(folder.size)}  {state}")


def _ref_line(ref: SlotRef) -> str:
    state = "  landed" if ref.landed else ""
    return one_line(f"{ref.ref}  {ref.commit[:_SHORT]}  {ref.subject}{state}")


def _size(size: float) -> str:
    for unit in _UNITS[:-1]:
        if size < _STEP:
            return f"{size:.0f} {unit}"
        size /= _STEP
    return f"{size:.1f} {_UNITS[-1]}"


def _as_json(listing: SlotListing) -> dict[str, object]:
    return {
        "folder": str(listing.folder),
        "trunk": listing.trunk,
        "folders": [_folder_json(folder) for folder in listing.folders],
        "refs": [_ref_json(ref) for ref in listing.refs],
    }


def _folder_json(folder: SlotFolder) -> dict[str, object]:
    return {
        "kind": folder.kind,
        "folder": str(folder.folder),
        "slot": folder.number or None,
        "item": folder.item or None,
        "base": folder.base or None,
        "size": folder.size,
        "busy": folder.busy,
        "unlanded": folder.unlanded or None,
    }


def _ref_json(ref: SlotRef) -> dict[str, object]:
    return {
        "kind": ref.kind,
        "ref": ref.ref,
        "commit": ref.commit,
        "item": ref.item,
        "subject": ref.subject,
        "landed": ref.landed,
    }
