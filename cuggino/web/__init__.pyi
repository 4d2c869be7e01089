"""Public names of `cuggino.web`; written by `python -m tests.stubs`."""

from cuggino.web.security import (
    Origins,
    Secrets,
)
from cuggino.web.server import (
    App,
    ServeOptions,
    Server,
    make_app,
    serving,
)

__all__ = [
    "App",
    "Origins",
    "Secrets",
    "ServeOptions",
    "Server",
    "make_app",
    "serving",
]
