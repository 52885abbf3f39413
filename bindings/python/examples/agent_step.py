#!/usr/bin/env python3
"""One step of an agent's loop: a model asks for a command, and gets to see what became of it.

python agent_step.py                                    # asks for a few commands of its own
python agent_step.py '{"command": "make test", "timeout": 60}'
"""

from __future__ import annotations

import asyncio
import json
import sys
from typing import Any

import dsh

#: What a model would ask for.
REQUESTS: list[dict[str, Any]] = [
    {"command": "echo hello; echo 'and an error' >&2; exit 3"},
    {"command": "true"},
    {"command": "echo working...; sleep 60", "timeout": 0.5},
    {"command": "kill -KILL $$"},
    {"command": "seq 1 100000"},
    {"command": "pwd", "workdir": "/no/such/place"},
    {"command": "touch /var/tmp/made", "sandbox": "read-only"},
]


def render(result: dsh.Result) -> str:
    """The text that a model sees: the output, then each fact on a line of its own."""
    output = result.stdout_text
    if result.err.total:
        output = line(output) + "[stderr]\n" + result.stderr_text
    facts = []
    for stream in (result.out, result.err):
        if stream.truncated and stream.spill_path is not None:
            facts.append(f"[output truncated; full output: {stream.spill_path}]")
        elif stream.truncated:
            facts.append(f"[output truncated; {stream.omitted} bytes are lost]")
    if result.timed_out and result.timeout is not None:
        facts.append(f"[timed out after {round(result.timeout * 1000)}ms]")
    if result.signal is not None:
        facts.append(f"[killed by signal: {result.signal_name}]")
    elif result.exit_code != 0:
        facts.append(f"[exit code: {'unknown' if result.exit_code is None else result.exit_code}]")
    if result.sandbox is not None and result.sandbox.denied:
        facts.append(f"[denied: {result.sandbox.denied_path}: {result.sandbox.denied_rule}]")
        facts.append(f"[wider modes: {', '.join(mode.word for mode in result.sandbox.mode.wider)}]")
    return line(output or "(no output)\n") + "\n".join(facts)


def line(text: str) -> str:
    """The text, ended by a newline unless it is empty."""
    return text if not text or text.endswith("\n") else text + "\n"


async def step(executor: dsh.Executor, request: dict[str, Any]) -> str:
    """Runs what the model asked for. When the agent gives up on the step, cancelling its task ends the command."""
    try:
        result = await executor.run_async(
            request["command"],
            timeout=request.get("timeout"),
            cwd=request.get("workdir"),
            sandbox={"mode": request["sandbox"]} if "sandbox" in request else None,
        )
    except dsh.Error as error:
        # The command was not run. The model can mend what it asked for; what else it may be is for us.
        if isinstance(error, (dsh.InvalidValueError, dsh.WorkdirError, dsh.SandboxUnavailableError)):
            return f"[not run: {error}]"
        raise
    return render(result)


async def main() -> None:
    """Plays the model."""
    requests = [json.loads(argument) for argument in sys.argv[1:]] or REQUESTS
    async with dsh.Executor(timeout=120, grace=1, max_output_bytes=200) as executor:
        for request in requests:
            print(f"$ {request['command']}")
            print(await step(executor, request), end="\n\n")


if __name__ == "__main__":
    asyncio.run(main())
