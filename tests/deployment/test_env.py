"""The environment reader refuses loudly and names every fault at once."""

import stat
from datetime import timedelta
from pathlib import Path

import pytest

from resumeapp.env import Env, EnvError


def test_every_fault_is_listed_at_once_and_no_value_is_shown() -> None:
    env = Env({"COUNT": "hunter2", "FLAG": "hunter2", "AGE": "hunter2", "ORIGINS": "hunter2"})
    env.text("NAME", None, "Who this is.")
    env.integer("COUNT", 1, "How many.")
    env.boolean("FLAG", False, "Whether.")
    env.duration("AGE", "1s", "How old.")
    env.urls("ORIGINS", "", "From where.")
    env.secret("KEY", None, "Signs.")
    with pytest.raises(EnvError) as refused:
        env.check()
    message = str(refused.value)
    for name in ("NAME", "COUNT", "FLAG", "AGE", "ORIGINS", "KEY"):
        assert f"  {name}: " in message
    assert "hunter2" not in message


@pytest.mark.parametrize("raw", ["0", "11", "1e1", " 3 4", "٣x"])
def test_a_number_out_of_range_or_form_is_refused(raw: str) -> None:
    env = Env({"N": raw})
    env.integer("N", 5, "A number.", low=1, high=10)
    assert env.faults == ["N: expected a whole number from 1 to 10"]


def test_a_short_secret_is_refused() -> None:
    env = Env({"KEY": "short"})
    env.secret("KEY", None, "Signs.")
    assert env.faults == ["KEY: expected at least 32 characters"]


def test_a_secret_is_made_once_and_only_its_owner_can_read_it(tmp_path: Path) -> None:
    file = tmp_path / "var" / "key"
    first = Env({}).secret("KEY", file, "Signs.")
    second = Env({}).secret("KEY", file, "Signs.")
    assert first == second
    assert len(first) >= 32
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert [path.name for path in file.parent.iterdir()] == ["key"]


def test_values_come_out_typed() -> None:
    env = Env({"F": "On", "N": "7", "D": "250ms", "L": "a, b,,", "U": "https://x.example"})
    assert env.boolean("F", False, "") is True
    assert env.integer("N", 1, "") == 7
    assert env.duration("D", "1s", "") == timedelta(milliseconds=250)
    assert env.duration("E", "2h", "") == timedelta(hours=2)
    assert env.names("L", "", "") == ["a", "b"]
    assert env.urls("U", "", "") == ["https://x.example"]
    env.check()


def test_the_registry_describes_every_setting_that_was_read() -> None:
    env = Env({})
    env.integer("N", 3, "How many.")
    assert env.settings["N"].kind == "integer"
    assert env.settings["N"].default == "3"
    assert env.settings["N"].help == "How many."
