"""Plays the scenarios that all bindings share, and prints what happened in the form in which they say it.

    scenarios.py [--style main|thread|async] FILE... </dev/null

The style says how runs are made and processes waited for. It makes no difference to what is printed.
"""

from __future__ import annotations

import argparse
import asyncio
import os
import re
import shutil
import sys
import tempfile
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, Callable

import dsh

_ESCAPES = {"n": b"\n", "t": b"\t", "r": b"\r", "\\": b"\\", '"': b'"'}
_SWITCHES = {"on": True, "off": False}
_KEEPS = {"tail": dsh.Keep.TAIL, "head_tail": dsh.Keep.HEAD_TAIL}
_SURVIVORS = {"keep": dsh.Survivors.KEEP, "kill": dsh.Survivors.KILL}
_DENIED = {True: "yes", False: "no", None: "unknown"}
_STREAMS = {"stdout": dsh.Stream.STDOUT, "stderr": dsh.Stream.STDERR}


class UnknownLineError(Exception):
    """A line that this driver does not know."""


def unescaped(text: str) -> bytes:
    """The bytes that a value stands for."""

    def one(match: re.Match[str]) -> str:
        byte = bytes.fromhex(match[2]) if match[2] else _ESCAPES.get(match[1])
        if byte is None:
            raise UnknownLineError
        return byte.decode("latin-1")

    return re.sub(r"\\(x([0-9A-Fa-f]{2})|.)", one, text.encode().decode("latin-1")).encode("latin-1")


def quoted(data: bytes) -> str:
    """Bytes between quotes, as the page of the format has them."""
    escapes = {value[0]: "\\" + key for key, value in _ESCAPES.items()}
    return (
        '"'
        + "".join(escapes.get(byte) or (chr(byte) if 0x20 <= byte <= 0x7E else f"\\x{byte:02x}") for byte in data)
        + '"'
    )


def seconds(text: str) -> float | None:
    """A time; 0 is the default."""
    return int(text) / 1000 or None


def milliseconds(time: float) -> int:
    return round(time * 1000)


def size(text: str) -> int | None:
    return int(text) or None


def ending(outcome: dsh.Outcome, *, with_code_0: bool) -> Iterator[str]:
    """The lines that results and processes share."""
    if outcome.exit == dsh.Exit.CODE and (with_code_0 or outcome.exit_code != 0):
        yield f"exit code {outcome.exit_code}"
    if outcome.exit == dsh.Exit.SIGNAL:
        yield f"exit signal {outcome.signal}"
    if outcome.exit == dsh.Exit.UNKNOWN:
        yield "exit unknown"
    if outcome.timed_out:
        yield "timed out"
    if outcome.aborted:
        yield "aborted"
    if outcome.cause != dsh.Stop.NONE:
        yield f"cause {outcome.cause.name.lower()}"
    if outcome.stopped_by != dsh.Stop.NONE:
        yield f"stopped by {outcome.stopped_by.name.lower()}"
    if outcome.stop_stage != dsh.StopStage.NONE:
        yield f"stage {outcome.stop_stage.name.lower()}"
    if outcome.pipes_held:
        yield "pipes held"
    if outcome.held_by:
        yield f"held by {len(outcome.held_by)}"
    if outcome.survivors:
        yield f"survivors {len(outcome.survivors)}"


def scrubbed(names: tuple[str, ...]) -> Iterator[str]:
    mine = sorted(name for name in names if name.startswith("SCENARIO_"))
    if mine:
        yield f"scrubbed {' '.join(mine)}"


