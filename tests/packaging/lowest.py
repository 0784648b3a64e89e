"""Print constraints for pip: of every library that truesource needs, the lowest version that its metadata allow.

``python tests/packaging/lowest.py [NAME=VERSION ...]``, which take the place of what the metadata say. Tools for
development (the extra ``dev``) and other packages' needs (``harness``) are left as they are.
"""

from __future__ import annotations

import re
import sys
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
OTHERS = ("dev", "harness")  #: extras that are not of truesource itself
_BOUND = re.compile(r"(?P<name>[A-Za-z0-9._-]+)(\[[^]]*\])?>=(?P<version>[0-9.]+)")


def lowest(root: Path = ROOT) -> dict[str, str]:
    """Versions by name.

    Raises:
        ValueError: a requirement has no lower bound.
    """
    project = tomllib.loads((root / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    extras = project["optional-dependencies"]
    listed = [*project["dependencies"], *(each for name in extras if name not in OTHERS for each in extras[name])]
    found = {}
    for requirement in listed:
        if requirement.startswith(project["name"]):  # extras of its own
            continue
        bound = _BOUND.match(requirement)
        if bound is None:
            raise ValueError(f"{requirement} has no lower bound")
        found[bound["name"]] = bound["version"]
    return found


if __name__ == "__main__":
    given = dict(argument.split("=", 1) for argument in sys.argv[1:])
    for name, version in sorted({**lowest(), **given}.items()):
        print(f"{name}=={version}")
