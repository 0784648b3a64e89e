"""Compare language models with the exact distribution of the language they were trained on.

>>> from truesource import PCFG
>>> grammar = PCFG.from_text("S -> S S 0.3 | 'a' 0.7")
>>> round(grammar.next_token(["a"]).stop, 2)
0.7

``__init__.pyi`` lists the nouns and their modules; each is imported when it is first used, so that the command's help
needs no heavy library.
"""

from __future__ import annotations

from typing import Any

from lazy_loader import attach_stub

_imported, __dir__, __all__ = attach_stub(__name__, __file__)


def __getattr__(name: str) -> Any:
    """Import a noun when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("truesource")
    from truesource.grammar.support.errors import extras_for

    with extras_for(f"truesource.{name}"):
        return _imported(name)