class Case:
    """One case: its executor, its process, its terms."""

    def __init__(self, style: str) -> None:
        self.style = style
        self.directory = tempfile.mkdtemp(prefix="scenario-")
        self.options: dict[str, Any] = {}
        self.terms: dict[str, Any] = {}
        self.stale = False
        self.token: dsh.CancelToken | None = None
        self.process: dsh.Process | None = None
        self.had_input = False
        self._executor: dsh.Executor | None = None

    @property
    def executor(self) -> dsh.Executor:
        if self._executor is None:
            self._executor = dsh.Executor(**self.options)
        return self._executor

    def end(self) -> None:
        self.process = None
        if self._executor is not None:
            self._executor.close()
            self._executor = None
        shutil.rmtree(self.directory)

    def value(self, text: str) -> bytes:
        return unescaped(text.replace("@DIR@", self.directory))

    def shown(self, line: str) -> str:
        return line.replace(self.directory, "@DIR@")

    # Preparing.

    def config(self, rest: str) -> None:
        key, _, text = rest.partition(" ")
        value = os.fsdecode(self.value(text))
        options = self.options
        if key in ("cwd", "shell", "spill_dir"):
            options[key] = value
        elif key in ("timeout_ms", "max_timeout_ms", "grace_ms", "drain_ms"):
            options[key.removesuffix("_ms")] = seconds(value)
        elif key in ("max_output_bytes", "max_spill_bytes", "max_total_spill_bytes"):
            options[key] = size(value)
        elif key == "keep":
            options[key] = _KEEPS[value]
        elif key in ("inherit_env", "guard", "keep_spill_files"):
            options[key] = _SWITCHES[value]
        elif key in ("env_allow", "env_deny"):
            options.setdefault(key, []).append(value)
        elif key.startswith("sandbox."):
            self.policy(options, key, value)
        else:
            raise UnknownLineError

    def set(self, rest: str) -> None:
        key, _, text = rest.partition(" ")
        self.put(key, self.value(text))

    def fill(self, rest: str) -> None:
        key, count, text = rest.split(" ", 2)
        self.put(key, self.value(text) * int(count))

    def put(self, key: str, value: bytes) -> None:
        if self.stale:
            self.terms, self.stale = {}, False
        text = os.fsdecode(value)
        if key in ("command", "input"):
            self.terms[key] = value
        elif key == "workdir":
            self.terms["cwd"] = text
        elif key == "timeout_ms":
            self.terms["timeout"] = seconds(text)
        elif key == "stdout_max_bytes":
            self.terms[key] = size(text)
        elif key == "tag":
            self.terms[key] = int(text)
        elif key in ("env", "dsh_env"):
            name, equals, content = text.partition("=")
            self.terms.setdefault(key, {})[name] = content if equals else None
        elif key == "merge_stderr":
            self.terms[key] = _SWITCHES[text]
        elif key == "survivors":
            self.terms[key] = _SURVIVORS[text]
        elif key.startswith("sandbox."):
            self.policy(self.terms, key, text)
        elif key == "cancel" and text == "on":
            self.token = self.token or dsh.CancelToken()
            self.terms[key] = self.token
        else:
            raise UnknownLineError

    @staticmethod
    def policy(options: dict[str, Any], key: str, value: str) -> None:
        policy = options.setdefault("sandbox", {})
        name = key.removeprefix("sandbox.")
        if name in ("writable", "hidden"):
            policy.setdefault(name, []).append(value)
        elif name == "backend":
            policy.setdefault("backends", []).append(value)
        elif name in ("mode", "workspace", "network"):
            policy[name] = value
        elif name == "git_worktree":
            policy[name] = _SWITCHES[value]
        else:
            raise UnknownLineError

    def file(self, rest: str) -> None:
        name, mode, *text = rest.split(" ", 2)
        path = Path(self.directory, name)
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.write_bytes(self.value(text[0] if text else ""))
        path.chmod(int(mode, 8))

    # Steps.

    def asked(self) -> dict[str, Any]:
        """The terms of a request, which are used up by it."""
        self.stale = True
        self.had_input = "input" in self.terms
        return {"command": b"", **self.terms}

    def current(self) -> dsh.Process:
        if self.process is None:
            raise UnknownLineError
        return self.process

    def run(self) -> Iterator[str]:
        terms, executor = self.asked(), self.executor
        if self.style == "async":
            result = asyncio.run(executor.run_async(**terms))
        elif self.style == "thread":
            with ThreadPoolExecutor(1) as pool:
                result = pool.submit(executor.run, **terms).result()
        else:
            result = executor.run(**terms)
        yield from ending(result, with_code_0=False)
        yield from self.confined(result.sandbox, settled=True)
        yield from self.stream("stdout", result.out)
        yield from self.stream("stderr", result.err)
        if result.timeout is not None and milliseconds(result.timeout) != 120_000:
            yield f"timeout {milliseconds(result.timeout)}"
        yield from self.input(result.input_written)
        yield from scrubbed(result.scrubbed)

    def confined(self, facts: dsh.SandboxFacts | None, *, settled: bool) -> Iterator[str]:
        """What is known of a confinement."""
        if facts is None:
            return
        backend = "none" if facts.backend is None else facts.backend.word
        yield f"sandbox {facts.mode.word} {backend} {facts.enforcement.name.lower()} {facts.network.word}"
        if facts.missing:
            yield f"missing {' '.join(facts.missing)}"
        if facts.runner_failed is not None:
            yield "runner failed"
        elif settled:
            yield f"denied {_DENIED[facts.denied]}"
        if facts.denied:
            path, rule = os.fsencode(facts.denied_path or ""), os.fsencode(facts.denied_rule or "")
            yield f"denied path {self.quoted(path)} rule {self.quoted(rule)}"

    def stream(self, name: str, capture: dsh.Capture) -> Iterator[str]:
        if capture.total == 0:
            return
        words = [name, f"total={capture.total}"]
        if capture.omitted:
            words.append(f"omitted={capture.omitted}")
        if capture.omitted_at:
            words.append(f"at={capture.omitted_at}")
        if capture.spill_path is not None:
            stat = capture.spill_path.stat()
            whole = (stat.st_size, stat.st_mode & 0o7777) == (capture.total, 0o600)
            words.append(f"spill={'whole' if whole else 'broken'}")
        elif capture.spill_error is not None:
            words.append("spill=failed")
        yield " ".join([*words, self.quoted(capture.data)])

    def quoted(self, data: bytes) -> str:
        return quoted(data.replace(os.fsencode(self.directory), b"@DIR@"))

    def input(self, written: int) -> Iterator[str]:
        if self.had_input:
            yield f"input {written}"

    def start(self) -> Iterator[str]:
        terms = self.asked()
        terms.pop("timeout", None)
        terms.pop("stdout_max_bytes", None)
        self.process = None
        self.process = self.executor.start(**terms)
        yield "started"

    def until(self, rest: str) -> Iterator[str]:
        name, _, text = rest.partition(" ")
        process, stream, wanted = self.current(), _STREAMS[name], self.value(text)

        async def look() -> bool:
            seen, offset = b"", 0
            async for _ in process.events():
                reading = process.read_stream(stream, offset)
                while reading.data:
                    seen, offset = seen + reading.data, reading.next
                    reading = process.read_stream(stream, offset)
                if wanted in seen:
                    return True
                if reading.end:
                    return False
            return False

        yield "seen" if asyncio.run(look()) else "ended"

    def wait(self, rest: str) -> Iterator[str]:
        process = self.current()
        try:
            if rest:
                info = process.wait(int(rest) / 1000)
            elif self.style == "async":
                info = asyncio.run(process.settled())
            elif self.style == "thread":
                with ThreadPoolExecutor(1) as pool:
                    info = pool.submit(process.wait).result()
            else:
                info = process.wait()
        except dsh.WaitTimeoutError:
            yield "timed out"
            return
        yield f"status {info.status.name.lower()}"
        yield from ending(info, with_code_0=True)
        yield from self.confined(info.sandbox, settled=info.status != dsh.ProcessStatus.RUNNING)
        if info.out_total:
            yield f"out {info.out_total}"
        if info.err_total:
            yield f"err {info.err_total}"
        yield from self.input(info.input_written)
        if info.tag:
            yield f"tag {info.tag}"

    def read(self) -> Iterator[str]:
        yield from self.chunk([self.current().read_output()])

    def read_all(self) -> Iterator[str]:
        process = self.current()
        if self.style == "async":
            asyncio.run(process.settled())
        else:
            process.wait()
        chunks = [process.read_output()]
        while chunks[-1].data and not chunks[-1].end:
            chunks.append(process.read_output())
        yield from self.chunk(chunks)

    def chunk(self, chunks: list[dsh.Chunk]) -> Iterator[str]:
        missing = sum(chunk.out_missing for chunk in chunks), sum(chunk.err_missing for chunk in chunks)
        if missing != (0, 0):
            yield f"missing {missing[0]} {missing[1]}"
        if chunks[-1].out_spill_path is not None:
            yield "spill out"
        if chunks[-1].err_spill_path is not None:
            yield "spill err"
        if chunks[-1].end:
            yield "end"
        yield f"text {self.quoted(b''.join(chunk.data for chunk in chunks))}"

    def reading(self, rest: str) -> Iterator[str]:
        name, offset, capacity = rest.split(" ")
        reading = self.current().read_stream(_STREAMS[name], int(offset), int(capacity))
        missing = f" missing {reading.missing}" if reading.missing else ""
        yield f"start {reading.start} next {reading.next}{missing}"
        if reading.end:
            yield "end"
        yield f"text {self.quoted(reading.data)}"

    def kill(self) -> Iterator[str]:
        yield "was running" if self.current().kill() else "was not running"

    def cancel(self) -> Iterator[str]:
        self.token = self.token or dsh.CancelToken()
        self.token.cancel()
        yield from ()

    def quiescent(self) -> Iterator[str]:
        asyncio.run(self.current().quiescent())
        yield from ()

    def events(self) -> Iterator[str]:
        process = self.current()

        async def collect() -> set[dsh.EventKind]:
            return {kind async for kind in process.events()}

        yield f"events {' '.join(kind.name for kind in sorted(asyncio.run(collect())))}"

    def resolve(self) -> Iterator[str]:
        spec = self.executor.resolve(**self.asked())
        yield f"command {self.quoted(spec.command[:60])}"
        yield f"workdir {self.quoted(os.fsencode(spec.cwd))}"
        yield f"timeout {milliseconds(spec.timeout)}"
        yield f"stdout max {spec.stdout_max_bytes}"
        yield f"max output {spec.max_output_bytes}"
        yield f"grace {milliseconds(spec.grace)}"
        yield f"drain {milliseconds(spec.drain)}"
        yield f"survivors {spec.survivors.name.lower()}"
        if spec.sandbox_mode is not None:
            yield f"sandbox {spec.sandbox_mode.word}"
        if spec.merge_stderr:
            yield "merge_stderr"
        if spec.tag:
            yield f"tag {spec.tag}"
        yield from scrubbed(spec.scrubbed)

    def configure(self) -> Iterator[str]:
        self.executor.configure(**self.options)
        yield "configured"

    def settings(self, key: str) -> Iterator[str]:
        if key == "sandbox.mode":
            policy = self.executor.settings.sandbox
            yield f"{key} {'none' if policy is None or policy.mode is None else policy.mode.word}"
            return
        value = getattr(self.executor.settings, key.removesuffix("_ms"))
        if key.endswith("_ms"):
            value = milliseconds(value)
        elif isinstance(value, dsh.Keep):
            value = value.name.lower()
        elif isinstance(value, bool):
            value = "on" if value else "off"
        elif isinstance(value, tuple):
            value = " ".join(value)
        yield f"{key} {value}"

    def shutdown(self) -> Iterator[str]:
        if self.style == "async":
            asyncio.run(self.executor.shutdown_async())
        else:
            self.executor.shutdown()
        yield from ()


