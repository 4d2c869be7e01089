"""The initial state of the project."""

import unittest
from pathlib import Path


class TestProject(unittest.TestCase):
    """The initial project."""

    def test_has_a_specification(self):
        """The specification is not empty."""
        self.assertTrue(Path(".specs/temperature.md").read_text(encoding="utf-8").strip())
