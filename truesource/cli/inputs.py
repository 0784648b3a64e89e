"""What verbs accept where a corpus or text is expected."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from grammar.errors import InputError

if TYPE_CHECKING:
    from grammar.conditioning import LengthRange


def read_sentences(path: Path, split: str) -> tuple[list[list[str]], LengthRange | None]:
    """Sentences of a corpus folder's split (and its condition), or of a text file, one tokenised sentence a line."""
    if path.is_dir():
        from generator.corpus import Corpus

        corpus = Corpus.load(path)
        return corpus.sentences(split), corpus.lengths
    from generator.text import read_sentences as read

    return read(path), None


def parse_splits(text: str, total: int) -> dict[str, int]:
    """``train=.98,dev=.01,test=.01`` as whole numbers of sentences that add up to ``total``."""
    shares: dict[str, float] = {}
    for part in text.split(","):
        name, separator, share = part.partition("=")
        try:
            shares[name.strip()] = float(share)
        except ValueError:
            separator = ""
        if not separator or not name.strip() or not shares[name.strip()] > 0.0:
            raise InputError(f"splits are written train=.98,dev=.01,test=.01, got {text!r}")
    if abs(sum(shares.values()) - 1.0) > 1e-9:
        raise InputError(f"the shares of the splits sum to {sum(shares.values()):g}, not 1")
    sizes = {name: int(share * total) for name, share in shares.items()}
    sizes[max(shares, key=lambda name: shares[name])] += total - sum(sizes.values())
    if min(sizes.values()) < 1:
        raise InputError(f"{total} sentences are too few for the splits {text!r}: one would be empty")
    return sizes
