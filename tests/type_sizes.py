"""The sizes of the texts on a page, for tests in a browser."""

from __future__ import annotations

from typing import Final

SMALLEST: Final = """
() => {
  let least = 99;
  const shown = (one) => one.checkVisibility() && one.getBoundingClientRect().width > 0;
  for (const one of document.querySelectorAll("body *")) {
    const own = [...one.childNodes].some((n) => n.nodeType === 3 && n.data.trim());
    if (!own || !shown(one) || one.closest(".sr, title")) continue;
    const svg = one.closest("svg");
    const scale = svg ? svg.clientWidth / svg.viewBox.baseVal.width : 1;
    least = Math.min(least, parseFloat(getComputedStyle(one).fontSize) * scale);
  }
  return least;
}
"""
"""The size of the smallest text that is shown, in pixels of the screen."""

NARROWEST: Final = """
() => Math.min(...[...document.querySelectorAll("main .card")]
  .filter((one) => one.checkVisibility()).map((one) => one.clientWidth))
"""
"""The width of the narrowest card."""
