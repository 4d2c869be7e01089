"""`cuggino mcp`: starting and stopping the server of the deliverable tools."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from cuggino.domain.deliverable_tools import TOOLS
from cuggino.errors import install_extra
from cuggino_cli.main import main
from tests.cli.cli import Cli
from tests.limits import LIMIT
from tests.mcp_server import arguments


def run(*said: str, before: str = "") -> subprocess.CompletedProcess[str]:
    """Run the program with these arguments, after these statements."""
    program = (
        f"import sys; {before}\nfrom cuggino_cli.main import main\nsys.exit(main(sys.argv[1:]))"
    )
    return subprocess.run(
        [sys.executable, "-c", program, *said],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=LIMIT,
    )


def test_without_the_library(tmp_path: Path) -> None:
    """Without the MCP library it explains how to install it and exits with 2."""
    said = arguments(tmp_path)[2:]
    ended = run(*said, before="sys.modules['mcp'] = sys.modules['mcp.server'] = None")
    assert 2 == ended.returncode
    assert "" == ended.stdout
    assert [
        "cuggino: the deliverable tools need the MCP library, which is not installed",
        f"  {install_extra('deliver')}",
    ] == ended.stderr.splitlines()


@pytest.mark.parametrize("tools", ["create,nothing", " , ", "create;list"])
def test_unknown_tools(tools: str, tmp_path: Path, cli: Cli) -> None:
    """An unknown tool is a usage error that lists the known ones."""
    assert 2 == main(arguments(tmp_path, tools=tools)[2:])
    assert ", ".join(TOOLS) in " ".join(cli.printed().err.split())


def test_the_library_is_loaded_late() -> None:
    """Neither the command's help nor the server's module loads the MCP library."""
    check = "assert not {'mcp', 'mcp_types', 'anyio', 'starlette'} & set(sys.modules)"
    program = (
        "import sys\nimport cuggino.mcp_server\nimport cuggino_cli.commands.mcp\n"
        f"from cuggino_cli.main import main\nassert 0 == main(['mcp', '--help'])\n{check}"
    )
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, timeout=LIMIT)
