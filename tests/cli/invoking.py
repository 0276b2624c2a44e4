"""Run commands in this process, to test what they print and which files they write."""

from __future__ import annotations

from click.testing import CliRunner

from sequela.cli import main


def run(*arguments, code=0):
    """Run a command, and check that its exit code is `code` and that it shows no traceback."""
    result = CliRunner().invoke(main, [str(x) for x in arguments])
    assert result.exit_code == code, result.output + repr(result.exception)
    if code:
        assert "Traceback" not in result.output
    return result
