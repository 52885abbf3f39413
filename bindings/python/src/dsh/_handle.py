"""Handles: what the library gave, and when it is given back.

A handle that users have is freed when the last Python object that refers to it is gone, and never before. So no thread
can be in a call on a handle that is freed meanwhile, and there is no "closed" state in which calls would have to be
refused. A handle that only this package has for a moment is freed at the end of a ``with`` block: when a signal handler
raises there, the exception is one as everywhere, while one in a finalizer would be lost.

Each kind of handle is made before the call that fills it in. If that call is interrupted (by Ctrl-C on the main thread,
say), what it gave is already owned. What every run needs is given back and filled in again: to make a handle takes
longer than to call the library.
"""

from __future__ import annotations

import ctypes
import os
import weakref
from typing import Any, Callable, TypeVar

_Self = TypeVar("_Self", bound="Handle")


class Handle:
    """One handle of the library. Passed to its functions as it is."""

    def __init__(self, free: Callable[[ctypes.c_void_p], Any]) -> None:
        # What ctypes passes on. No property: an exception that a signal handler raises in it would become another one.
        self._as_parameter_ = ctypes.c_void_p()
        #: For the call that fills the handle in.
        self.out: Any = ctypes.byref(self._as_parameter_)
        self._free = free
        self._finalizer = weakref.finalize(self, _release, free, self._as_parameter_, os.getpid())
        # When the interpreter exits, other threads may still be in calls; the system gets everything back anyway.
        self._finalizer.atexit = False

    def __enter__(self: _Self) -> _Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._finalizer()

    def give_back(self) -> None:
        """Frees what it holds. It can be filled in again."""
        pointer = self._as_parameter_
        if pointer.value is not None:
            owned = ctypes.c_void_p(pointer.value)
            pointer.value = None
            self._free(owned)

    @property
    def is_filled(self) -> bool:
        return self._as_parameter_.value is not None


def _release(free: Callable[[ctypes.c_void_p], Any], pointer: ctypes.c_void_p, pid: int) -> None:
    # May run on any thread, inside any other code of this package: it must take no lock. In a forked child the library
    # would do nothing either, but what we do on the way might.
    if pointer.value is None or os.getpid() != pid:
        return
    owned = ctypes.c_void_p(pointer.value)
    # Of a cycle of garbage, this may be called before what else is in it is finalized: a coroutine that uses the
    # handle, for one. What that still asks of the handle is asked of NULL, which the library answers.
    pointer.value = None
    free(owned)
