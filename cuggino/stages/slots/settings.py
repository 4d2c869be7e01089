"""The settings of a slot: those of the project's repository that commits depend on."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Iterable, Iterator
from contextlib import suppress
from pathlib import Path

from cuggino.files import readable, remove, storing, write_atomic
from cuggino.git import STORED_SCOPES, Git, GitSetting, layout_of, list_settings
from cuggino.operators import Flow
from cuggino.stages.slots.folder import Slot
from cuggino.stages.slots.record import SlotRecord

_COPIED = re.compile(
    r"user\..+|author\..+|committer\..+|commit\.(gpgsign|cleanup|encoding)|gpg\..+|i18n\..+"
    r"|core\.(hookspath|excludesfile|attributesfile|autocrlf|eol|safecrlf|whitespace|commentchar"
    r"|checkstat|trustctime|precomposeunicode|longpaths)"
    r"|(filter|diff|merge)\..+|lfs\.(storage|fetchinclude|fetchexclude)",
    re.DOTALL,
)
"""Settings that change what a commit holds or how it is made; no remote and no credential."""
_OF_CLONE = re.compile(r"(core|extensions)\..+", re.DOTALL)
_OWN = (
    GitSetting("gc.auto", "0"),
    GitSetting("maintenance.auto", "false"),
    GitSetting("receive.denyCurrentBranch", "refuse"),
)
_ESCAPES = {"\\": "\\\\", '"': '\\"', "\n": "\\n", "\t": "\\t", "\b": "\\b"}
_INFO = ("exclude", "attributes")
_LEFT_STATES = (
    *("rebase-merge", "rebase-apply", "sequencer", "MERGE_HEAD", "MERGE_MODE", "MERGE_MSG"),
    *(
        "CHERRY_PICK_HEAD",
        "REVERT_HEAD",
        "BISECT_LOG",
        "BISECT_START",
        "BISECT_NAMES",
        "AUTO_MERGE",
    ),
)


def clone_settings(git: Git) -> Flow[str]:
    """Return the configuration that git wrote into a new clone, without its remote."""
    listed = yield from list_settings(git, scopes=("local",))
    return config_text(one for one in listed if _OF_CLONE.fullmatch(one.name))


def reset_settings(slot: Slot, record: SlotRecord) -> Flow[None]:
    """Give the slot the settings, hooks and ignored files of the project.

    Changes by an agent are undone before git reads them. Paths that are relative to the
    project's repository become absolute.
    """
    copied = yield from list_settings(slot.project_git, scopes=STORED_SCOPES)
    common = (yield from layout_of(slot.project_git)).common
    with storing("write", slot.root / ".git"):
        _reset(slot, record, common, [*_relevant(copied, common), *_OWN])


def forget_states(git: Path) -> None:
    """Remove unfinished merges and rebases, and the locks of a killed git.

    This is safe, as nothing works in a slot that is being prepared.
    """
    for name in _LEFT_STATES:
        remove(git / name)
    for lock in (*git.glob("*.lock"), *(git / "refs").rglob("*.lock")):
        lock.unlink(missing_ok=True)


def config_text(settings: Iterable[tuple[str, str | None]]) -> str:
    """Return the settings as a file of git."""
    return "".join(_lines(settings))


def _reset(slot: Slot, record: SlotRecord, common: Path, copied: Iterable[GitSetting]) -> None:
    git = slot.root / ".git"
    write_atomic(git / "config", record.config + config_text(copied), sync=False)
    for name in ("config.worktree", "commondir", "gitdir"):
        (git / name).unlink(missing_ok=True)
    alternates = git / "objects" / "info" / "alternates"
    if record.alternates and _text(alternates) != record.alternates:
        write_atomic(alternates, record.alternates, sync=False)
    for name in _INFO:
        given = _text(common / "info" / name)
        if name == "exclude":
            within = slot.folder.relative_to(slot.root).as_posix()
            given += f"\n/{'' if within == '.' else within + '/'}.cuggino/\n"
        write_atomic(git / "info" / name, given, sync=False)
    _copy_hooks(common / "hooks", git / "hooks")


def _relevant(listed: Iterable[GitSetting], common: Path) -> Iterator[GitSetting]:
    for name, value in listed:
        if not _COPIED.fullmatch(name):
            continue
        if name == "lfs.storage" and value and not Path(value).is_absolute():
            value = os.fspath(common / value)
        yield GitSetting(name, value)


def _copy_hooks(source: Path, target: Path) -> None:
    """Make the hooks those of the project; samples stay out."""
    if target.is_symlink() or target.is_file():
        target.unlink()
    target.mkdir(exist_ok=True)
    wanted = {}
    with suppress(OSError):
        wanted = {
            path.name: path
            for path in source.iterdir()
            if path.is_file() and path.suffix != ".sample"
        }
    for path in target.iterdir():
        remove(path)
    for name, path in wanted.items():
        shutil.copy(path, target / name)


def _text(path: Path) -> str:
    return readable(path).decode("utf-8", "surrogateescape")


def _lines(settings: Iterable[tuple[str, str | None]]) -> Iterator[str]:
    for name, value in settings:
        section, _, rest = name.partition(".")
        below, _, key = rest.rpartition(".")
        quoted = below.replace("\\", "\\\\").replace('"', '\\"')
        yield f'[{section} "{quoted}"]\n' if below else f"[{section}]\n"
        if value is None:
            yield f"\t{key}\n"
        else:
            escaped = "".join(_ESCAPES.get(one, one) for one in value)
            yield f'\t{key} = "{escaped}"\n'
