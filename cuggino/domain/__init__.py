"""What is true, without time or disk."""
