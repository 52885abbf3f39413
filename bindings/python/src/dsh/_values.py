"""From Python's values to what the C ABI takes, each refused by name when it can't be one."""

from __future__ import annotations

import ctypes
import math
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Optional, Union

from dsh import _abi
from dsh._errors import Code, invalid

#: A path as the standard library takes it.
StrPath = Union[str, bytes, "os.PathLike[str]", "os.PathLike[bytes]"]
#: Text is taken as UTF-8.
Text = Union[str, bytes]
#: Bytes for a command's stdin; text is taken as UTF-8.
Input = Union[str, bytes, bytearray, memoryview]
#: Variables and their values; ``None`` removes the variable.
Env = Mapping[str, Optional[str]]


def milliseconds(name: str, seconds: float | None) -> int:
    """A time as the C ABI has it, where 0 says "the default": that is what ``None`` means here.

    An explicit 0 is refused rather than taken for the default. Infinity, and what is beyond the ABI's range, becomes
    its largest value, which the library clamps. Less than a millisecond is one.
    """
    if seconds is None:
        return 0
    if not duration(name, seconds):
        raise invalid(f"{name}: {seconds!r}: must be more than 0 seconds; leave it out for the default")
    return max(1, clamped(seconds))


def duration(name: str, seconds: float) -> float:
    """A time that is no less than 0, as it is."""
    if isinstance(seconds, bool) or not isinstance(seconds, (int, float)):
        raise TypeError(f"{name}: must be a number of seconds, not {type(seconds).__name__}")
    if math.isnan(seconds) or seconds < 0:
        raise invalid(f"{name}: {seconds!r}: is no time")
    return seconds


def clamped(seconds: float) -> int:
    """Whole milliseconds, as many as the ABI can say."""
    if isinstance(seconds, float):
        seconds = min(seconds, 1e18)
        return min(round(seconds * 1000), _abi.UINT64_MAX)
    return min(seconds * 1000, _abi.UINT64_MAX)


def size(name: str, count: int | None) -> int:
    """A number of bytes, where the ABI's 0 says "the default" and an explicit 0 is refused."""
    if count is None:
        return 0
    if number(name, count) == 0:
        raise invalid(f"{name}: 0: must be at least 1 byte; leave it out for the default")
    return count


def number(name: str, value: int) -> int:
    """An unsigned number of 64 bits."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: must be an int, not {type(value).__name__}")
    if not 0 <= value <= _abi.UINT64_MAX:
        raise invalid(f"{name}: {value}: must be between 0 and 2**64 - 1")
    return value


def text(name: str, value: Text) -> bytes:
    """The bytes of a command."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    raise TypeError(f"{name}: must be str or bytes, not {type(value).__name__}")


def data(name: str, value: Input) -> bytes:
    """The bytes of an input."""
    if isinstance(value, bytes):
        return value
    if isinstance(value, str):
        return value.encode("utf-8", "surrogateescape")
    if isinstance(value, (bytearray, memoryview)):
        return bytes(value)
    raise TypeError(f"{name}: must be bytes or str, not {type(value).__name__}")


def path(name: str, value: StrPath | None) -> bytes | None:
    """A path, NUL-terminated by ctypes."""
    if value is None:
        return None
    if not isinstance(value, (str, bytes, os.PathLike)):
        raise TypeError(f"{name}: must be str, bytes or a path, not {type(value).__name__}")
    return _without_nul(name, os.fsencode(value))


def globs(name: str, values: Iterable[str]) -> list[bytes]:
    """Patterns of names."""
    if isinstance(values, (str, bytes)):
        raise TypeError(f"{name}: must be several patterns, not one {type(values).__name__}")
    return [_without_nul(name, os.fsencode(value)) for value in values]


def entries(name: str, variables: Env) -> list[bytes]:
    """Environment entries: ``NAME=VALUE``, or ``NAME`` for one that is to be removed."""
    return [_entry(name, variable, value) for variable, value in variables.items()]


def _entry(name: str, variable: str, value: str | None) -> bytes:
    encoded = os.fsencode(variable)
    shown, equals, _ = variable.partition("=")
    if equals:
        # What follows may be a secret that has got into the wrong place, so it is not shown.
        raise invalid(f"{name}: {shown + '=…'!r}: a name can't hold '='", Code.ENV_NAME)
    if b"\0" in encoded:
        raise invalid(f"{name}: {variable!r}: a name can't hold a NUL byte", Code.ENV_NAME)
    if value is None:
        return encoded
    encoded_value = os.fsencode(value)
    if b"\0" in encoded_value:
        raise invalid(f"{name}: {variable!r}: its value holds a NUL byte")
    return encoded + b"=" + encoded_value


def _without_nul(name: str, encoded: bytes) -> bytes:
    if b"\0" in encoded:
        raise invalid(f"{name}: {encoded!r}: holds a NUL byte")
    return encoded


def array(items: list[bytes]) -> Any:
    """A C array of texts, or nothing for none. A struct that it is put into keeps it alive."""
    return (ctypes.c_char_p * len(items))(*items) if items else None


def texts(items: Any, count: int) -> tuple[str, ...]:
    """The texts in a C array."""
    if not count:
        return ()
    return tuple(os.fsdecode(items[index]) for index in range(count))


def path_of(encoded: bytes | None) -> Path | None:
    """The path in a C text."""
    return None if encoded is None else Path(os.fsdecode(encoded))


def text_of(encoded: bytes | None) -> str | None:
    """The text in a C text."""
    return None if encoded is None else os.fsdecode(encoded)
