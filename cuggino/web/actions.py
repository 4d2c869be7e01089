"""What a person does on a page: forms, answered by a redirect."""

from __future__ import annotations

from collections.abc import Sequence

from starlette.routing import Route

ROUTES: Sequence[Route] = ()
"""Routes below the secret path."""
