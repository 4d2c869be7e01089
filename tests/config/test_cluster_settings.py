"""`cluster`: its short and its long form."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cuggino.config import Config, changed_config, load_config, save_config
from cuggino.errors import ConfigError


def loaded(folder: Path, cluster: object) -> Config:
    """Return the configuration with this value."""
    (folder / ".cuggino.json").write_text(json.dumps({"cluster": cluster}))
    return load_config(folder)


def test_short_form(tmp_path: Path) -> None:
    """A string is the address; without one no cluster is configured."""
    assert "tls://host:8786" == loaded(tmp_path, "tls://host:8786").cluster_settings.address
    assert Config().cluster is None
    settings = Config().cluster_settings
    assert (None, "origin", {}) == (settings.address, settings.remote, settings.needs)


def test_long_form(tmp_path: Path) -> None:
    """An object survives a change and being saved; only what was set is written."""
    given = {"address": "local", "detach": True, "needs": {"gpu": 1.0}}
    config = changed_config(loaded(tmp_path, given), {"max_iterations": 3})
    assert given == config.model_dump()["cluster"]
    save_config(tmp_path, config)
    assert given == json.loads((tmp_path / ".cuggino.json").read_text())["cluster"]
    assert config == load_config(tmp_path)
    assert {} == loaded(tmp_path, {}).model_dump()["cluster"]


@pytest.mark.parametrize(
    ("cluster", "message"),
    [
        (7, '"cluster" is 7: must be a string or an object'),
        ("two words", '"cluster" is "two words": must be an address such as'),
        ({"adress": "local"}, 'unknown key "adress" in "cluster"'),
        ({"ca": "ca.pem", "key": "key.pem"}, "TLS needs ca, cert and key: cert missing"),
        ({"ca": "ca.pem"}, "cert and key missing"),
        ({"needs": {"gpu": 0}}, '"cluster.needs.gpu" is 0: must be greater than 0'),
        ({"needs": {"two words": 1}}, 'invalid key "two words" in "cluster.needs": must be'),
        ({"needs": ["gpu"]}, '"cluster.needs" is ["gpu"]: must be an object'),
        ({"insecure": "yes"}, '"cluster.insecure" is "yes": must be true or false'),
        ({"remote": "--upload-pack=x"}, '"cluster.remote" is "--upload-pack=x": must be'),
    ],
)
def test_invalid(cluster: object, message: str, tmp_path: Path) -> None:
    """The error names the place and the value."""
    with pytest.raises(ConfigError) as caught:
        loaded(tmp_path, cluster)
    assert caught.value.message.startswith(".cuggino.json: ")
    assert message in caught.value.message
