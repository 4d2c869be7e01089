"""The live page: what runs, what waits for a person, and the transcript of each run.

    with serving([Path("my-project")]) as server:
        print(server.url)
        server.ended.wait()

Pages read journals, so a run is never slowed down by them.
"""

from cuggino.web.security import Origins, Secrets
from cuggino.web.server import App, ServeOptions, Server, make_app, serving

__all__ = [
    "App",
    "Origins",
    "Secrets",
    "ServeOptions",
    "Server",
    "make_app",
    "serving",
]
