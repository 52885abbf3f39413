"""What becomes of objects that nobody refers to any more."""

from __future__ import annotations

import asyncio
import gc
import weakref
from pathlib import Path

import pytest

import dsh

import support


def open_things() -> tuple[int, int]:
    """The descriptors and threads of this process, once nothing of earlier tests is being ended any more."""
    gc.collect()
    support.until(lambda: support.threads() == 1)
    return support.descriptors(), support.threads()


def test_a_forgotten_process_goes_on(executor: dsh.Executor, tmp_path: Path) -> None:
    executor.start(f"{support.WAIT_FOR_GO}; touch done")
    gc.collect()
    assert executor.stats.live == 1
    (tmp_path / "go").touch()
    support.until((tmp_path / "done").exists)
    support.until(lambda: executor.stats.live == 0)


def test_a_process_keeps_its_executor_alive(tmp_path: Path) -> None:
    with pytest.warns(ResourceWarning, match="was not closed"):
        process = dsh.Executor(cwd=tmp_path).start(f"{support.WAIT_FOR_GO}; echo gone")
    gc.collect()
    (tmp_path / "go").touch()
    assert process.wait(support.LIMIT).exit_code == 0
    assert process.read_output().data == b"gone\n"


def test_a_forgotten_executor_ends_its_commands_and_says_so() -> None:
    before = open_things()
    executor = dsh.Executor()
    pid = executor.start("sleep 60").pid
    guard = executor.stats.guard_pid
    assert guard is not None
    with pytest.warns(ResourceWarning, match="was not closed"):
        del executor
    support.until(lambda: not support.is_alive(pid))
    support.until(lambda: not support.is_alive(guard))
    support.until(lambda: open_things() == before)


def test_a_forgotten_executor_does_not_stop_the_thread_that_drops_it(tmp_path: Path) -> None:
    async def main() -> None:
        executor = dsh.Executor(cwd=tmp_path, grace=2)
        executor.start("trap '' TERM; echo $$ > pid.new; mv pid.new pid; while :; do sleep 0.05; done")
        await support.until_async((tmp_path / "pid").exists)
        pid = int((tmp_path / "pid").read_text())
        with pytest.warns(ResourceWarning):
            del executor
        assert support.is_alive(pid)  # it still has its grace, and we have the thread
        await support.until_async(lambda: not support.is_alive(pid))

    asyncio.run(main())


def test_a_closed_executor_is_forgotten_in_silence() -> None:
    before = open_things()
    executor = dsh.Executor()
    support.run_in_loop(executor, "true")
    executor.close()
    handle = weakref.ref(executor._handle)
    del executor
    assert handle() is None
    assert support.descriptors() == before[0]
    support.until(lambda: support.threads() == before[1])


def test_an_executor_that_could_not_be_made_leaves_nothing() -> None:
    before = open_things()
    for options in ({"shell": "no-such-shell"}, {"timeout": 0}, {"no_such": 1}):
        with pytest.raises((dsh.Error, TypeError)):
            dsh.Executor(**options)
    assert open_things() == before


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
def test_garbage_that_uses_its_own_handles_while_it_is_collected_is_harmless(executor: dsh.Executor) -> None:
    class Owner:
        """A cycle whose finalizer uses what may have been finalized before it."""

        def __init__(self) -> None:
            self.me = self
            self.process = executor.start("sleep 60")
            self.token = dsh.CancelToken()

        def __del__(self) -> None:
            self.process.read_output()
            self.token.cancel()
            self.process.kill()

    for _ in range(20):
        Owner()
    gc.collect()
    assert executor.run("echo well").stdout == b"well\n"
