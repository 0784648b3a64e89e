"""The compile cache of kernels: what other files of kernels say is part of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

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
