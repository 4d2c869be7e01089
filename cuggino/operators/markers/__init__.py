"""Markers in an agent's text: `extract_markers` turns them into events.

`code_regions` finds Markdown code, in which tags are text; `pairs` matches opening and closing
tags; `open_tags` and `draft` do both for a message that is still being written. `line_tags` finds
the tags that count only at the start of a line, by the `blocks` of Markdown.
"""

from cuggino.operators.markers.extract_markers import MarkerTags, extract_markers, marker_tags
from cuggino.operators.markers.line_tags import LineTags

__all__ = ["LineTags", "MarkerTags", "extract_markers", "marker_tags"]
