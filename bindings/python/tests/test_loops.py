"""Event loops: one, several, beside threads; short and broken ones."""

from __future__ import annotations

import asyncio
import gc
import os
import threading
from pathlib import Path
from typing import Any

import pytest

import dsh
from dsh import _events, _library

import support


def test_five_hundred_processes_run_in_one_loop_and_the_output_of_each_is_complete(executor: dsh.Executor) -> None:
    async def follow(process: dsh.Process) -> bytes:
        return b"".join([chunk.data async for chunk in process])

    async def main() -> None:
        before = support.threads()
        processes = [
            executor.start(f"echo begin {number}; sleep 0.2; seq {number} {number + 200}", tag=number)
            for number in range(500)
        ]
        outputs = asyncio.gather(*map(follow, processes))
        infos = asyncio.gather(*(process.settled() for process in processes))
        assert support.threads() <= before
        for number, output in enumerate(await outputs):
            lines = "".join(f"{line}\n" for line in range(number, number + 201))
            assert output.decode() == f"begin {number}\n{lines}"
        assert [info.tag for info in await infos] == list(range(500))
        assert {info.exit_code for info in await infos} == {0}

    asyncio.run(support.within(main()))


def test_two_hundred_runs_at_the_same_time_take_no_threads(executor: dsh.Executor, tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "go")

    async def main() -> None:
        before = support.threads()
        runs = asyncio.gather(*(executor.run_async(f"read <go; echo {number}") for number in range(200)))
        await asyncio.sleep(0)
        assert executor.stats.live == 200
        assert support.threads() <= before
        cue = os.open(tmp_path / "go", os.O_RDWR)  # which waits for no reader
        os.write(cue, b"\n" * 200)
        assert [result.stdout for result in await runs] == [f"{number}\n".encode() for number in range(200)]
        os.close(cue)

    asyncio.run(support.within(main()))


def test_output_comes_while_the_command_runs(executor: dsh.Executor, tmp_path: Path) -> None:
    async def main() -> None:
        process = executor.start(f"echo one; {support.WAIT_FOR_GO}; echo two")
        chunks = []
        async for chunk in process:
            chunks.append(chunk.text)
            (tmp_path / "go").touch()
        assert chunks == ["one\n", "two\n"]

    asyncio.run(support.within(main()))


def test_a_second_loop_over_the_output_goes_on_where_the_first_was_left(executor: dsh.Executor, tmp_path: Path) -> None:
    async def main() -> None:
        process = executor.start(f"echo one; {support.WAIT_FOR_GO}; echo two")
        async for chunk in process:
            assert chunk.text == "one\n"
            break
        (tmp_path / "go").touch()
        assert [chunk.text async for chunk in process] == ["two\n"]
        assert [chunk.text async for chunk in process] == []

    asyncio.run(support.within(main()))


def test_the_output_ends_with_the_process_also_when_its_pipes_are_held(tmp_path: Path) -> None:
    async def main() -> None:
        async with dsh.Executor(drain=0.1, cwd=tmp_path) as executor:
            process = executor.start("sleep 60 & echo up")
            assert [chunk.text async for chunk in process] == ["up\n"]

    asyncio.run(support.within(main()))


def test_events_tell_what_was_and_what_comes(executor: dsh.Executor, tmp_path: Path) -> None:
    ways = [dsh.EventKind.OUTPUT, dsh.EventKind.EXIT, dsh.EventKind.SETTLED, dsh.EventKind.QUIESCENT]

    async def main() -> None:
        process = executor.start(f"echo one; {support.WAIT_FOR_GO}; sleep 0.2 >/dev/null 2>&1 &")
        kinds = []
        async for kind in process.events():
            kinds.append(kind)
            (tmp_path / "go").touch()
        assert list(dict.fromkeys(kinds)) == ways
        assert [kind async for kind in process.events()] == ways
        assert (await process.quiescent()).quiescent

    asyncio.run(support.within(main()))


def test_a_process_of_a_plain_thread_can_be_awaited_afterwards(executor: dsh.Executor) -> None:
    ended, running = executor.start("true"), executor.start("sleep 0.2")
    ended.wait()
    assert asyncio.run(support.within(ended.settled())).exit_code == 0
    assert asyncio.run(support.within(running.settled())).exit_code == 0


