"""Names of Python objects in docstrings lead to their page, also without the module where only one has the name."""

from __future__ import annotations

from collections import defaultdict
from typing import TYPE_CHECKING, Any

from sphinx.domains.python import PythonDomain

if TYPE_CHECKING:
    from sphinx.application import Sphinx
    from sphinx.domains.python import ObjectEntry
    from sphinx.environment import BuildEnvironment

TOP = frozenset({"class", "function", "data", "exception", "module", "type"})  #: kinds that need no owner


class IndexedPythonDomain(PythonDomain):
    """Finds names in an index; Sphinx searches all of them for each name."""

    _last: dict[str, list[str]] | None = None
    _of: int = -1

    def find_obj(
        self, env: BuildEnvironment, modname: Any, classname: Any, name: str, *_: Any, **__: Any
    ) -> list[tuple[str, ObjectEntry]]:
        """The objects of a name; a name of two objects is none."""
        name = name.removesuffix("()").lstrip(".")
        for place in ((modname, classname, name), (modname, name), (classname, name), (name,)):
            full = ".".join(filter(None, place))
            if full in self.objects:
                return [(full, self.objects[full])]
        found = self._index().get(name.rpartition(".")[2], [])
        return [(found[0], self.objects[found[0]])] if len(found) == 1 else []

    def _index(self) -> dict[str, list[str]]:
        if self._last is None or self._of != len(self.objects):
            self._last, self._of = defaultdict(list), len(self.objects)
            for full, entry in self.objects.items():
                if entry.objtype in TOP:
                    self._last[full.rpartition(".")[2]].append(full)
        return self._last


def setup(app: Sphinx) -> dict[str, Any]:
    """Register with Sphinx."""
    app.add_domain(IndexedPythonDomain, override=True)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
