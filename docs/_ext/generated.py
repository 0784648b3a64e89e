"""Pages that each build makes from the code: commands, Python API, settings, signature keys, truths, reproductions.

JSON Schemas are written next to them.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from index_pages import GENERATED, PAGES

if TYPE_CHECKING:
    from sphinx.application import Sphinx


def write(docs: Path, folder: str, pages: dict[str, str]) -> None:
    """Write the pages of a folder that changed, and remove those that are no longer made."""
    root = docs / folder
    root.mkdir(parents=True, exist_ok=True)
    for name, text in pages.items():
        write_page(root / name, text)
    for page in root.iterdir():
        if page.name not in pages:
            page.unlink()


def write_page(page: Path, text: str) -> None:
    """Write a page if it changed, so that only then Sphinx reads it again."""
    if not page.is_file() or page.read_text(encoding="utf-8") != text:
        page.write_text(text, encoding="utf-8")


def write_all(app: Sphinx) -> None:
    """Write all generated pages, before Sphinx looks for pages."""
    from api_pages import api_pages
    from command_pages import command_pages
    from reproduction_pages import pages

    docs = Path(app.srcdir)
    reproductions = {f"{name}.md": text for name, text in pages().items()}
    for folder, made in zip(GENERATED, (command_pages(), api_pages(), reproductions), strict=True):
        write(docs, folder, made)
    for name, page in PAGES.items():
        write_page(docs / name, import_module(page).page())


def write_schemas(app: Sphinx, exception: Exception | None) -> None:
    """Put the JSON Schemas of configurations beside the pages."""
    from truesource.cli.new import Of, schema_text

    if exception is None and app.builder.format == "html":
        folder = Path(app.outdir) / "schema"
        folder.mkdir(exist_ok=True)
        for kind in Of:
            (folder / f"{kind}.schema.json").write_text(schema_text(kind), encoding="utf-8")


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.connect("builder-inited", write_all)
    app.connect("build-finished", write_schemas)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
