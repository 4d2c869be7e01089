"""Commands skip the search for pydantic plugins, to start quickly."""

import subprocess
import sys
import textwrap


def _printed(code: str) -> list[str]:
    done = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=True
    )
    return done.stdout.split()


def test_a_model_is_built_without_searching_for_plugins() -> None:
    assert _printed(
        """
        import sys
        from cuggino_cli import startup

        startup.begin()
        from pydantic import BaseModel

        class Model(BaseModel):
            number: int

        print(Model(number="1").number, "importlib.metadata" in sys.modules)
        """
    ) == ["1", "False"]


def test_a_pydantic_that_needs_more_of_its_plugins_gets_it() -> None:
    assert _printed(
        """
        from cuggino_cli import startup

        startup.begin()
        from pydantic.plugin._loader import PYDANTIC_ENTRY_POINT_GROUP

        import pydantic.plugin._loader

        print(PYDANTIC_ENTRY_POINT_GROUP, pydantic.plugin._loader.__file__ is not None)
        """
    ) == ["pydantic", "True"]


def test_plugins_that_were_loaded_before_stay() -> None:
    assert _printed(
        """
        import pydantic.plugin._loader as real
        from cuggino_cli import startup

        startup.begin()
        import sys

        print(sys.modules["pydantic.plugin._loader"] is real)
        """
    ) == ["True"]
