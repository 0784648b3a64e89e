"""Words and sentences of a grammar, shown beside its numbers."""

from __future__ import annotations

from typing import TYPE_CHECKING

from truesource.cli.console import echo

if TYPE_CHECKING:
    from truesource.generator.sampler import Derivations, Sampler
    from truesource.grammar.pcfg import PCFG

MOST_WORDS = 60  #: a grammar of more words is no grammar to read; its words are not listed
LONGEST_STRING = 60  #: words of a sample that are shown
_STREAM = 0x1A46  #: keeps these samples apart from a corpus drawn with the same seed


def draw(pcfg: PCFG, number: int, seed: int) -> tuple[Sampler, Derivations]:
    """Derivations of a grammar to look at, and the sampler that reads them."""
    from truesource.generator.sampler import Sampler
    from truesource.grammar.support.arrays import random_state

    sampler = Sampler(pcfg)
    return sampler, sampler.draw(number, random_state(seed, _STREAM))


def show_strings(sentences: list[list[str]]) -> None:
    """Print a line for each sentence; long ones are cut."""
    for sentence in sentences:
        more = "" if len(sentence) <= LONGEST_STRING else f" ... ({len(sentence):,} words)"
        echo(f"  {' '.join(sentence[:LONGEST_STRING])}{more}")


def show_words(pcfg: PCFG) -> None:
    """Print the words of a small grammar, so that a misspelt symbol is seen among them."""
    if len(pcfg.terminals) <= MOST_WORDS:
        echo(f"the words: {' '.join(pcfg.terminals)}")
