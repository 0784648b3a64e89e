"""An index page is a plain list of links, here and on a code host; the site takes its table of contents from them."""

from __future__ import annotations

import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sphinx.application import Sphinx

ITEM = re.compile(r"^(?:[-*] |\| )\[[^]]*\]\(([\w./-]+)\.md\)", re.MULTILINE)


#: folders of pages that a build makes from the code; a repository does not have them
GENERATED = ("reference/command", "reference/api", "reproductions")
#: pages that a build makes from the code, with the modules that make them
PAGES = {
    "reference/settings.md": "settings_page",
    "reference/signature-keys.md": "key_page",
    "reference/truths.md": "truths_page",
}


def pages_of(docs: Path) -> list[Path]:
    """The pages that a repository has."""
    away = [docs / name for name in ("_build", *GENERATED, *PAGES)]
    return sorted(page for page in docs.rglob("*.md") if not any(page.is_relative_to(folder) for folder in away))


def is_index(docname: str) -> bool:
    """Whether the pages that this one lists are its subpages."""
    return docname.rpartition("/")[2] == "index"


def linked(text: str) -> list[str]:
    """The pages that list items and first cells of table rows link to, in their order."""
    return list(dict.fromkeys(ITEM.findall(text)))


def subpages(index: Path) -> list[str]:
    """The pages below an index page: those it lists; of other folders, only their indexes."""
    return [name for name in linked(index.read_text(encoding="utf-8")) if _below(name)]


def _below(name: str) -> bool:
    return not name.startswith("..") and ("/" not in name or is_index(name))


def add_contents(_app: Sphinx, docname: str, source: list[str]) -> None:
    """Append the table of contents, which only the side bar shows."""
    if is_index(docname):
        names = [name for name in linked(source[0]) if _below(name)]
        source[0] += "\n```{toctree}\n:hidden:\n\n" + "\n".join(names) + "\n```\n" if names else ""


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("source-read", add_contents)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
