"""What a killed process left behind, as a loop asks for it."""

from cuggino.sources.orphans import orphans_gone

__all__ = ["orphans_gone"]
