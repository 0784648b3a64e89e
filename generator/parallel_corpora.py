"""Parallel corpora: corpora of one grammar and of its controlled variants, sentence by sentence.

If a variant only reorders children, its corpus has the same derivations as the original, in its own order. If it
changes probabilities and no rules, both are sampled with the same random numbers: changes of words only keep the tree
of every sentence, other changes keep as much as possible.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from pydantic import with_config
from typing_extensions import TypedDict

from truesource.generator._kernels import reorder
from truesource.generator.corpus import Corpus
from truesource.generator.corpus_builder import make_corpus
from truesource.generator.plan import Plan
from truesource.generator.sampler import MAX_NODES, Derivations, Sampler
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.atomic_files import write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parallel import Share, Workers
from truesource.grammar.support.records import STRICT, FileName, read_record
from truesource.grammar.variants import Change, Variant, file_names, measure

FILE = "variants.json"  #: record in a folder of parallel corpora
ORIGINAL = "original"  #: the corpus of the grammar itself
TOLERANCE = 1e-9  #: relative tolerance of probabilities that a reordering preserves


class RetoldSampler(Sampler):
    """Draws derivations of a variant by drawing and reordering derivations of the original.

    The result follows the variant exactly, since probabilities of merged rules are added.

    Args:
        original: sampler of the original grammar, under the required conditions.
        variant: variant of that grammar; `is_reordering` must hold.
    """

    def __init__(self, original: Sampler, variant: Variant) -> None:
        super().__init__(variant.pcfg, original.lengths, max_height=original.max_height)
        self.original = original
        self.target = variant.rule_map.target.astype(np.int32)
        self.swapped = variant.rule_map.swapped

    def draw(self, n: int, state: NDArray[np.uint64], *, max_nodes: int = MAX_NODES) -> Derivations:
        """Draw as `Sampler.draw` does: row i is derivation i of the original sampler in the same state."""
        derivations, first = self.original.draw(n, state, max_nodes=max_nodes), self.original
        rules = reorder(derivations.rules, derivations.ends, first.n_binary, first.first_lexical, self.swapped)
        rules = self.target[rules]
        log_prob = np.add.reduceat(self.logp[rules], derivations.ends[:-1]) if n else np.empty(0)
        return Derivations(rules, derivations.ends, derivations.n_tokens, log_prob)


def is_reordering(original: PCFG, variant: Variant) -> bool:
    """Return True if a variant has the derivations of the original, with children in another order."""
    target = variant.rule_map.target
    if (target < 0).any():
        return False
    before, after = (np.exp(np.concatenate([logp for _, logp in pcfg.tables()])) for pcfg in (original, variant.pcfg))
    return np.allclose(np.bincount(target, weights=before, minlength=len(after)), after, rtol=TOLERANCE, atol=0.0)


def sample_variants(
    pcfg: PCFG,
    changes: Sequence[Change],
    plan: Plan,
    folder: str | Path,
    *,
    workers: Workers | None = None,
    share: Share | None = None,
    force: bool = False,
    keep: bool = False,
    license: str | None = None,  # noqa: A002
) -> tuple[list[Variant], dict[str, Corpus | None]]:
    """Sample the corpora ``original`` and one a change in ``folder``, with ``variants.json``.

    Args:
        pcfg: the original grammar.
        changes: the changes, each applied to the original.
        plan: plan of every corpus; ``iid`` splits.
        folder: folder of the corpora.
        workers: processes or cluster.
        share: share of a job that samples only some of the shards.
        force: replace existing corpora.
        keep: leave existing corpora of this call unchanged.
        license: as in `truesource.generator.corpus.Corpus.sample`.

    Returns:
        The variants, and each corpus by its name; None while shards of other jobs are missing.

    Raises:
        InputError: as `truesource.generator.corpus.Corpus.sample`, or splits are not independent.
    """
    if plan.overlap != "iid":
        raise InputError("parallel corpora need iid splits: excluding sentences would break the correspondence")
    folder = Path(folder)
    before = measure(pcfg, plan.lengths)
    variants = [change(pcfg, plan.lengths, original=before) for change in changes]
    names = file_names([variant.name for variant in variants])
    original = Sampler(pcfg, plan.lengths, max_height=plan.max_height)
    samplers: dict[str, Sampler] = {ORIGINAL: original}
    for name, variant in zip(names, variants, strict=True):
        if is_reordering(pcfg, variant):
            samplers[name] = RetoldSampler(original, variant)
        else:
            samplers[name] = Sampler(variant.pcfg, plan.lengths, max_height=plan.max_height)
    corpora: dict[str, Corpus | None] = {}
    make = partial(make_corpus, workers=workers or Workers(), share=share, force=force, keep=keep, license=license)
    for name, sampler in samplers.items():
        path = folder / name
        corpora[name] = Corpus.load(path) if make(sampler, plan, path) else None
    entries = [
        {"corpus": name, "retold": isinstance(samplers[name], RetoldSampler), **variant.as_dict()}
        for name, variant in zip(names, variants, strict=True)
    ]
    write_json(folder / FILE, {"original": before.as_dict(), "variants": entries})
    return variants, corpora


@with_config(STRICT)
class _Entry(TypedDict):
    corpus: FileName


@with_config(STRICT)
class _Record(TypedDict):
    variants: list[_Entry]


def parallel_corpora(folder: str | Path) -> list[str]:
    """Return the names of the corpora of `sample_variants`, ``original`` first; each is the name of a folder.

    Raises:
        InputError: their record is missing or damaged.
    """
    record = read_record(Path(folder) / FILE, _Record, remedy="sample the variants again")
    return [ORIGINAL, *(entry["corpus"] for entry in record["variants"])]
