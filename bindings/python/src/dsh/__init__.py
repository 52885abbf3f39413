"""Runs shell commands for AI agents: bounded output, hard timeouts, and process trees that really die.

::

    import dsh

    with dsh.Executor() as executor:
        result = executor.run("echo hello; exit 3", timeout=10)
        print(result.stdout_text, result.exit_code)

The package is a thin layer over the shared library libdsh, which is looked for in the file or folder that the variable
``LIBDSH_PATH`` names, else inside the package, else by the system's loader. Importing fails with ``ImportError`` when
it is not there.
"""

from dsh._cancel import CancelToken
from dsh._doctor import BackendReport, DoctorReport, sandbox_doctor, sandbox_doctor_async
from dsh._errors import (
    AlreadyCancelledError,
    Code,
    CommandFailedError,
    Error,
    ForkedError,
    InternalError,
    InvalidValueError,
    OutOfMemoryError,
    SandboxUnavailableError,
    ShellMissingError,
    ShutdownError,
    SpawnError,
    SystemCallError,
    WaitTimeoutError,
    WorkdirDeniedError,
    WorkdirError,
    WorkdirMissingError,
    WorkdirNotDirectoryError,
)
from dsh._executor import Executor, Stats
from dsh._library import feature, version
from dsh._numbers import (
    Backend,
    Enforcement,
    EventKind,
    Exit,
    Feature,
    Keep,
    Network,
    ProcessStatus,
    SpawnPath,
    Stop,
    StopStage,
    Stream,
    Survivors,
)
from dsh._process import Chunk, Process, ProcessInfo, Reading
from dsh._request import Spec
from dsh._result import Capture, Outcome, Result, Survivor
from dsh._sandbox import Sandbox, SandboxFacts, SandboxMode
from dsh._settings import Settings
from dsh._version import __version__

__all__ = [
    "AlreadyCancelledError",
    "Backend",
    "BackendReport",
    "CancelToken",
    "Capture",
    "Chunk",
    "Code",
    "CommandFailedError",
    "DoctorReport",
    "Enforcement",
    "Error",
    "EventKind",
    "Executor",
    "Exit",
    "Feature",
    "ForkedError",
    "InternalError",
    "InvalidValueError",
    "Keep",
    "Network",
    "OutOfMemoryError",
    "Outcome",
    "Process",
    "ProcessInfo",
    "ProcessStatus",
    "Reading",
    "Result",
    "Sandbox",
    "SandboxFacts",
    "SandboxMode",
    "SandboxUnavailableError",
    "Settings",
    "ShellMissingError",
    "ShutdownError",
    "SpawnError",
    "SpawnPath",
    "Spec",
    "Stats",
    "Stop",
    "StopStage",
    "Stream",
    "Survivor",
    "Survivors",
    "SystemCallError",
    "WaitTimeoutError",
    "WorkdirDeniedError",
    "WorkdirError",
    "WorkdirMissingError",
    "WorkdirNotDirectoryError",
    "__version__",
    "feature",
    "sandbox_doctor",
    "sandbox_doctor_async",
    "version",
]
