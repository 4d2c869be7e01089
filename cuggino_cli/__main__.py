"""`python -m cuggino_cli` is `cuggino`."""

from cuggino_cli.main import entry

entry()