def test_several_loops_and_threads_use_one_executor(executor: dsh.Executor) -> None:
    outputs: dict[int, list[bytes]] = {}

    async def in_loop(number: int) -> None:
        for _ in range(5):
            runs = [executor.run_async(f"echo {number} {turn}") for turn in range(20)]
            outputs.setdefault(number, []).extend(result.stdout for result in await asyncio.gather(*runs))

    def block(number: int) -> None:
        for _ in range(5):
            for turn in range(20):
                outputs.setdefault(number, []).append(executor.run(f"echo {number} {turn}").stdout)

    threads = [threading.Thread(target=asyncio.run, args=(in_loop(number),)) for number in range(4)]
    threads += [threading.Thread(target=block, args=(number,)) for number in range(4, 6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(support.LIMIT)
    for number in range(6):
        assert outputs[number] == [f"{number} {turn}\n".encode() for turn in range(20)] * 5


def test_several_loops_can_wait_for_one_process(executor: dsh.Executor, tmp_path: Path) -> None:
    process = executor.start(f"{support.WAIT_FOR_GO}; exit 5")
    codes: list[Any] = []

    async def wait() -> None:
        infos = await asyncio.gather(process.settled(), process.settled())
        codes.extend(info.exit_code for info in infos)

    threads = [threading.Thread(target=asyncio.run, args=(wait(),)) for _ in range(4)]
    for thread in threads:
        thread.start()
    support.until(lambda: len(process._handle.waiters) == 8)
    (tmp_path / "go").touch()
    for thread in threads:
        thread.join(support.LIMIT)
    assert codes == [5] * 8


def test_a_loop_that_is_busy_keeps_no_other_waiting(executor: dsh.Executor, tmp_path: Path) -> None:
    busy, free = threading.Event(), threading.Event()

    async def occupied() -> int | None:
        running = asyncio.ensure_future(executor.run_async(support.WAIT_FOR_GO))
        await asyncio.sleep(0.05)  # it waits for events now
        busy.set()
        assert free.wait(support.LIMIT)
        return (await running).exit_code

    occupied_thread = threading.Thread(target=asyncio.run, args=(occupied(),))
    occupied_thread.start()
    assert busy.wait(support.LIMIT)
    for _ in range(3):
        assert support.run_in_loop(executor, "echo x").stdout == b"x\n"
    (tmp_path / "go").touch()
    assert support.run_in_loop(executor, "sleep 0.1; echo y").stdout == b"y\n"
    free.set()
    occupied_thread.join(support.LIMIT)
    assert not occupied_thread.is_alive()


def test_loops_come_and_go(executor: dsh.Executor) -> None:
    for number in range(20):
        assert support.run_in_loop(executor, f"echo {number}").stdout == f"{number}\n".encode()
    assert executor._handle.events._watching == {}


def test_nothing_is_watched_while_nobody_waits(executor: dsh.Executor) -> None:
    async def main() -> None:
        await executor.run_async("true")
        loop: Any = asyncio.get_running_loop()
        await asyncio.sleep(0)  # its next turn
        assert executor._handle.events._descriptor not in loop._selector.get_map()

    asyncio.run(main())


@pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::ResourceWarning")
def test_a_loop_that_was_closed_with_tasks_in_it_disturbs_no_other(executor: dsh.Executor) -> None:
    loop = asyncio.new_event_loop()
    loop.set_exception_handler(lambda *_: None)
    tasks = [loop.create_task(executor.run_async("sleep 0.2")) for _ in range(3)]
    loop.run_until_complete(asyncio.sleep(0.05))
    loop.close()
    assert support.run_in_loop(executor, "sleep 0.4; echo well").stdout == b"well\n"
    del tasks, loop
    gc.collect()
    assert support.run_in_loop(executor, "echo well").stdout == b"well\n"
    assert executor._handle.events._watching == {}


def test_a_task_that_nobody_holds_is_not_lost_while_it_waits(executor: dsh.Executor) -> None:
    done: list[bytes] = []

    async def run() -> None:
        done.append((await executor.run_async("sleep 0.2; echo kept")).stdout)

    async def main() -> None:
        asyncio.ensure_future(run())  # noqa: RUF006
        while not done:
            gc.collect()
            await asyncio.sleep(0.01)

    asyncio.run(support.within(main()))
    assert done == [b"kept\n"]


def test_an_event_queue_that_fails_raises_in_every_waiter(
    executor: dsh.Executor, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = _library.call

    def broken(function: Any, *arguments: Any) -> None:
        if function is _library.lib.dsh_next_event:
            raise dsh.InternalError("broken for the test", code=dsh.Code.PANIC)
        real(function, *arguments)

    async def main() -> None:
        runs = [asyncio.ensure_future(executor.run_async("sleep 0.1")) for _ in range(3)]
        await asyncio.sleep(0)
        monkeypatch.setattr(_events, "call", broken)
        outcomes = await asyncio.gather(*runs, return_exceptions=True)
        assert [str(outcome) for outcome in outcomes] == ["broken for the test"] * 3

    asyncio.run(support.within(main()))


def test_nothing_runs_when_events_can_not_be_had(
    executor: dsh.Executor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: Any) -> None:
        raise dsh.SystemCallError("no descriptor left, for the test", code=dsh.Code.SYSTEM, stage="pipe")

    with monkeypatch.context() as patch:
        patch.setattr(_events, "call", refused)
        with pytest.raises(OSError, match="no descriptor left"):
            support.run_in_loop(executor, "touch ran")
    assert executor.stats.ended == 0
    assert not (tmp_path / "ran").exists()
    assert support.run_in_loop(executor, "echo well").stdout == b"well\n"
