"""From the executor's one queue of events to everybody who waits, in any event loop.

The library has one event descriptor and one queue per executor. Every loop in which somebody waits watches the
descriptor; whichever loop comes first empties the queue for all, and wakes waiters in other loops as asyncio allows it
from foreign threads. So a loop that is busy keeps nobody else waiting, no loop is the owner that must not end, and no
thread is needed. A loop watches only while something in it waits, and until its next turn: nothing keeps an idle loop,
or a descriptor of an executor that is gone, registered.

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
from contextlib import suppress
from typing import TYPE_CHECKING

from dsh import _abi
from dsh._errors import Error
from dsh._library import call, lib

if TYPE_CHECKING:
    from dsh._executor import ExecutorHandle
    from dsh._process import RunHandle

#: How many events are taken at once, before the loop's other work has its turn.
_BATCH = 256


class Waiter:
    """Somebody who waits, in the running loop, for events of one process."""

    __slots__ = ("kinds", "loop", "_woken", "_failure", "_future")

    def __init__(self, kinds: frozenset[int]) -> None:
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

    def wake(self, current: asyncio.AbstractEventLoop | None) -> None:
        """On any thread; ``current`` is the loop that runs there, if that is known."""
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
        # The executor owns its dispatcher; who waits holds the executor.
        self._executor = weakref.ref(executor)
        self._pid = os.getpid()
        # By the number of the process. The dict of each is its own, and here while there is something in it.
        self._waiters: dict[int, dict[Waiter, None]] = {}
        # Each entry is changed in its loop only. It is also what keeps waiting tasks alive: a loop refers to its
        # readers, and from here on to its waiters, but asyncio itself refers to tasks weakly.
        self._watching: dict[asyncio.AbstractEventLoop, set[Waiter]] = {}
        descriptor = ctypes.c_int32()
        call(lib.dsh_executor_event_fd, executor, ctypes.byref(descriptor))
        self._descriptor = descriptor.value

    def enter(self, process: RunHandle, waiter: Waiter) -> None:
        """Puts a waiter in its place. It must leave, also when this raises."""
        number = process.id
        process.waiters[waiter] = None
        self._waiters[number] = process.waiters
        self._watch(waiter)

    def leave(self, process: RunHandle, waiter: Waiter) -> None:
        """Takes a waiter from its place, if it is there."""
        waiters = process.waiters
        waiters.pop(waiter, None)
        if not waiters:
            self._waiters.pop(process.id, None)
            if waiters:  # somebody has come in another loop meanwhile, and may have been missed
                self._waiters[process.id] = waiters
                for other in list(waiters):
                    other.wake(None)
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
        loop.add_reader(self._descriptor, self._take, loop, _abi.Event())

    def _unwatch(self, waiter: Waiter) -> None:
        loop = waiter.loop
        here = self._watching.get(loop)
        if here is None:
            return
        here.discard(waiter)
        if here:
            return
        if asyncio._get_running_loop() is loop:
            # The next run often begins before the loop has its turn, and would have the descriptor watched again. The
            # executor, which owns the descriptor, is held until then: its number must not be another's yet.
            loop.call_soon(self._rest, loop, self._executor())
        else:
            self._rest(loop)

    def _rest(self, loop: asyncio.AbstractEventLoop, _executor: ExecutorHandle | None = None) -> None:
        """Stops watching, unless somebody waits again."""
        if self._watching.get(loop) or self._watching.pop(loop, None) is None or loop.is_closed():
            return
        # A forked child shares the parent's epoll descriptor: what it took out there would be gone for the parent.
        if os.getpid() == self._pid:
            loop.remove_reader(self._descriptor)

    def _take(self, loop: asyncio.AbstractEventLoop, event: _abi.Event) -> None:
        executor = self._executor()
        if executor is None:
            return
        out = ctypes.byref(event)
        try:
            # What is left after a batch keeps the descriptor readable.
            for _ in range(_BATCH):
                call(lib.dsh_next_event, executor, out)
                kind = event.kind
                if kind == _abi.EVENT_NONE:
                    return
                for waiter in list(self._waiters.get(event.process_id, ())):
                    if kind in waiter.kinds:
                        waiter.wake(loop)
        except Error as failure:
            for waiters in list(self._watching.values()):
                for waiter in list(waiters):
                    waiter.fail(failure, loop)
