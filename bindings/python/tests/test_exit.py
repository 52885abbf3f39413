"""The end of the interpreter, with everything still open."""

from __future__ import annotations

from pathlib import Path

import pytest

import support

PROGRAMS = {
    "a_running_process": """
process = executor.start(COMMAND)
""",
    "a_process_that_nobody_holds": """
executor.start(COMMAND)
""",
    "a_run_on_a_daemon_thread": """
threading.Thread(target=executor.run, args=(COMMAND,), daemon=True).start()
""",
    "a_wait_on_a_daemon_thread": """
process = executor.start(COMMAND)
threading.Thread(target=process.wait, daemon=True).start()
""",
    "many_runs_on_daemon_threads": """
for _ in range(20):
    threading.Thread(target=executor.run, args=("sleep 60",), daemon=True).start()
process = executor.start(COMMAND)
""",
    "an_event_loop_on_a_daemon_thread": """
threading.Thread(target=asyncio.run, args=(executor.run_async(COMMAND),), daemon=True).start()
""",
    "a_loop_that_was_never_closed": """
loop = asyncio.new_event_loop()
task = loop.create_task(executor.run_async(COMMAND))
loop.run_until_complete(asyncio.sleep(0.01))
logging.disable()
""",
    "a_stubborn_command": """
executor.configure(grace=0.2)
executor.start("trap '' TERM; " + COMMAND)
""",
    "an_exception": """
executor.start(COMMAND)
wait_for_the_command()
raise KeyError
""",
    "a_sys_exit_on_the_way": """
with dsh.Executor() as other:
    other.start("sleep 60")
    executor.start(COMMAND)
    wait_for_the_command()
    sys.exit()
""",
    "an_executor_closed_by_atexit": """
import atexit
executor.start(COMMAND)
atexit.register(executor.close)
""",
    "the_interpreter_s_end_left_out": """
executor.start(COMMAND)
wait_for_the_command()
os._exit(0)
""",
}

FRAME = """
import asyncio, dsh, logging, os, sys, threading, time
COMMAND = "echo $$ > pid.new; mv pid.new pid; sleep 60 & sleep 60"
def wait_for_the_command():
    while not os.path.exists("pid"):
        time.sleep(0.01)
executor = dsh.Executor()
{program}
wait_for_the_command()
"""


@pytest.mark.parametrize("name", PROGRAMS)
def test_the_interpreter_exits_well_and_leaves_nothing_behind(name: str, tmp_path: Path) -> None:
    program = support.run_script(FRAME.format(program=PROGRAMS[name]), cwd=tmp_path)
    assert program.returncode == (1 if name == "an_exception" else 0)
    if name == "an_exception":
        assert program.stderr.rstrip().endswith("KeyError")
    elif name != "a_loop_that_was_never_closed":  # asyncio has something to say to that
        assert program.stderr == ""
    pid = int((tmp_path / "pid").read_text())
    support.until(lambda: not support.is_alive(pid))


def test_the_spill_directory_is_gone_after_the_exit(tmp_path: Path) -> None:
    program = support.run_script(
        """
import dsh, os
executor = dsh.Executor(spill_dir=".", max_output_bytes=10)
print(executor.run("seq 1 1000").out.spill_path.exists(), len(os.listdir()))
""",
        cwd=tmp_path,
    )
    assert (program.stdout.split(), program.stderr) == (["True", "1"], "")
    assert list(tmp_path.iterdir()) == []
