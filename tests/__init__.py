"""The tests of cuggino: shared doubles and real agents here, one folder per package."""

import os
import sys

# Without bytecode, each worker and each command that a test starts compiles the same modules anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
