"""Which thread waits."""

from __future__ import annotations

import _thread
import os
import threading
from concurrent.futures import Future
from typing import Any, Callable, TypeVar

_T = TypeVar("_T")

_main_thread: int | None


def on_main_thread() -> bool:
    """Whether this is the thread on which Python runs signal handlers: it must not be in one call for long."""
    return _thread.get_ident() == _main_thread


def _note_main_thread() -> None:
    global _main_thread  # noqa: PLW0603
    _main_thread = threading.main_thread().ident


_note_main_thread()
# In a forked child, it is the one that has forked. What threading does there itself comes before this.
os.register_at_fork(after_in_child=_note_main_thread)


def aside(function: Callable[..., _T], *arguments: Any) -> Future[_T]:
    """Makes a call that blocks on a thread of its own, so that whoever waits for it can be interrupted or has an event
    loop to run."""
    future: Future[_T] = Future()

    def make() -> None:
        try:
            value = function(*arguments)
        except BaseException as failure:
            future.set_exception(failure)
        else:
            future.set_result(value)

    try:
        threading.Thread(target=make, name="dsh-aside", daemon=True).start()
    except RuntimeError:  # the interpreter is on its way out, and starts no more threads
        make()
    return future
