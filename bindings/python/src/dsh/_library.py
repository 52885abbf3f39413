"""Finds libdsh, loads it, and makes calls on it that raise."""

from __future__ import annotations

import ctypes
import os
import sys
from pathlib import Path
from typing import Any

from dsh import _abi
from dsh._errors import Code, Error, error_of
from dsh._numbers import Feature

_FILE_NAME = "libdsh.0.dylib" if sys.platform == "darwin" else "libdsh.so.0"


def _candidates() -> list[str]:
    """Where the library may be; the first place that has one decides."""
    named = os.environ.get("LIBDSH_PATH")
    if named:
        return [os.path.join(named, _FILE_NAME) if os.path.isdir(named) else named]
    bundled = Path(__file__).with_name(_FILE_NAME)
    return [str(bundled)] if bundled.exists() else [_FILE_NAME]


def load() -> ctypes.CDLL:
    """The library, with all prototypes set. ``ImportError`` says where it was looked for, and what would help."""
    [path] = _candidates()
    try:
        # A CDLL lets go of the GIL during every call.
        library = ctypes.CDLL(path)
    except OSError as reason:
        raise ImportError(
            f"dsh: can't load the library {path!r}: {reason}. It is taken from the file or folder in LIBDSH_PATH, "
            f"else from {_FILE_NAME} inside the package, else from where the system's loader finds {_FILE_NAME}",
            name="dsh",
            path=path,
        ) from reason
    try:
        _prepare(library, path)
    except AttributeError as reason:
        raise ImportError(
            f"dsh: the library {path!r} is no libdsh, or too old for this package: {reason}", name="dsh", path=path
        ) from reason
    return library


def _prepare(library: ctypes.CDLL, path: str) -> None:
    """Sets all prototypes. A function that is not there is an ``AttributeError``."""
    library.dsh_abi_version.restype = ctypes.c_uint32
    version = library.dsh_abi_version()
    if version != _abi.ABI_VERSION:
        raise ImportError(
            f"dsh: the library {path!r} has ABI version {version}, and this package knows {_abi.ABI_VERSION}",
            name="dsh",
            path=path,
        )
    for name, (result, arguments) in _abi.PROTOTYPES.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = arguments


lib = load()


def call(function: Any, *arguments: Any) -> None:
    """Makes a call that gives a status, and raises its error when it failed."""
    error = ctypes.c_void_p()
    status = function(*arguments, ctypes.byref(error))
    if status != _abi.OK:
        raise taken(status, error)


def taken(status: int, error: ctypes.c_void_p) -> Error:
    """The exception for a failed call; the library's error is freed."""
    try:
        return error_of(
            Code(status),
            message=os.fsdecode(lib.dsh_error_message(error)),
            errno=lib.dsh_error_errno(error) or None,
            stage=os.fsdecode(lib.dsh_error_stage(error)),
        )
    finally:
        lib.dsh_error_free(error)


def version() -> str:
    """The version of the loaded library, such as ``"0.1.0"``."""
    text: bytes = lib.dsh_version()
    return text.decode()


def feature(feature: Feature) -> int:
    """What the loaded library can on this system: 0 when it can't; otherwise 1, or the version of the system's
    interface where it has versions."""
    level: int = lib.dsh_feature(feature)
    return level
