"""Forms: reading one, and the response to it."""

from __future__ import annotations

from urllib.parse import parse_qsl

from starlette.requests import Request
from starlette.responses import RedirectResponse

from cuggino.web.site import Site

MOST_FIELDS = 200


async def read(request: Request) -> dict[str, str]:
    """Return the fields of a POSTed form; of equal names, the last.

    Line ends are `\\n`. An invalid form has no fields.
    """
    body = (await request.body()).decode("utf-8", "replace")
    try:
        fields = parse_qsl(
            body, keep_blank_values=True, errors="replace", max_num_fields=MOST_FIELDS
        )
    except ValueError:
        return {}
    return {name: value.replace("\r\n", "\n").replace("\r", "\n") for name, value in fields}


def back(request: Request, *parts: str, anchor: str = "") -> RedirectResponse:
    """Return a redirect to a page of this site, so that a reload does not resend the form."""
    site: Site = request.app.state.site
    return RedirectResponse(site.url(*parts) + (f"#{anchor}" if anchor else ""), status_code=303)
