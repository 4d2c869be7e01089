"""The live page: what runs, what waits for a person, and the transcript of each run.

    with serving([Path("my-project")]) as server:
        print(server.url)
        server.ended.wait()

Pages read journals, so a run is never slowed down by them. Needs the extra `web`.
"""

from cuggino._lazy import lazy

NAMES = {
    "server": "App ServeOptions Server make_app serving",
    "security": "Origins Secrets",
}
"""Public names by module."""

__getattr__, __dir__, __all__ = lazy(__name__, NAMES)
