import unittest
from pathlib import Path


class TestProject(unittest.TestCase):
    def test_has_a_specification(self):
        self.assertTrue(Path(".specs/temperature.md").read_text(encoding="utf-8").strip())
