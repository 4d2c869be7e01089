"""Markers in an agent's text: `extract_markers` turns them into events.

A message is read once, whole or delta by delta. `tags` finds its tags, those that must open a line
by the blocks that `markdown` reads; `reading` matches them and cuts the text into pieces;
`extract_markers` emits the pieces. Each state is a frozen value, and each step a pure function.
"""

from cuggino.operators.markers.extract_markers import MarkerTags, extract_markers, marker_tags
from cuggino.operators.markers.join_split import join_split_messages
from cuggino.operators.markers.tags import LineTags

__all__ = ["LineTags", "MarkerTags", "extract_markers", "join_split_messages", "marker_tags"]
