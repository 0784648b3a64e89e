"""The site: `make docs` builds it into docs/_build/html. It needs no network, neither to build nor to read."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
from importlib.metadata import version as installed
from pathlib import Path

DOCS = Path(__file__).resolve().parent
ROOT = DOCS.parent
sys.path[:0] = [str(ROOT), str(DOCS / "_ext")]

project = "truesource"
author = "The truesource developers"
project_copyright = "The truesource developers, Apache License 2.0"
release = version = installed("truesource")
language = "en"

extensions = [
    "myst_nb",
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_copybutton",
    "index_pages",
    "generated",
    "fields",
    "names",
    "streams",
    "summary",
]
root_doc = "index"
exclude_patterns = [
    "_build",
    "_ext",
    # parts of gallery/languages.md, which has their text
    *(f"gallery/{page.name}" for page in (DOCS / "gallery").glob("*.md") if page.stem not in {"index", "languages"}),
]
# Links of pages are checked. Types of other libraries have no page here, so those of docstrings are not.
smartquotes = False  # two hyphens are those of options
nitpicky = True
nitpick_ignore_regex = [("py:.*", ".*")]
default_role = "py:obj"
autodoc_typehints_format = "short"
autodoc_member_order = "bysource"
autodoc_preserve_defaults = True
python_maximum_signature_line_length = 88
napoleon_google_docstring = True
napoleon_numpy_docstring = False
toc_object_entries = False
highlight_language = "none"
copybutton_prompt_text = r">>> |\.\.\. |\$ "
copybutton_prompt_is_regexp = True

myst_enable_extensions = ["colon_fence", "deflist", "fieldlist"]
myst_heading_anchors = 4

html_theme = "furo"
html_title = "truesource"
html_copy_source = False
html_show_sourcelink = False
html_static_path = ["_static"]
html_css_files = ["site.css"]
html_theme_options = {"navigation_with_keys": True}


def code_digest() -> str:
    """A digest of all that an executed page may use besides itself."""
    found = hashlib.sha256()
    for folder in ("truesource", "grammar", "generator", "lmtrain", "evaluation", "data", "docs/examples"):
        for file in sorted((ROOT / folder).rglob("*")):
            if file.is_file() and file.suffix != ".pyc" and "reproductions" not in file.parts:
                found.update(file.relative_to(ROOT).as_posix().encode() + file.read_bytes())
    return found.hexdigest()[:16]


def executed_pages() -> Path:
    """The folder of outputs of executed pages; those of other code are removed."""
    folder = DOCS / "_build" / "executed"
    mine = folder / code_digest()
    for other in folder.glob("*"):
        if other != mine:
            shutil.rmtree(other)
    mine.mkdir(parents=True, exist_ok=True)
    return mine


# A page runs with this Python, in a temporary folder, with an empty home and without network.
nb_execution_mode = "cache"
nb_execution_cache_path = str(executed_pages())
nb_execution_in_temp = True
nb_execution_raise_on_error = True
nb_execution_timeout = 1200
nb_merge_streams = True
_home = DOCS / "_build" / "home"
_profile = _home / ".ipython" / "profile_default"
_profile.mkdir(parents=True, exist_ok=True)
# A kernel warns about its connection, which does not leave this machine.
(_profile / "ipython_kernel_config.py").write_text('get_config().IPKernelApp.log_level = "ERROR"\n', encoding="utf-8")
os.environ.update(
    HOME=str(_home),
    PATH=f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}",
    PYTHONPATH=str(ROOT),
    TRUESOURCE=str(ROOT),
    HF_HUB_OFFLINE="1",
    HF_DATASETS_OFFLINE="1",
    PYDEVD_DISABLE_FILE_VALIDATION="1",
    COLUMNS="110",
)
for name in ("http_proxy", "https_proxy", "HTTP_PROXY", "HTTPS_PROXY", "TRUESOURCE_SHARED_DATA"):
    os.environ.pop(name, None)
