"""The example shows what it promises."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import support

EXAMPLE = Path(__file__).parents[1] / "examples" / "agent_step.py"


def example(*arguments: str) -> str:
    program = subprocess.run(
        [sys.executable, EXAMPLE, *arguments], capture_output=True, text=True, timeout=support.LIMIT, check=True
    )
    assert program.stderr == ""
    return program.stdout


def test_the_example_shows_each_ending_as_a_model_would_see_it() -> None:
    shown = example()
    for expected in (
        r"\nhello\n\[stderr\]\nand an error\n\[exit code: 3\]\n",
        r"\$ true\n\(no output\)\n",
        r"working\.\.\.\n\[timed out after 500ms\]\n\[killed by signal: SIGTERM\]\n",
        r"\(no output\)\n\[killed by signal: SIGKILL\]\n",
        r"\n100000\n\[output truncated; full output: /.*\]\n",
        r'\[not run: workdir "/no/such/place": can\'t be entered: No such file or directory .*\]\n',
        r"\[exit code: 1\]\n\[denied: /var/tmp/made: read-only mode\]\n"
        r"\[wider modes: workspace-write, danger-full-access\]\n",
    ):
        assert re.search(expected, shown), expected


def test_the_example_takes_a_request_of_one_s_own() -> None:
    shown = example('{"command": "echo mine; sleep 9", "timeout": 0.2}')
    assert shown.startswith("$ echo mine; sleep 9\nmine\n[timed out after 200ms]\n")
