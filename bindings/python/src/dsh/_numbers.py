"""The library's named numbers."""

from __future__ import annotations

from enum import IntEnum


class Number(IntEnum):
    """A named number. One that a newer library has added gets the name ``UNKNOWN_n``, so that it can be passed on."""

    @classmethod
    def _missing_(cls, value: object) -> Number | None:
        if not isinstance(value, int):
            return None
        member = int.__new__(cls, value)
        member._name_ = f"UNKNOWN_{value}".replace("-", "MINUS_")
        member._value_ = value
        return member

    def __reduce_ex__(self, protocol: object) -> tuple[type[Number], tuple[int]]:
        # By its value: some versions of Python go by the name, which not every member is known by.
        return type(self), (self._value_,)


class Word(Number):
    """A named number that policies also take by its word."""

    @property
    def word(self) -> str:
        """Its word, as it stands in policies and messages: ``"workspace-write"``."""
        return self.name.lower().replace("_", "-")

    @classmethod
    def _missing_(cls, value: object) -> Number | None:
        for member in cls:
            if member.word == value:
                return member
        return super()._missing_(value)


class Feature(Number):
    """Something that not every system can; see :func:`dsh.feature`."""

    #: Processes can be held by descriptor, so that no other process is ever signalled by mistake.
    PIDFD = 1
    #: Children are created without copying the host's page tables.
    VFORK = 2
    #: The library was built with its guard, which ends commands when the host dies.
    GUARD = 3
    #: The kernel has Landlock, of this version.
    LANDLOCK = 4
    #: ``bwrap`` is in PATH. Whether it works is for :func:`dsh.sandbox_doctor` to say.
    BUBBLEWRAP = 5


class Keep(Number):
    """Which part of a stream stays in memory once it is longer than its cap."""

    #: The last bytes: errors and results come at the end. The default.
    TAIL = 0
    #: Half the cap from the beginning, half from the end.
    HEAD_TAIL = 1


class Survivors(Number):
    """What happens to descendants that are still alive when a command has ended by itself."""

    #: They stay, owned by the executor: listed in the result, and ended with the executor. The default.
    KEEP = 0
    #: They are ended before the result is there.
    KILL = 1


class Exit(Number):
    """How the shell ended: by a code or by a signal, never both, never one made up from the other."""

    #: It has not ended yet.
    NONE = 0
    #: It exited with a code.
    CODE = 1
    #: A signal ended it.
    SIGNAL = 2
    #: It has ended, but the host took its status away (by ignoring SIGCHLD or reaping strangers).
    UNKNOWN = 3


class Stop(Number):
    """Who stops a command."""

    #: Nobody.
    NONE = 0
    #: The timeout passed.
    TIMEOUT = 1
    #: The cancel token was cancelled.
    CANCEL = 2
    #: The process was killed through its handle.
    KILL = 3
    #: The executor was shut down.
    SHUTDOWN = 4
    #: The command had ended by itself, and the request's policy was to end what it left behind.
    SURVIVORS = 5


class StopStage(Number):
    """How far a forced stop had to go."""

    #: Nothing was signalled.
    NONE = 0
    #: SIGTERM (and SIGCONT) was enough.
    TERM = 1
    #: SIGKILL was sent to something that was still alive after the grace.
    KILL = 2


class ProcessStatus(Number):
    """What has become of a background process. Set once."""

    #: It has not settled yet.
    RUNNING = 1
    #: It ended by itself, with whatever code.
    COMPLETED = 2
    #: It was killed or cancelled, or died of a signal.
    KILLED = 3


class Stream(Number):
    """One of the two streams of a process."""

    #: Standard output (and standard error, when they are merged).
    STDOUT = 1
    #: Standard error.
    STDERR = 2


class SpawnPath(Number):
    """How children are created."""

    #: A clone that shares the host's memory until the shell is executed: the cost does not grow with the host.
    VFORK = 1
    #: A plain fork.
    FORK = 2
    #: The spawn call of systems other than Linux.
    PORTABLE = 3


class EventKind(Number):
    """What has happened to a background process. What it announces can be read when the event is there."""

    #: There is new output, or a stream has ended.
    OUTPUT = 1
    #: The shell has exited.
    EXIT = 2
    #: The process has settled: its exit and its output are final.
    SETTLED = 3
    #: Nothing of the tree is alive any more.
    QUIESCENT = 4


class Network(Word):
    """How much of the network a command may use. In policies also by its word: ``"loopback"``."""

    #: Whatever the host can reach.
    FULL = 1
    #: A loopback interface of the command's own: its processes reach each other, and nobody else. Bubblewrap only.
    LOOPBACK = 2
    #: No sockets but those of the file system (``AF_UNIX``) and of the kernel's own services (``AF_NETLINK``).
    NONE = 3


class Backend(Word):
    """What carries a confinement out. In policies also by its word: ``"landlock"``."""

    #: ``bwrap``: namespaces, so that what is forbidden is not even there (Linux).
    BUBBLEWRAP = 1
    #: Landlock, in the command itself and without a helper program (Linux 5.13).
    LANDLOCK = 2
    #: ``sandbox-exec`` (macOS).
    SEATBELT = 3
    #: The caller's own program.
    RUNNER = 4


class Enforcement(Number):
    """How much of a policy a backend enforces."""

    #: Nothing: full access.
    NONE = 0
    #: All of it.
    FULL = 1
    #: Not what ``missing`` names.
    PARTIAL = 2
