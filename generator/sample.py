"""A corpus in one call."""

from __future__ import annotations

import weakref
from collections.abc import Mapping
from inspect import signature
from pathlib import Path
from shutil import rmtree
from tempfile import mkdtemp
from typing import Any

from truesource.generator.arguments import as_truth
from truesource.generator.corpus import Corpus
from truesource.generator.plan import SHARES, split_sizes
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.call_arguments import as_path, whole_number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.settings import DEFAULT_SEED, did_you_mean
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
    language, number = as_truth(truth), whole_number(number, "the number of sentences")
    _require_settings(settings)
    splits = split_sizes(_shares_text(shares, number), number)
    chosen = None if path is None else as_path(path, "a folder to create")
    folder = None if chosen is not None else Path(mkdtemp(prefix="truesource-"))
    target = chosen or Path(str(folder)) / "corpus"
    try:
        corpus = Corpus.sample(language, splits, seed=seed, path=target, lengths=lengths, **settings)
    except BaseException:
        if folder is not None:
            rmtree(folder, ignore_errors=True)
        raise
    if folder is not None:
        weakref.finalize(corpus, rmtree, folder, ignore_errors=True)
    return corpus


def _shares_text(shares: str | Mapping[str, float] | None, number: int) -> str:
    """Return the shares of splits as text.

    Raises:
        InputError: they are neither text nor a mapping.
    """
    if shares is None:
        return SHARES if number >= FEW else "eval=1"
    if isinstance(shares, str):
        return shares
    if not isinstance(shares, Mapping):
        raise InputError(f'write shares by split, such as {{"train": 0.9, "eval": 0.1}}, not as {shares!r}')
    return ",".join(f"{name}={share}" for name, share in shares.items())


def _require_settings(settings: Mapping[str, Any]) -> None:
    """Refuse settings that `Corpus.sample` does not have.

    Raises:
        InputError: as above.
    """
    arguments = ("truth", "number", "path", "lengths", "shares", "seed")
    names = [*arguments, *(name for name in signature(Corpus.sample).parameters if name not in ("splits", *arguments))]
    for name in settings:
        if name not in names:
            near = did_you_mean(name, names) or f"; its settings are {listed(names)}"
            raise InputError(f"sample has no setting {name!r}{near}", code="bad-setting")
