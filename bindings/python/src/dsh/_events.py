"""From the executor's one queue of events to everybody who waits, in any event loop.

The library has one event descriptor and one queue per executor. Every loop in which somebody waits watches the
descriptor; whichever loop comes first empties the queue for all, and wakes waiters in other loops as asyncio allows it
from foreign threads. So a loop that is busy keeps nobody else waiting, no loop is the owner that must not end, and no
thread is needed. A loop watches only while something in it waits: nothing keeps an idle loop, or a descriptor of an
executor that is gone, registered.

An event is a hint. Whoever is woken looks at the process itself, and whoever begins to wait looks once more after the
waiter is in place, so that no event can be missed, whoever took it and whenever.

There are no locks here. Handles are freed, and abandoned coroutines closed, inside any other code on any thread, which
may be the code that holds the lock. Every step is one operation on a dict or set, which Python carries out as a whole.
"""

from __future__ import annotations

import asyncio
import ctypes
import os
import weakref
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from dsh import _abi
from dsh._errors import Error
from dsh._library import call, lib

if TYPE_CHECKING:
    from dsh._executor import ExecutorHandle
    from dsh._process import ProcessHandle

#: How many events are taken at once, before the loop's other work has its turn.
_BATCH = 256


class Waiter:
    """Somebody who waits, in one loop, for events of one process."""

    def __init__(self, process: ProcessHandle, kinds: frozenset[int]) -> None:
        self.process = process
        self.kinds = kinds
        self.loop = asyncio.get_running_loop()
        self._woken = False
        self._failure: Error | None = None
        self._future: asyncio.Future[None] | None = None

    async def wait(self) -> None:
        """Until it was woken since the last time. Raises when events can't be had any more."""
        while not self._woken:
            self._future = self.loop.create_future()
            await self._future
        self._woken = False
        if self._failure is not None:
            raise self._failure

    def wake(self, current: asyncio.AbstractEventLoop) -> None:
        """On any thread; ``current`` is the loop that runs there."""
        if current is self.loop:
            self._wake()
            return
        with suppress(RuntimeError):  # when that loop has been closed, nobody waits there any more
            self.loop.call_soon_threadsafe(self._wake)

    def fail(self, failure: Error, current: asyncio.AbstractEventLoop) -> None:
        self._failure = failure
        self.wake(current)

    def _wake(self) -> None:
        self._woken = True
        if self._future is not None and not self._future.done():
            self._future.set_result(None)


class Dispatcher:
    """Hands out the events of one executor."""

    def __init__(self, executor: ExecutorHandle) -> None:
        # The executor owns its dispatcher; waiters hold their process, which holds the executor.
        self._executor = weakref.ref(executor)
        self._pid = os.getpid()
        self._processes: weakref.WeakValueDictionary[int, ProcessHandle] = weakref.WeakValueDictionary()
        # Each entry is changed in its loop only. It is also what keeps waiting tasks alive: a loop refers to its
        # readers, and from here on to its waiters, but asyncio itself refers to tasks weakly.
        self._watching: dict[asyncio.AbstractEventLoop, set[Waiter]] = {}
        descriptor = ctypes.c_int32()
        call(lib.dsh_executor_event_fd, executor, ctypes.byref(descriptor))
        self._descriptor = descriptor.value

    @contextmanager
    def waiting(self, process: ProcessHandle, kinds: frozenset[int]) -> Iterator[Waiter]:
        """A waiter in the running loop, in its place as long as the block lasts."""
        waiter = Waiter(process, kinds)
        self._processes[process.id] = process
        process.waiters[waiter] = None
        try:
            self._watch(waiter)
            yield waiter
        finally:
            process.waiters.pop(waiter, None)
            self._unwatch(waiter)

    def _watch(self, waiter: Waiter) -> None:
        loop = waiter.loop
        here = self._watching.get(loop)
        if here is not None:
            here.add(waiter)
            return
        for other in list(self._watching):
            if other.is_closed():  # with tasks that nobody has awaited to their end
                self._watching.pop(other, None)
        self._watching[loop] = {waiter}
        loop.add_reader(self._descriptor, self._take, loop)

    def _unwatch(self, waiter: Waiter) -> None:
        loop = waiter.loop
        here = self._watching.get(loop, set())
        here.discard(waiter)
        if here or self._watching.pop(loop, None) is None or loop.is_closed():
            return
        # A forked child shares the parent's epoll descriptor: what it took out there would be gone for the parent.
        if os.getpid() == self._pid:
            loop.remove_reader(self._descriptor)

    def _take(self, loop: asyncio.AbstractEventLoop) -> None:
        executor = self._executor()
        if executor is None:
            return
        event = _abi.Event()
        try:
            # What is left after a batch keeps the descriptor readable.
            for _ in range(_BATCH):
                call(lib.dsh_next_event, executor, ctypes.byref(event))
                if event.kind == _abi.EVENT_NONE:
                    return
                self._hand_out(event.process_id, event.kind, loop)
        except Error as failure:
            for waiters in list(self._watching.values()):
                for waiter in list(waiters):
                    waiter.fail(failure, loop)

    def _hand_out(self, process_id: int, kind: int, loop: asyncio.AbstractEventLoop) -> None:
        process = self._processes.get(process_id)
        if process is None:
            return
        for waiter in list(process.waiters):
            if kind in waiter.kinds:
                waiter.wake(loop)
