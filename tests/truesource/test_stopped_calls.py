"""A call that is killed or stopped before any change it makes to the disk: the same call then ends as if whole."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import stopping
from toy_english import BANK, TOY

from truesource.terminal.logs import INTERRUPTED, STOPPED

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(sys.platform == "darwin", reason="a forked process may not use the frameworks of macOS"),
]

TEXT = "the dog sees a cat\nman walks\n"


@pytest.fixture
def template(tmp_path: Path) -> Path:
    folder = tmp_path / "template"
    folder.mkdir()
    for name, text in {"toy.txt": TOY, "bank.mrg": BANK, "text.txt": TEXT}.items():
        (folder / name).write_text(text, encoding="utf-8")
    return folder


def stopped_everywhere(signal: str, template: Path, line: str) -> tuple[list[str], list[dict[str, Any]]]:
    """The files of the whole call, and what became of every stop; see `stopping`."""
    call = [sys.executable, stopping.__file__, signal, str(template), *line.split()]
    done = subprocess.run(call, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["code"] == 0, found["said"]
    return found["whole"], found["stops"]


CALLS = (
    "convert toy.txt new --to berkeley",
    "induce bank.mrg -o new.npz --trace new.jsonl --cycles 1",
    "vary toy.txt --variant mirror=all --lengths 2..4 -o new --json new.json",
    "sample toy.txt -n 30 --shares train=1 --shard-size 20 --lengths 2..8 -o new",
    "sample toy.txt -n 20 --shares train=1 --lengths 2..8 --variant mirror=all -o new",
    "bound toy.txt text.txt -o new --json new.json",
    "parse toy.txt text.txt -o new --shard-size 1",
    "parse toy.txt text.txt -o new.mrg",
)


@pytest.mark.parametrize(
    ("signal", "line"),
    [
        *(("SIGKILL", line) for line in CALLS[:2]),
        ("SIGINT", CALLS[0]),
        *(pytest.param("SIGKILL", line, marks=pytest.mark.slow) for line in CALLS[2:]),
        *(pytest.param("SIGINT", line, marks=pytest.mark.slow) for line in CALLS[1:]),
    ],
)
def test_the_same_call_ends_as_if_whole(signal: str, line: str, template: Path) -> None:
    whole, stops = stopped_everywhere(signal, template, line)
    new = {name for name in whole if name.startswith("new")}
    assert len(stops) >= 4 * len(new) and not any(Path(name).name.startswith(".") for name in whole)
    for stop in stops:
        if signal == "SIGKILL":
            assert stop["status"] == -9
        else:
            code, said = stop["ended"]
            assert code == INTERRUPTED and said.splitlines().count(STOPPED) == 1 and said.endswith(f"{STOPPED}\n"), stop
            assert "Traceback" not in said, stop
        finished = stop["again"] == 2 and "will not overwrite" in stop["told"]
        assert stop["again"] == 0 or finished, stop
        assert stop["differ"] == [], stop
    # where all was there already, the call is refused as after a whole one: at most while the locks go
    assert sum(stop["again"] == 2 for stop in stops) <= 4


def test_a_killed_replacement_leaves_old_or_new(template: Path, tmp_path: Path) -> None:
    """With --force over an old pair of files: whatever is killed, no new file stands beside an old one."""
    for name in ("new.grammar", "new.lexicon"):
        (template / name).write_text("old", encoding="utf-8")
    _, stops = stopped_everywhere("SIGKILL", template, "convert toy.txt new --to berkeley --force")
    states = {tuple(stop["left"].get(name) for name in ("new.grammar", "new.lexicon")) for stop in stops}
    for first, second in states:
        assert None in (first, second) or (first == "old") == (second == "old")
    assert all(stop["again"] == 0 and stop["differ"] == [] for stop in stops)
