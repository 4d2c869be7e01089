"""The location of slots."""

from __future__ import annotations

from pathlib import Path

import pytest

from cuggino.errors import ConfigError
from cuggino.stages.slots import slot_home, slots_of


@pytest.fixture
def project(tmp_path: Path) -> Path:
    (tmp_path / "My Shop" / ".git").mkdir(parents=True)
    return tmp_path / "My Shop"


def test_slots_are_beside_the_project(project: Path, tmp_path: Path) -> None:
    """By default slots are in a folder beside the project, and none is created yet."""
    slots = slots_of(project, None, 3)
    assert [slot.number for slot in slots] == [1, 2, 3]
    assert slots[1].folder == tmp_path / "My Shop.cuggino-slots" / "slot-2" == slots[1].root
    assert slots[1].project == project
    assert not slots[0].root.parent.exists()


def test_a_project_in_a_folder_of_its_repository(project: Path, tmp_path: Path) -> None:
    """The slots of a subproject are beside the repository, with names of their own."""
    within = project / "packages" / "web"
    within.mkdir(parents=True)
    (slot,) = slots_of(within)
    assert slot.root == tmp_path / "My Shop-packages-web.cuggino-slots" / "slot-1"
    assert slot.folder == slot.root / "packages" / "web"


def test_a_folder_of_its_own(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The folder may be relative to the project, absolute, or below the home folder."""
    (tmp_path / "me").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "me"))
    assert slot_home(project, "../slots") == tmp_path / "slots"
    assert slot_home(project, str(tmp_path / "x" / "y")) == tmp_path / "x" / "y"
    assert slot_home(project, "~/slots") == tmp_path / "me" / "slots"


@pytest.mark.parametrize("folder", [".", "slots", ".cuggino/slots", "../My Shop/a", "../link/a"])
def test_a_folder_inside_the_project(project: Path, tmp_path: Path, folder: str) -> None:
    """Slots inside of the project are refused, also behind a link, with exit code 2."""
    (tmp_path / "link").symlink_to(project)
    with pytest.raises(ConfigError, match="inside the project") as caught:
        slots_of(project, folder, 2)
    assert caught.value.code == 2
    assert "slotFolder" in (caught.value.hint or "")


def test_a_file_in_place_of_the_folder(project: Path, tmp_path: Path) -> None:
    """A file cannot be the folder of slots."""
    (tmp_path / "file").write_text("mine")
    with pytest.raises(ConfigError, match="is not a folder"):
        slots_of(project, "../file", 2)


def test_a_folder_that_is_not_writable(
    project: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A folder where nothing can be made is refused before anything starts."""
    (tmp_path / "locked").mkdir()
    monkeypatch.setattr("os.access", lambda path, mode: path != tmp_path / "locked")
    with pytest.raises(ConfigError, match=r"locked is not writable") as caught:
        slots_of(project, "../locked/deep/slots", 2)
    assert "slotFolder" in (caught.value.hint or "")
    assert slot_home(project, "../locked") == tmp_path / "locked"


def test_the_environment_of_slots(project: Path, tmp_path: Path) -> None:
    """Ports and names of containers differ by slot, and by project, and are stable."""
    first, second = slots_of(project, None, 2)
    assert first.env == slots_of(project, None, 2)[0].env
    assert (first.env["CUGGINO_SLOT"], first.env["PORT"]) == ("1", "20100")
    assert (second.env["CUGGINO_SLOT"], second.env["PORT"]) == ("2", "20200")
    assert first.env["COMPOSE_PROJECT_NAME"].startswith("my-shop-")
    (tmp_path / "other" / "My Shop" / ".git").mkdir(parents=True)
    (other,) = slots_of(tmp_path / "other" / "My Shop")
    names = {slot.env["COMPOSE_PROJECT_NAME"] for slot in (first, second, other)}
    assert len(names) == 3
