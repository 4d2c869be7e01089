"""Endurance: kills at random moments, and a watch over a long backlog."""
