"""All that the verbs and evaluators write on fixed inputs has the digests of `tests/golden.json`.

A change that means to leave every number as it is leaves this test green. One that means to change some runs
``make golden``, and says in its commit why each digest changed.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command
from golden import DIGESTS, PARTS, differences, machine, make

pytestmark = pytest.mark.long


@pytest.mark.usefixtures("one_thread")
@pytest.mark.parametrize("part", PARTS)
def test_all_that_is_written_is_as_it_was(
    part: str, tmp_path: Path, command: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    known = json.loads(DIGESTS.read_text("utf-8"))
    if machine() != known["machine"]:
        pytest.skip("this processor or other versions of libraries round in another way than those of golden.json")
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    wanted = {name: digest for name, digest in known["digests"].items() if name.startswith(f"{part}: ")}
    found = make(part, lambda arguments: command(*arguments))
    assert list(differences(found, wanted)) == [], "python tests/oracles/golden.py shows the files"
