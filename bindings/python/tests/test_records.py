"""Results and other records: frozen, small, and fit to be passed around."""

from __future__ import annotations

import copy
import dataclasses
import gc
import pickle
from pathlib import Path
from typing import Any

import pytest

import dsh


@pytest.fixture
def records(tmp_path: Path) -> list[Any]:
    """One record of each kind, from an executor that is gone."""
    with dsh.Executor(cwd=tmp_path, spill_dir=tmp_path, max_output_bytes=10) as executor:
        result = executor.run("seq 100; sleep 60 >/dev/null 2>&1 &")
        process = executor.start("echo out; echo err >&2")
        info = process.wait()
        reading = process.read_stream(dsh.Stream.STDOUT)
        records = [result, result.out, result.survivors[0], info, reading, process.read_output()]
        records += [executor.settings, executor.stats, executor.resolve("true")]
        policy = dsh.Sandbox(mode="workspace-write", workspace=tmp_path, writable=[tmp_path], backends=["landlock"])
        confined = executor.run(": >/usr/made", sandbox=policy)
        report = dsh.sandbox_doctor()
        assert confined.sandbox is not None
        records += [policy, confined, confined.sandbox, report, report.backends[0]]
    del executor, process
    gc.collect()
    return records


def test_records_can_not_be_changed(records: list[Any]) -> None:
    for record in records:
        field = dataclasses.fields(record)[0].name
        with pytest.raises(dataclasses.FrozenInstanceError):
            setattr(record, field, None)
        with pytest.raises((AttributeError, TypeError)):
            record.another = None
        assert not hasattr(record, "__dict__")


def test_records_can_be_copied_pickled_compared_and_hashed(records: list[Any]) -> None:
    for record in records:
        for twin in (copy.copy(record), copy.deepcopy(record), pickle.loads(pickle.dumps(record))):
            assert type(twin) is type(record)
            assert twin == record
            assert hash(twin) == hash(record)
        assert dataclasses.replace(record) == record
        assert dataclasses.asdict(record)


def test_every_field_is_documented_and_has_a_slot(records: list[Any]) -> None:
    for record in records:
        slots = {slot for kind in type(record).__mro__ for slot in getattr(kind, "__slots__", ())}
        assert slots == {field.name for field in dataclasses.fields(record)}


def test_numbers_of_a_newer_library_are_passed_on() -> None:
    stop = dsh.Stop(99)
    assert (stop, stop.name, stop.value) == (99, "UNKNOWN_99", 99)
    assert pickle.loads(pickle.dumps(stop)) == 99
    assert stop not in list(dsh.Stop)
    with pytest.raises(ValueError, match="nothing"):
        dsh.Stop("nothing")  # type: ignore[arg-type]


def test_everything_public_is_listed_and_documented() -> None:
    for name in dsh.__all__:
        thing = getattr(dsh, name)
        if isinstance(thing, str):
            continue
        assert thing.__doc__, name
        assert thing.__module__.startswith("dsh"), name
        for attribute, value in vars(thing).items() if isinstance(thing, type) else ():
            if not attribute.startswith("_") and (callable(value) or isinstance(value, property)):
                assert value.__doc__, f"{name}.{attribute}"
