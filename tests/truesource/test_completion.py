"""Shell completion knows every verb and option, and imports only the verb that is completed."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

pytestmark = pytest.mark.long

CODE = """\
import atexit, sys
from truesource.cli.main import main
atexit.register(lambda: print("heavy:", *{"torch", "transformers", "numba", "nltk", "pandas"} & {*sys.modules}))
sys.argv = ["truesource", *sys.argv[1:]]
main()
"""


@pytest.mark.parametrize(
    ("line", "expected"),
    [
        ("truesource sa", {"sample"}),
        ("truesource sample --workers 2 --max", {"--max-height"}),
        ("truesource evaluate div", {"divergence"}),
        ("truesource evaluate divergence --top", {"--top-k"}),
    ],
)
def test_a_line_is_completed_without_heavy_imports(line: str, expected: set[str]) -> None:
    words = line.split(" ")
    environment = {
        **os.environ,
        "COMP_WORDS": line,
        "COMP_CWORD": str(len(words) - 1),
        "_TRUESOURCE_COMPLETE": "complete_bash",
    }
    done = subprocess.run([sys.executable, "-c", CODE], env=environment, capture_output=True, text=True, check=False)
    *found, heavy = done.stdout.splitlines()
    assert done.returncode == 0, done.stderr
    assert set(found) == expected
    assert heavy == "heavy:"


def test_the_script_of_a_shell_is_shown() -> None:
    environment = {**os.environ, "_TYPER_COMPLETE_TEST_DISABLE_SHELL_DETECTION": "1"}
    call = [sys.executable, "-c", CODE, "--show-completion", "bash"]
    done = subprocess.run(call, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "complete -o default -F _truesource_completion truesource" in done.stdout
