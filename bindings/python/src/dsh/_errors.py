"""What is raised when a command could not be run, and when a result is asked whether it is a success."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any, Callable

from dsh._numbers import Number

if TYPE_CHECKING:
    from dsh._result import Result


class Code(Number):
    """The library's status codes. The numbers and names never change."""

    #: A required pointer was NULL.
    NULL = -1
    #: A value that can't be used.
    INVALID = -2
    #: A struct asks for something that the loaded library does not know.
    STRUCT = -3
    #: Unknown flag bits are set.
    FLAGS = -4
    #: The command holds a NUL byte.
    COMMAND_NUL = -5
    #: The name of an environment variable can't be one.
    ENV_NAME = -6
    #: The name of an environment variable is in the reserved ``DSH_`` namespace.
    ENV_RESERVED = -7
    #: The environment is larger than the system takes.
    ENV_TOO_BIG = -8
    #: The working directory does not exist.
    WORKDIR_MISSING = -9
    #: The working directory is something else than a directory.
    WORKDIR_NOT_DIR = -10
    #: The working directory may not be entered.
    WORKDIR_DENIED = -11
    #: The working directory can't be used for another reason.
    WORKDIR_UNUSABLE = -12
    #: The shell is not there or can't be executed.
    SHELL_MISSING = -13
    #: The cancel token was cancelled before the command was started.
    CANCELLED = -14
    #: The executor has been shut down.
    SHUTDOWN = -15
    #: The system refused to start the command.
    SPAWN = -16
    #: No confinement backend can be used.
    SANDBOX_UNAVAILABLE = -17
    #: The time given to a wait has passed.
    TIMED_OUT = -18
    #: A system call that the library needs failed.
    SYSTEM = -19
    #: Memory was refused.
    OUT_OF_MEMORY = -20
    #: The call was made in a forked child of the process that made the handle.
    FORKED = -21
    #: The library caught a failure of its own.
    PANIC = -22


class Error(Exception):
    """A call could not be carried out. Of a run or start: the command was not run.

    Whatever a command does, exits and timeouts included, is a result and not an error. The subclasses say what went
    wrong, and are the built-in exceptions that the standard library would raise for it as well.
    """

    #: The library's status code.
    code: Code
    #: The ``errno`` of the system call that failed; ``None`` when none did.
    errno: int | None
    #: Where it went wrong, a lower-case word that stays the same between versions: ``"workdir"``, ``"exec"``, …
    stage: str
    #: For people: names the argument and its value, or the step and the system's reason.
    message: str

    def __init__(self, message: str, *, code: Code, errno: int | None = None, stage: str = "argument") -> None:
        super().__init__(message)
        self.message = message
        self.code = code
        self.errno = errno
        self.stage = stage

    def __str__(self) -> str:
        return self.message

    def __reduce__(self) -> tuple[Callable[..., Error], tuple[Any, ...]]:
        return error_of, (self.code, self.message, self.errno, self.stage)


class _SystemError(Error, OSError):
    """An error that the standard library would raise as one of its errors of the system."""

    def __init__(self, message: str, *, code: Code, errno: int | None = None, stage: str = "argument") -> None:
        super().__init__(message, code=code, errno=errno, stage=stage)
        self.strerror = message if errno is None else os.strerror(errno)


class InvalidValueError(Error, ValueError):
    """A value that can't be used; the message names the argument and the value. Nothing was started."""


class WorkdirError(_SystemError):
    """The working directory can't be used; the message names it."""


class WorkdirMissingError(WorkdirError, FileNotFoundError):
    """The working directory does not exist."""


class WorkdirNotDirectoryError(WorkdirError, NotADirectoryError):
    """The working directory is something else than a directory."""


class WorkdirDeniedError(WorkdirError, PermissionError):
    """The working directory may not be entered."""


class ShellMissingError(_SystemError, FileNotFoundError):
    """The shell is not there or can't be executed."""


class AlreadyCancelledError(Error):
    """The cancel token had been cancelled before the command was started."""


class ShutdownError(Error, RuntimeError):
    """The executor has been shut down, so no command is started any more."""


class SpawnError(_SystemError):
    """The system refused to start the command; ``stage`` and ``errno`` say where and why."""


class SystemCallError(_SystemError):
    """A system call that the library needs failed; ``stage`` and ``errno`` say which and why."""


class SandboxUnavailableError(Error):
    """No confinement can be had, so the command was not run."""


class WaitTimeoutError(_SystemError, TimeoutError):
    """The time given to a wait has passed; what was waited for goes on. (A command's own timeout is a result.)"""


class OutOfMemoryError(Error, MemoryError):
    """The system refused the memory that the call needs."""


class ForkedError(Error, RuntimeError):
    """The object was made by the parent of this process, and can't be used in a forked child."""


class InternalError(Error, RuntimeError):
    """The library, or this package, has failed; the object can't be used any more."""


_CLASSES = {
    Code.INVALID: InvalidValueError,
    Code.COMMAND_NUL: InvalidValueError,
    Code.ENV_NAME: InvalidValueError,
    Code.ENV_RESERVED: InvalidValueError,
    Code.ENV_TOO_BIG: InvalidValueError,
    Code.WORKDIR_MISSING: WorkdirMissingError,
    Code.WORKDIR_NOT_DIR: WorkdirNotDirectoryError,
    Code.WORKDIR_DENIED: WorkdirDeniedError,
    Code.WORKDIR_UNUSABLE: WorkdirError,
    Code.SHELL_MISSING: ShellMissingError,
    Code.CANCELLED: AlreadyCancelledError,
    Code.SHUTDOWN: ShutdownError,
    Code.SPAWN: SpawnError,
    Code.SANDBOX_UNAVAILABLE: SandboxUnavailableError,
    Code.TIMED_OUT: WaitTimeoutError,
    Code.SYSTEM: SystemCallError,
    Code.OUT_OF_MEMORY: OutOfMemoryError,
    Code.FORKED: ForkedError,
    Code.NULL: InternalError,
    Code.STRUCT: InternalError,
    Code.FLAGS: InternalError,
    Code.PANIC: InternalError,
}


def error_of(code: Code, message: str, errno: int | None, stage: str) -> Error:
    """The exception for a code; a plain :class:`Error` for one that only a newer library has."""
    return _CLASSES.get(code, Error)(message, code=code, errno=errno, stage=stage)


def invalid(message: str, code: Code = Code.INVALID) -> InvalidValueError:
    """For a value that is refused before the library sees it."""
    return InvalidValueError(message, code=code)


class CommandFailedError(Exception):
    """Raised by ``check=True`` and :meth:`Result.check`: the command was run, and was no success.

    Not an :class:`Error`, which says that a command was not run.
    """

    #: What the command gave.
    result: Result

    def __init__(self, result: Result) -> None:
        super().__init__(result)
        self.result = result

    def __str__(self) -> str:
        return f"the command {self.result.ending}"
