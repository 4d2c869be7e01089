"""Rules for single programs."""
