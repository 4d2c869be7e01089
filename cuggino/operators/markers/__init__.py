"""Markers in an agent's text: `extract_markers` turns them into events.

`open_tags` reads a text from left to right, in pieces or whole, and finds the tags outside of
Markdown code; `pairs` matches them; `draft` emits what is decided of a message that is still being
written. `line_tags` finds the tags that count only at the start of a line, by the `blocks` of
Markdown.
"""

from cuggino.operators.markers.extract_markers import MarkerTags, extract_markers, marker_tags
from cuggino.operators.markers.line_tags import LineTags

__all__ = ["LineTags", "MarkerTags", "extract_markers", "marker_tags"]
