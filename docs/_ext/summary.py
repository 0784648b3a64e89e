"""Executed pages can be downloaded as notebooks; the build ends with what was built, executed and how long it took."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

from docutils import nodes
from myst_nb.core.execute.base import ExecutionResult
from myst_nb.sphinx_ import NbMetadataCollector
from streams import joined

if TYPE_CHECKING:
    from sphinx.application import Sphinx

FOLDER = "notebooks"


def add_link(app: Sphinx, doctree: nodes.document, docname: str) -> None:
    """Below the title of an executed page: its notebook."""
    if not _execution(app, docname) or app.builder.format != "html":
        return
    title = next(doctree.findall(nodes.title), None)
    if title is None:
        return
    up = "../" * docname.count("/")
    name = f"{docname.rpartition('/')[2]}.ipynb"
    link = nodes.reference("", f"Download this page as a notebook ({name})", refuri=f"{up}{FOLDER}/{docname}.ipynb")
    title.parent.insert(title.parent.index(title) + 1, nodes.paragraph("", "", link))


def finish(app: Sphinx, exception: Exception | None) -> None:
    """Put the notebooks beside the pages, and say what was done."""
    if exception is not None or app.builder.format != "html":
        return
    pages = sorted(app.env.found_docs)
    executed = {name: found for name in pages if (found := _execution(app, name))}
    cells = 0
    for name, found in executed.items():
        notebook = Path(app.outdir).parent / "jupyter_execute" / f"{name}.ipynb"
        text = notebook.read_text(encoding="utf-8")
        content = json.loads(text)
        code = [cell for cell in content["cells"] if cell["cell_type"] == "code"]
        of_page = len(code)
        cells += of_page
        for cell in code:
            whole = [{**each, "text": "".join(each["text"])} if "text" in each else each for each in cell["outputs"]]
            cell["outputs"] = joined(whole)
        target = Path(app.outdir) / FOLDER / f"{name}.ipynb"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(json.dumps(content, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        now = found["mtime"] >= app.truesource_began
        how = f"{found['runtime']:.1f} s" if now else f"unchanged, {found['runtime']:.1f} s when it was executed"
        print(f"{name}: {of_page} cells, {how}")
    seconds = time.time() - app.truesource_began
    print(f"{len(pages)} pages; {cells} cells on {len(executed)} executed pages; {seconds:.0f} s")
    print(f"The site is {Path(app.outdir) / 'index.html'}")


def _execution(app: Sphinx, docname: str) -> ExecutionResult | None:
    found = NbMetadataCollector.get_exec_data(app.env, docname)
    return found if found and found["runtime"] is not None else None


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.truesource_began = time.time()
    app.connect("doctree-resolved", add_link)
    app.connect("build-finished", finish)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
