"""Sources, as a program makes them."""

from __future__ import annotations

import pytest
from reactivex import Observable, of

from cuggino.errors import ConfigError
from cuggino.forge import Source, SourceItem
from cuggino.forge.source import source_of


def our_tracker() -> Observable[SourceItem]:
    return of(SourceItem(id="1", title="Add a page"))


def test_a_function_is_a_source_by_its_name() -> None:
    source = source_of(our_tracker)
    assert (source.name, source.every) == ("our-tracker", 60.0)
    assert source.items is our_tracker
    assert source_of(source) is source


@pytest.mark.parametrize("name", ["", "Jira", "a/b", "7up", "x" * 33, "a\n"])
def test_a_name_begins_file_names(name: str) -> None:
    with pytest.raises(ConfigError, match="cannot name a source"):
        Source(name=name, items=our_tracker)


def test_a_lambda_has_no_name() -> None:
    with pytest.raises(ConfigError, match="cannot name a source"):
        source_of(lambda: our_tracker())


@pytest.mark.parametrize("every", [-1, float("nan")])
def test_the_time_between_looks_is_a_time(every: float) -> None:
    with pytest.raises(ConfigError, match="not a time"):
        Source(name="jira", items=our_tracker, every=every)
