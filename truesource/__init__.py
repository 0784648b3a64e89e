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
#: names that people try, with ours
_OTHER_NAMES = {
    "load": "load_model, Corpus.load, PCFG.load or Result.load",
    "score": "compare",
    "perplexity": "compare",
    "load_corpus": "Corpus.load",
    "load_grammar": "PCFG.load",
    "grammar": "language or PCFG.from_text",
    "generate": "sample",
}


def __getattr__(name: str) -> Any:
    """Import a noun when it is first used."""
    if name == "__version__":
        from importlib.metadata import version

        return version("truesource")
    if name not in __all__:
        raise AttributeError(f"truesource has no {name!r}{_hint(name)}")
    from truesource.grammar.support.errors import extras_for

    with extras_for(f"truesource.{name}"):
        return _imported(name)


def _hint(name: str) -> str:
    """Return the name that was probably meant, as the end of a message; empty if none is similar."""
    if name.startswith("_"):
        return ""
    from difflib import get_close_matches

    similar = _OTHER_NAMES.get(name) or " or ".join(get_close_matches(name, __all__, 2))
    return f"; use {similar}" if similar else ""
