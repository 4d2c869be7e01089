"""The commands, one file each: options in, a stream subscribed, its ending as an exit code."""
