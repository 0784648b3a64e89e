"""The readme of the distribution: README.md without pictures of and links into the repository, dead on other pages."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from hatchling.metadata.plugin.interface import MetadataHookInterface

_ELSEWHERE = r"\((?!https?:|#)[^)]*\)"  #: a target that is neither a web page nor a section
_PICTURE = re.compile(rf"!\[[^]]*\]{_ELSEWHERE}\n*")
_LINK = re.compile(rf"\[([^]]*)\]{_ELSEWHERE}")


def readme(text: str) -> str:
    """Markdown in which links into the repository are their text, and pictures of it are left out."""
    return _LINK.sub(r"\1", _PICTURE.sub("", text))


class Readme(MetadataHookInterface):
    """Fills in ``project.readme``."""

    def update(self, metadata: dict[str, Any]) -> None:
        """Add the readme to the metadata."""
        text = (Path(self.root) / "README.md").read_text(encoding="utf-8")
        metadata["readme"] = {"content-type": "text/markdown", "text": readme(text)}
