"""Cancelling: tokens, and tasks."""

from __future__ import annotations

import asyncio
import gc
import threading
from pathlib import Path
from typing import Callable

import pytest

import dsh

import support

Run = Callable[..., dsh.Result]

STUBBORN = "trap '' TERM; echo $$ > pid; mv pid begun; while :; do sleep 0.05; done"


def test_a_token_ends_the_commands_that_run_with_it(executor: dsh.Executor, run: Run, tmp_path: Path) -> None:
    token = dsh.CancelToken()

    def cancel() -> None:
        support.until((tmp_path / "begun").exists)
        token.cancel()

    helper = threading.Thread(target=cancel)
    helper.start()
    result = run(executor, "touch begun; sleep 60", cancel=token)
    helper.join()
    assert (result.aborted, result.timed_out, result.cause) == (True, False, dsh.Stop.CANCEL)
    assert result.ending == "was cancelled and was killed by SIGTERM"
    assert token.cancelled


def test_a_token_that_was_thrown_starts_nothing(executor: dsh.Executor, run: Run) -> None:
    token = dsh.CancelToken()
    assert "cancelled=False" in repr(token)
    token.cancel()
    token.cancel()
    for make in (lambda: run(executor, "true", cancel=token), lambda: executor.start("true", cancel=token)):
        with pytest.raises(dsh.AlreadyCancelledError) as failure:
            make()
        assert failure.value.code == dsh.Code.CANCELLED


def test_one_token_ends_many_commands_and_no_others(executor: dsh.Executor) -> None:
    token = dsh.CancelToken()
    mine = [executor.start("sleep 60", cancel=token) for _ in range(20)]
    other = executor.start("sleep 60", cancel=dsh.CancelToken())
    token.cancel()
    assert {process.wait().cause for process in mine} == {dsh.Stop.CANCEL}
    assert other.status == dsh.ProcessStatus.RUNNING


def test_a_token_that_is_forgotten_ends_nothing(executor: dsh.Executor) -> None:
    process = executor.start("echo on", cancel=dsh.CancelToken())
    gc.collect()
    assert process.wait().exit_code == 0


def test_cancelling_a_task_ends_its_command_before_the_task_ends(executor: dsh.Executor, tmp_path: Path) -> None:
    async def main() -> None:
        task = asyncio.ensure_future(executor.run_async("echo $$ > pid.new; mv pid.new pid; sleep 60"))
        await support.until_async((tmp_path / "pid").exists)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert not support.is_alive(int((tmp_path / "pid").read_text()))

    asyncio.run(main())


def test_a_task_that_is_cancelled_again_and_again_still_waits_for_the_end(tmp_path: Path) -> None:
    async def main() -> None:
        with dsh.Executor(cwd=tmp_path, grace=0.3) as executor:
            task = asyncio.ensure_future(executor.run_async(STUBBORN))
            await support.until_async((tmp_path / "begun").exists)
            while not task.done():
                task.cancel()
                await asyncio.sleep(0.02)
            assert task.cancelled()
            assert not support.is_alive(int((tmp_path / "begun").read_text()))

    asyncio.run(main())


def test_asyncio_s_own_timeouts_end_the_command(executor: dsh.Executor) -> None:
    async def main() -> None:
        with pytest.raises(asyncio.TimeoutError):
            await asyncio.wait_for(executor.run_async("sleep 60"), 0.1)
        await support.until_async(lambda: executor.stats.live == 0)

    asyncio.run(main())


def test_the_end_of_the_loop_ends_the_commands_of_its_tasks(executor: dsh.Executor) -> None:
    tasks: list[asyncio.Future[dsh.Result]] = []

    async def main() -> None:
        tasks.extend(asyncio.ensure_future(executor.run_async("sleep 60")) for _ in range(5))
        await asyncio.sleep(0.05)

    asyncio.run(main())
    assert all(task.cancelled() for task in tasks)
    support.until(lambda: executor.stats.live == 0)


def test_cancelling_who_waits_for_a_process_leaves_the_process_alone(executor: dsh.Executor) -> None:
    async def main() -> None:
        process = executor.start("sleep 60")
        for wait in (process.settled(), process.quiescent(), process.__aiter__().__anext__()):
            with pytest.raises(asyncio.TimeoutError):
                await asyncio.wait_for(wait, 0.05)
        assert process.status == dsh.ProcessStatus.RUNNING

    asyncio.run(main())


def test_an_async_block_of_a_process_ends_it_also_when_it_is_cancelled(tmp_path: Path) -> None:
    async def main() -> None:
        with dsh.Executor(cwd=tmp_path, grace=0.3) as executor:
            processes = []

            async def hold() -> None:
                async with executor.start(STUBBORN) as process:
                    processes.append(process)
                    await process.settled()

            task = asyncio.ensure_future(hold())
            await support.until_async((tmp_path / "begun").exists)
            while not task.done():
                task.cancel()
                await asyncio.sleep(0.02)
            assert task.cancelled()
            assert processes[0].status == dsh.ProcessStatus.KILLED
            await support.until_async(lambda: executor.stats.live == 0)

    asyncio.run(main())


def test_a_storm_of_cancellations_leaves_nothing(tmp_path: Path) -> None:
    """Each task is cancelled at another moment: before its command, during it, at its end and after it."""

    async def main() -> None:
        async with dsh.Executor(cwd=tmp_path, grace=2) as executor:
            tasks = []
            for number in range(300):
                tasks.append(asyncio.ensure_future(executor.run_async(f"sleep 0.0{number % 10}; echo {number}")))
                if number % 3:
                    await asyncio.sleep(0)
                victim = tasks[number * 7 % len(tasks)]
                if number % 2:
                    asyncio.get_running_loop().call_later(number % 11 / 500, victim.cancel)
                else:
                    victim.cancel()
            outcomes = await asyncio.gather(*tasks, return_exceptions=True)
            cancelled = sum(isinstance(outcome, asyncio.CancelledError) for outcome in outcomes)
            results = [outcome for outcome in outcomes if isinstance(outcome, dsh.Result)]
            assert cancelled + len(results) == 300
            assert cancelled > 50
            assert all(result.exit_code == 0 for result in results)
            await support.until_async(lambda: executor.stats.live == 0)
            again = await executor.run_async("echo well")
            assert again.stdout == b"well\n"

    asyncio.run(support.within(main()))


def test_a_storm_of_kills_from_threads_leaves_nothing(executor: dsh.Executor) -> None:
    processes = [executor.start("sleep 60 & sleep 60") for _ in range(200)]

    def kill(first: int) -> None:
        for process in processes[first::4]:
            process.kill()

    killers = [threading.Thread(target=kill, args=(first,)) for first in range(4)]
    for killer in killers:
        killer.start()
    for process in processes:
        assert process.wait(support.LIMIT).status == dsh.ProcessStatus.KILLED
    for killer in killers:
        killer.join()
    support.until(lambda: executor.stats.live == 0)
