"""What single programs may be asked to do."""
