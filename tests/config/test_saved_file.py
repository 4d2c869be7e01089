"""Attributes of the configuration file that survive saving."""

from __future__ import annotations

import stat
from pathlib import Path

from cuggino.config import Config, config_path, load_config, save_config

PRIVATE = Config(notify="tgram://secret/1")


def test_its_permissions_are_kept(tmp_path: Path) -> None:
    """A file with a notifier's password stays private."""
    save_config(tmp_path, Config())
    config_path(tmp_path).chmod(0o600)
    save_config(tmp_path, PRIVATE)
    assert 0o600 == stat.S_IMODE(config_path(tmp_path).stat().st_mode)
    assert PRIVATE == load_config(tmp_path)


def test_a_symlink_is_kept(tmp_path: Path) -> None:
    """A configuration shared by several projects is written at its target."""
    shared = tmp_path / "shared.json"
    shared.write_text("{}")
    project = tmp_path / "project"
    project.mkdir()
    config_path(project).symlink_to(shared)
    save_config(project, PRIVATE)
    assert config_path(project).is_symlink()
    assert '"notify"' in shared.read_text()
