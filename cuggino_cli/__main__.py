"""`python -m cuggino_cli` is `cuggino`."""

import os
import sys
from contextlib import suppress

# Python adds the current folder, which may hold a `click.py` of a cloned project.
with suppress(FileNotFoundError):  # the folder is deleted
    if sys.path[:1] == [os.getcwd()] and not __file__.startswith(os.path.join(sys.path[0], "")):  # noqa: PTH109, PTH118
        del sys.path[0]

from cuggino_cli.console_scripts import cuggino

cuggino()
