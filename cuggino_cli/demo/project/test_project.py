"""What is there before anything is written."""

import unittest
from pathlib import Path


class TestProject(unittest.TestCase):
    """The project as it begins."""

    def test_has_a_specification(self):
        """It says what is to be written."""
        self.assertTrue(Path(".specs/temperature.md").read_text(encoding="utf-8").strip())
