"""Which thread waits."""

from __future__ import annotations

import threading
from concurrent.futures import Future
from typing import Any, Callable, TypeVar

_T = TypeVar("_T")


def on_main_thread() -> bool:
    """Whether this is the thread on which Python runs signal handlers: it must not be in one call for long."""
    return threading.get_ident() == threading.main_thread().ident


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
