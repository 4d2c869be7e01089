"""The command line of cuggino: a thin subscriber to the streams of the library.

`with_cli_output` prints any stream of events as the commands do.
"""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cuggino_cli.screen.printers import with_cli_output as with_cli_output

__all__ = ["with_cli_output"]


if not TYPE_CHECKING:  # or a type checker would accept any name

    def __getattr__(name: str) -> Any:
        if name not in __all__:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        # Loaded on first use: most commands print no stream, and start without Rx.
        from cuggino_cli.screen import printers

        return getattr(printers, name)
