"""The compile cache of kernels: what other files of kernels say is part of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from truesource.grammar._kernels.kernel import kernel

pytestmark = pytest.mark.long

RULES = """
from typing import NamedTuple
from truesource.grammar._kernels.kernel import kernel

class {name}(NamedTuple):
    {fields}: object

@kernel
def scaled(x):
    return {factor} * x
"""
CHARTS = """
from truesource.grammar._kernels.kernel import kernel
from some._kernels import rules

@kernel
def difference(pair):
    return rules.scaled(pair.first - pair.second)
"""
CALL = """
from some._kernels import charts, rules
pair = rules.{name}(**dict(first=5.0, second=2.0))
print(charts.difference(pair), charts.difference.stats.cache_hits.total())
"""


def test_a_kernel_is_compiled_anew_when_another_file_changed(tmp_path: Path) -> None:
    """Numba's own cache would take 5 - 2 for 2 - 5, miss the factor, and fail where its index names a lost class."""
    folder = tmp_path / "some" / "_kernels"
    folder.mkdir(parents=True)
    (folder / "charts.py").write_text(CHARTS)

    def found(name: str, fields: str, factor: int) -> tuple[str, ...]:
        (folder / "rules.py").write_text(RULES.format(name=name, fields=fields, factor=factor))
        run = subprocess.run(
            [sys.executable, "-c", CALL.format(name=name)],
            cwd=tmp_path,
            env=os.environ | {"NUMBA_CACHE_DIR": str(tmp_path / "cache")},
            capture_output=True,
            text=True,
            check=True,
        )
        return tuple(run.stdout.split())

    both = "first: object\n    second"
    assert found("Pair", both, 1) == ("3.0", "0")
    assert found("Pair", both, 1) == ("3.0", "1")
    assert found("Pair", "second: object\n    first", 10) == ("30.0", "0")
    assert found("Twins", both, 10) == ("30.0", "0")


CONSTANT = """
from truesource.grammar._kernels.kernel import kernel

@kernel
def up_to(first, last):
    return last - first

@kernel
def from_zero(last):
    found = 0
    for _ in range(last):
        found = up_to(found, last) + up_to(0, last)
    return found
"""


def test_a_constant_in_a_call_is_an_argument_like_any_other(tmp_path: Path) -> None:
    """Numba's own dispatcher would compile `up_to` three times: for 0, for a variable that starts at 0, and for int."""
    folder = tmp_path / "some" / "_kernels"
    folder.mkdir(parents=True)
    (folder / "constants.py").write_text(CONSTANT)
    code = (
        "from some._kernels.constants import from_zero, up_to; print(from_zero(3), *map(len, (up_to.signatures,"
        " from_zero.signatures)))"
    )
    assert _printed(code, tmp_path, {"NUMBA_CACHE_DIR": str(tmp_path / "cache")}).split() == ["6", "1", "1"]


NOWHERE = """
import numba.core.caching as caching
caching.CacheImpl._locator_classes = [caching.UserProvidedCacheLocator]  # as where nothing of the usual can be written
from some._kernels.constants import from_zero
print(from_zero(3), from_zero.stats.cache_hits.total())
"""


def test_where_nothing_can_be_written_kernels_are_kept_in_a_private_folder(tmp_path: Path) -> None:
    folder = tmp_path / "some" / "_kernels"
    folder.mkdir(parents=True)
    (folder / "constants.py").write_text(CONSTANT)
    own = tmp_path / "tmp" / f"truesource-kernels-{os.getuid()}"
    own.parent.mkdir()
    place = {"TMPDIR": str(own.parent), "NUMBA_CACHE_DIR": ""}
    assert _printed(NOWHERE, tmp_path, place).split() == ["6", "0"]
    assert own.stat().st_mode & 0o777 == 0o700
    assert _printed(NOWHERE, tmp_path, place).split() == ["6", "1"]
    own.chmod(0o755)  # others may have written what would be executed
    assert _printed(NOWHERE, tmp_path, place).split() == ["6", "0"]


def _printed(code: str, folder: Path, variables: dict[str, str]) -> str:
    environment = os.environ | variables
    run = subprocess.run(
        [sys.executable, "-c", code], cwd=folder, env=environment, capture_output=True, text=True, check=True
    )
    return run.stdout


@kernel
def _twice(values):
    return 2.0 * values[0]


@kernel
def _four_times(values):
    return 2.0 * _twice(values)


@kernel
def eight_times(values):
    return 2.0 * _four_times(values)


def test_a_kernel_for_kernels_refuses_calls_of_python() -> None:
    values = np.array([3.0])
    for _ in range(2):  # not compiled yet, and compiled
        for inner in (_twice, _four_times):
            with pytest.raises(TypeError, match="called by kernels alone"):
                inner(values)
        assert eight_times(values) == 24.0
