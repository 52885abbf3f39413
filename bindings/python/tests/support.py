"""What the tests share."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import time
from pathlib import Path
from typing import Any, Callable

import dsh

#: Only an end of a test that hangs; nothing is measured with it.
LIMIT = 60.0

#: A command that waits for the file ``go`` in its directory.
WAIT_FOR_GO = "until [ -e go ]; do sleep 0.01; done"


def until(condition: Callable[[], Any], limit: float = LIMIT) -> None:
    """Waits for a condition."""
    deadline = time.monotonic() + limit
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        time.sleep(0.01)


async def until_async(condition: Callable[[], Any]) -> None:
    """Waits for a condition while the loop runs."""
    deadline = time.monotonic() + LIMIT
    while not condition():
        assert time.monotonic() < deadline, "the condition never came true"
        await asyncio.sleep(0.01)


def is_alive(pid: int) -> bool:
    """Whether a process is alive; a zombie is not."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return False
    return stat.rpartition(")")[2].split()[0] not in "ZX"


def descriptors() -> int:
    """How many descriptors this process has open."""
    return len(os.listdir("/proc/self/fd")) - 1


def threads() -> int:
    """How many threads this process has, those of the library among them."""
    return len(os.listdir("/proc/self/task"))


def in_thread(function: Callable[[], Any]) -> Any:
    """What a function gives, or raises, on another thread."""
    outcome: list[Any] = []

    def work() -> None:
        try:
            outcome.append((True, function()))
        except BaseException as failure:  # noqa: BLE001, RUF100
            outcome.append((False, failure))

    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    thread.join(LIMIT)
    assert outcome, "the thread did not come back"
    good, value = outcome[0]
    if good:
        return value
    raise value


def run_in_main(executor: dsh.Executor, command: str | bytes, **options: Any) -> dsh.Result:
    """A blocking run on the main thread."""
    assert threading.current_thread() is threading.main_thread()
    return executor.run(command, **options)


def run_in_thread(executor: dsh.Executor, command: str | bytes, **options: Any) -> dsh.Result:
    """A blocking run on another thread."""
    result: dsh.Result = in_thread(lambda: executor.run(command, **options))
    return result


def run_in_loop(executor: dsh.Executor, command: str | bytes, **options: Any) -> dsh.Result:
    """A run in an event loop."""
    result: dsh.Result = asyncio.run(within(executor.run_async(command, **options)))
    return result


async def within(awaitable: Any) -> Any:
    """What it gives, unless it hangs."""
    return await asyncio.wait_for(awaitable, LIMIT)


def script(text: str) -> list[str]:
    """A Python program that uses the package, as a command line."""
    # Not in Python's development mode, in which asyncio says when a busy machine has made it late.
    return [sys.executable, "-X", "faulthandler", "-W", "default", "-W", "ignore::ResourceWarning", "-c", text]


def run_script(text: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """Runs a Python program that uses the package."""
    return subprocess.run(script(text), capture_output=True, text=True, timeout=LIMIT, check=False, **options)