_PREPARING: dict[str, Callable[[Case, str], None]] = {
    "config": Case.config,
    "set": Case.set,
    "fill": Case.fill,
    "file": Case.file,
}
_STEPS: dict[str, Callable[[Case], Iterator[str]]] = {
    "run": Case.run,
    "start": Case.start,
    "read": Case.read,
    "read_all": Case.read_all,
    "kill": Case.kill,
    "cancel": Case.cancel,
    "quiescent": Case.quiescent,
    "events": Case.events,
    "resolve": Case.resolve,
    "configure": Case.configure,
    "shutdown": Case.shutdown,
}
_STEPS_WITH_MORE: dict[str, Callable[[Case, str], Iterator[str]]] = {
    "until": Case.until,
    "wait": Case.wait,
    "stream": Case.reading,
    "settings": Case.settings,
}


def step(case: Case, word: str, rest: str) -> list[str]:
    """What a step gives, or its error."""
    if word in _STEPS_WITH_MORE:
        lines = _STEPS_WITH_MORE[word](case, rest)
    elif word in _STEPS and not rest:
        lines = _STEPS[word](case)
    else:
        raise UnknownLineError
    try:
        return list(lines)
    except dsh.Error as error:
        errno = f" errno={error.errno}" if error.errno else ""
        message = case.quoted(os.fsencode(error.message))
        return [f"error {error.code.name} stage={error.stage}{errno} {message}"]


def play(path: str, style: str) -> None:
    """Plays the cases of one file."""
    case: Case | None = None
    try:
        for line in Path(path).read_text(encoding="utf-8", errors="surrogateescape").split("\n"):
            if not line or line.startswith(("#", "= ")):
                continue
            word, _, rest = line.partition(" ")
            try:
                if word == "case":
                    if case is not None:
                        case.end()
                    case = Case(style)
                    print(line)
                elif case is None:
                    raise UnknownLineError
                elif word in _PREPARING:
                    _PREPARING[word](case, rest)
                else:
                    lines = step(case, word, rest)
                    print(line)
                    for result in lines:
                        print(case.shown(f"= {result}"))
            except (UnknownLineError, KeyError, ValueError) as reason:
                sys.stdout.flush()
                print(f"{path}: an unknown line: {line} ({reason!r})", file=sys.stderr)
                sys.exit(2)
    finally:
        if case is not None:
            case.end()


def main() -> None:
    """Plays all files."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--style", choices=("main", "thread", "async"), default="async")
    parser.add_argument("files", nargs="+", metavar="FILE")
    arguments = parser.parse_args()
    for path in arguments.files:
        play(path, arguments.style)


if __name__ == "__main__":
    main()
