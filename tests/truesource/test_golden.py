"""All that the verbs and evaluators write on fixed inputs has the digests of `tests/golden.json`.

Where the processor or other versions of libraries round in another way, every call still has to end well, and to
leave files of the same names.

A change that means to leave every number as it is leaves this test green. One that means to change some runs
``make golden``, and says in its commit why each digest changed.
"""

from __future__ import annotations

import json
import re
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
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COLUMNS", "100")
    wanted = {name: digest for name, digest in known["digests"].items() if name.startswith(f"{part}: ")}
    found = make(part, lambda arguments: command(*arguments))
    if machine() == known["machine"]:
        assert list(differences(found, wanted)) == [], "python tests/oracles/golden.py shows the files"
    else:
        assert {without_digest(name) for name in found} == {without_digest(name) for name in wanted}
        pytest.skip("names are as they were; this processor or other versions round in another way than golden.json")


def without_digest(name: str) -> str:
    """The name of a file, or of a folder whose name ends in a digest of data."""
    return re.sub(r"[0-9a-f]{6,}", "*", name)
