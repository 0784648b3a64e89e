"""The trees or sentences of a corpus as plain text, for `truesource convert`."""

from __future__ import annotations

import gzip
from collections.abc import Iterable
from pathlib import Path

from truesource.cli.console import echo
from truesource.grammar.support.errors import InputError


def write_corpus(
    source: Path, target: Path, split: str, *, symbols: bool, binarised: bool, json: Path | None, force: bool
) -> None:
    """Write one split: Penn bracketings, or sentences if the name of ``target`` ends in ``.txt``; compressed if .gz.

    Raises:
        InputError: there is no such corpus or split, it has no trees, a word of a sentence contains white space, or
            ``target`` cannot be written.
    """
    from truesource.cli.output import OutputFiles, json_of
    from truesource.generator.corpus import Corpus
    from truesource.generator.text import line_of
    from truesource.grammar.support.files import atomic_path
    from truesource.grammar.support.printable import meter

    files = OutputFiles(text=target, json=json, force=force)
    corpus = Corpus.load(source)
    n = corpus.n_sentences(split)
    plain = target.name.removesuffix(".gz").endswith(".txt")
    if plain and (symbols or binarised):
        raise InputError("--symbols and --binarised are for trees, but .txt files have sentences; remove them", target)
    lines: Iterable[str]
    if plain:
        lines = (line_of(sentence) for sentence in corpus.sentences(split))
    else:
        lines = corpus.brackets(split, coarse=not symbols, binarised=binarised)
    with atomic_path(target) as temporary, meter("writing lines", total=n) as progress:
        packed = gzip.GzipFile(temporary, "wb", mtime=0) if target.suffix == ".gz" else temporary.open("wb")
        with packed as stream:
            for line in lines:
                stream.write(line.encode() + b"\n")
                progress.advance(1)
    following = f"inspect GRAMMAR {target}" if plain else f"induce {target} -o grammar.npz"
    what = "sentences" if plain else "trees"
    also = files.also(json=json_of({"file": str(target), "split": split, what: n, "tokens": corpus.n_tokens(split)}))
    echo(f"Wrote {target}{also}: {n:,} {what}. Next: truesource {following}")
