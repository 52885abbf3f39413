"""What records have in common."""

from __future__ import annotations

from typing import Any


class Record:
    """What frozen dataclasses with slots need to be copied and pickled on every version of Python."""

    __slots__ = ()

    def __getstate__(self) -> tuple[Any, ...]:
        return tuple(getattr(self, name) for name in self.__dataclass_fields__)  # type: ignore[attr-defined]

    def __setstate__(self, state: tuple[Any, ...]) -> None:
        for name, value in zip(self.__dataclass_fields__, state):  # type: ignore[attr-defined]
            object.__setattr__(self, name, value)
