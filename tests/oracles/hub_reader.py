"""Model folders as a process of `transformers` reads them, away from the checkout and from the hub."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any


def read_elsewhere(code: str, folders: list[Any], at: Path) -> Any:
    """What code prints in its last line, as JSON; it gets ``folders`` as JSON, and works in the folder ``at``."""
    done = subprocess.run(
        [sys.executable, "-c", code, json.dumps(folders)],
        cwd=at,
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, "HF_HUB_OFFLINE": "1", "HF_MODULES_CACHE": str(at / "modules")},
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return json.loads(done.stdout.splitlines()[-1])
