"""A corpus in one call."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from truesource.generator.arguments import as_truth
from truesource.generator.corpus import Corpus
from truesource.generator.plan import SHARES, split_sizes
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

FEW = 100  #: sentences from which on every split of the default shares has one


def sample(
    truth: Truth | str | Path,
    number: int,
    path: str | Path | None = None,
    *,
    lengths: LengthRange | tuple[int, int] | str | None = None,
    shares: str | Mapping[str, float] | None = None,
    seed: int = DEFAULT_SEED,
    **settings: Any,
) -> Corpus:
    """Sample a corpus, as `truesource sample` does.

    Args:
        truth: grammar or process, its file, or a language.
        number: number of sentences in all splits together.
        path: folder to create; None: a temporary one, deleted with the corpus.
        lengths: condition on the number of words, such as ``6..25`` or ``(6, 25)``; None: sentences of all lengths.
        shares: share of the sentences in each split; None: train .96, dev .01, test .01 and eval .02, of fewer than
            `FEW` sentences all in the split eval.
        seed: seed of the samples.
        settings: further arguments of `Corpus.sample`, such as ``overlap``, ``columns`` or ``force``.

    Raises:
        InputError: an invalid argument, an occupied ``path``, or a range without sentences.
    """
    if isinstance(number, bool) or not isinstance(number, int) or number < 1:
        raise InputError(f"the number of sentences must be 1 or more, got {number!r}")
    if shares is None:
        shares = SHARES if number >= FEW else "eval=1"
    if not isinstance(shares, str):
        shares = ",".join(f"{name}={share!r}" for name, share in shares.items())
    splits = split_sizes(shares, number)
    folder = Path(mkdtemp(prefix="truesource-")) if path is None else None
    target = folder / "corpus" if folder is not None else Path(str(path))
    try:
        corpus = Corpus.sample(as_truth(truth), splits, seed=seed, path=target, lengths=lengths, **settings)
    except BaseException:
        if folder is not None:
            rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(corpus, rmtree, folder, ignore_errors=True)
    return corpus
