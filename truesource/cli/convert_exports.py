"""`truesource convert` for corpora: write the files that other training code reads."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from truesource.generator.export import META, ExportFormat, export
from truesource.grammar.support.errors import InputError
from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.generator.corpus import Corpus


def export_corpus(source: Path, target: Path, to: ExportFormat, split: str | None, *, bound: bool, force: bool) -> None:
    """Write one split (None: all) to a folder of files that other training code reads.

    Raises:
        InputError: there is no such corpus or split, or `truesource.generator.export.export` cannot write it.
    """
    from truesource.generator.corpus import Corpus
    from truesource.grammar.truth import load_truth
    from truesource.terminal.inputs import grammar_inside
    from truesource.terminal.output import claim_folder

    claim_folder(target, "folder of exported text", META, force=force)
    corpus = Corpus.load(source)
    names = list(corpus.splits) if split is None else [split]
    for name in names:
        corpus.n_sentences(name)  # raises if there is no such split
    grammar = grammar_inside(source)
    if grammar is None and bound:
        echo(f"{source} contains no grammar, so the export has no bound.", err=True)
    bounds = {name: _bound(corpus, name, grammar) for name in names} if bound and grammar is not None else {}
    words = () if grammar is None else load_truth(grammar).vocabulary
    parts = export(corpus, target, to, splits=names, words=words, bounds=bounds)
    for name, part in parts.items():
        bound_text = "" if part.bound is None else f", exact bound {part.bound:.4f} nats per token"
        echo(f"{name}: {part.sentences:,} sentences, {part.tokens:,} tokens with their ends{bound_text}")
    echo(f"Wrote {target}. Next: train on {target / parts[names[0]].file}; meta.json has the vocabulary")


def _bound(corpus: Corpus, split: str, grammar: Path) -> float:
    """Return the exact cross-entropy of a split in nats per token, sentence ends included.

    Raises:
        InputError: the grammar in the folder gives a sentence probability 0.
    """
    from truesource.evaluation.core.sentence_records import sentence_records
    from truesource.evaluation.core.text import Text
    from truesource.terminal.inputs import setting_of

    setting = setting_of(Text.of(corpus, split), grammar)
    records = sentence_records(
        setting.known,
        setting.sentences,
        lengths=setting.lengths,
        masked=False,
        excluded=setting.excluded,
        transform=setting.transform,
    )
    wrong = [number for number, record in enumerate(records, start=1) if not record["possible"]]
    if wrong:
        raise InputError(
            f"the grammar in the folder gives sentence {wrong[0]} of {split} probability 0; use --no-bound", corpus.path
        )
    values = (record["logprob"] for record in records)
    total = float(sum(value for value in values if value is not None))
    return -total / (corpus.n_tokens(split) + corpus.n_sentences(split))
