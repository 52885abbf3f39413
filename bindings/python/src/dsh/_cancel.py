"""Cancel tokens."""

from __future__ import annotations

import ctypes

from dsh._handle import Handle
from dsh._library import call, lib


class CancelHandle(Handle):
    """``dsh_cancel_t``."""

    def __init__(self) -> None:
        super().__init__(lib.dsh_cancel_free)
        call(lib.dsh_cancel_new, self.out)


class CancelToken:
    """A switch that ends commands: thrown once, for any number of commands, from any thread.

    ::

        token = dsh.CancelToken()
        threading.Timer(5.0, token.cancel).start()
        result = executor.run("make world", cancel=token)   # result.aborted, result.cause == dsh.Stop.CANCEL

    A token that nobody refers to any more can no longer be thrown; commands that run with it go on.
    """

    def __init__(self) -> None:
        self._handle = CancelHandle()

    def cancel(self) -> None:
        """Ends every command that runs with this token, as :meth:`Process.kill` does, and has every later one refused
        with :class:`AlreadyCancelledError`. Does not wait for the commands to end. Once is enough; again does nothing.
        """
        call(lib.dsh_cancel, self._handle)

    @property
    def cancelled(self) -> bool:
        """Whether the token has been thrown."""
        cancelled = ctypes.c_uint32()
        call(lib.dsh_is_cancelled, self._handle, ctypes.byref(cancelled))
        return bool(cancelled.value)

    def __repr__(self) -> str:
        return f"<dsh.CancelToken cancelled={self.cancelled}>"
