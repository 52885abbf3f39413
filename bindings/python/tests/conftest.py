"""Fixtures."""

from __future__ import annotations

import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

import dsh

import support

# Whoever started the tests may have had these ignored, as a shell does for its jobs in the background, and the programs
# that the tests start would inherit that.
signal.signal(signal.SIGINT, signal.default_int_handler)
signal.signal(signal.SIGQUIT, signal.SIG_DFL)


@pytest.fixture
def executor(tmp_path: Path) -> Iterator[dsh.Executor]:
    """An executor whose commands run in the test's own directory."""
    with dsh.Executor(cwd=tmp_path, spill_dir=tmp_path) as executor:
        yield executor


@pytest.fixture(params=[support.run_in_main, support.run_in_thread, support.run_in_loop])
def run(request: pytest.FixtureRequest) -> Callable[..., dsh.Result]:
    """The ways to run a command and have its result. All have to give the same."""
    way: Callable[..., dsh.Result] = request.param
    return way
