"""Signals of the host while the main thread waits: Ctrl-C above all."""

from __future__ import annotations

import gc
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Callable

import pytest

import dsh

import support


class AlarmError(Exception):
    """What the handler of the tests raises."""


@pytest.fixture
def alarm() -> Iterator[Callable[[], None]]:
    """Sets a timer whose signal handler raises ``AlarmError``."""

    def ring(*_: object) -> None:
        raise AlarmError

    before = signal.signal(signal.SIGALRM, ring)
    yield lambda: signal.setitimer(signal.ITIMER_REAL, 0.2) and None
    signal.setitimer(signal.ITIMER_REAL, 0)
    signal.signal(signal.SIGALRM, before)


def interrupted(text: str, tmp_path: Path, interrupts: int = 1) -> tuple[str, int]:
    """What a program prints that is sent SIGINT once the file ``pid`` is there, and the pid in that file."""
    with subprocess.Popen(
        support.script(text), cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as program:
        support.until((tmp_path / "pid").exists)
        for number in range(interrupts):
            if number:
                support.until((tmp_path / f"interrupted-{number}").exists)
            program.send_signal(signal.SIGINT)
        output, _ = program.communicate(timeout=support.LIMIT)
    return output, int((tmp_path / "pid").read_text())


def test_ctrl_c_ends_the_command_and_raises(tmp_path: Path) -> None:
    output, pid = interrupted(
        """
import dsh
with dsh.Executor() as executor:
    try:
        executor.run("echo $$ > pid.new; mv pid.new pid; sleep 60")
    except KeyboardInterrupt:
        print("interrupted")
    print(executor.run("echo and well").stdout_text)
""",
        tmp_path,
    )
    assert output.split() == ["interrupted", "and", "well"]
    assert not support.is_alive(pid)


def test_a_second_ctrl_c_does_not_wait_for_a_stubborn_command(tmp_path: Path) -> None:
    output, pid = interrupted(
        """
import dsh, os
executor = dsh.Executor(grace=50)
try:
    executor.run("trap 'touch interrupted-1' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.05; done")
except KeyboardInterrupt:
    print("interrupted", executor.stats.live, flush=True)
    os._exit(0)
""",
        tmp_path,
        interrupts=2,
    )
    assert output.split() == ["interrupted", "1"]
    # Now it is the guard's, which has the same grace.
    subprocess.run(["kill", "-KILL", str(pid)], check=True)
    support.until(lambda: not support.is_alive(pid))


def test_ctrl_c_in_an_event_loop_ends_the_command(tmp_path: Path) -> None:
    output, pid = interrupted(
        """
import asyncio, dsh
async def main():
    async with dsh.Executor() as executor:
        try:
            await executor.run_async("echo $$ > pid.new; mv pid.new pid; sleep 60")
        finally:
            print("left")
try:
    asyncio.run(main())
except KeyboardInterrupt:
    print("interrupted")
""",
        tmp_path,
    )
    assert output.split() == ["left", "interrupted"]
    support.until(lambda: not support.is_alive(pid))


def test_ctrl_c_that_nobody_handles_leaves_nothing(tmp_path: Path) -> None:
    output, pid = interrupted(
        """
import dsh
executor = dsh.Executor()
executor.run("echo $$ > pid.new; mv pid.new pid; setsid sleep 60")
""",
        tmp_path,
    )
    assert output.rstrip().endswith("KeyboardInterrupt")
    assert not support.is_alive(pid)


@pytest.mark.usefixtures("alarm")
def test_a_signal_handler_runs_while_a_run_blocks_and_may_raise(executor: dsh.Executor, tmp_path: Path) -> None:
    with pytest.raises(AlarmError):
        executor.run("echo $$ > pid; kill -ALRM $PPID; sleep 60")
    assert not support.is_alive(int((tmp_path / "pid").read_text()))


def test_a_signal_handler_that_does_not_raise_changes_nothing(executor: dsh.Executor, tmp_path: Path) -> None:
    before = signal.signal(signal.SIGALRM, lambda *_: (tmp_path / "go").touch())
    try:
        assert executor.run(f"kill -ALRM $PPID; {support.WAIT_FOR_GO}; echo gone").stdout == b"gone\n"
    finally:
        signal.signal(signal.SIGALRM, before)


def test_an_exception_of_a_handler_ends_a_wait_and_not_the_process(
    executor: dsh.Executor, alarm: Callable[[], None]
) -> None:
    process = executor.start("sleep 60")
    with pytest.raises(AlarmError):
        alarm()
        process.wait()
    assert process.status == dsh.ProcessStatus.RUNNING


def test_an_exception_of_a_handler_ends_the_wait_for_a_shutdown(tmp_path: Path, alarm: Callable[[], None]) -> None:
    executor = dsh.Executor(cwd=tmp_path, grace=1)
    executor.start("trap '' TERM; touch begun; while :; do sleep 0.05; done")
    support.until((tmp_path / "begun").exists)
    with pytest.raises(AlarmError):
        alarm()
        executor.close()
    executor.close()
    assert executor.stats.live == 0


@pytest.mark.usefixtures("alarm")
def test_no_moment_is_wrong_for_an_interrupt(executor: dsh.Executor) -> None:
    """The handler raises at ever other moments of a run: before, in and after each of its calls."""
    gc.collect()
    gc.disable()  # what is raised in a finalizer is lost, and there are finalizers that are not ours
    try:
        for moment in range(200):
            with pytest.raises(AlarmError):
                signal.setitimer(signal.ITIMER_REAL, 0.0001 * (1 + moment % 60))
                executor.run("echo begun; sleep 0.002")
                support.until(lambda: False)  # in short sleeps: a signal just before a long one would not end it
    finally:
        gc.enable()
    support.until(lambda: executor.stats.live == 0)
