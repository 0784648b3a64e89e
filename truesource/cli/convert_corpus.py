"""`truesource convert` for treebanks and corpora: write trees or sentences to a file."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted
from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.grammar.treebank import Normalisation


def write_treebank(source: Path, target: Path, normalise: Normalisation, *, json: Path | None, force: bool) -> None:
    """Write the trees of a treebank, or their sentences if the name of ``target`` ends in ``.txt``; ``.gz`` compresses.

    Raises:
        InputError: the treebank cannot be read, or ``target`` cannot be written.
    """
    from truesource.generator.text_files import line_of
    from truesource.grammar.treebank import Treebank
    from truesource.terminal.output import OutputFiles, json_of
    from truesource.terminal.treebanks import show_reading

    files = OutputFiles(text=target, json=json, force=force)
    bank = Treebank.read(source, normalise)
    show_reading(bank)
    if _is_text(target):
        _write_lines(target, map(line_of, bank.sentences()), len(bank))
    else:
        bank.write(target, force=True)
    what = "sentences" if _is_text(target) else "trees"
    also = files.also(json=json_of({"file": str(target), what: len(bank), "reading": bank.reading.as_dict()}))
    following = f"train {target} -o model/" if _is_text(target) else f"induce {target} -o grammar.npz"
    echo(f"Wrote {target}{also}: {counted(len(bank), what[:-1])}. Next: truesource {following}")


def _is_text(target: Path) -> bool:
    return target.name.removesuffix(".gz").endswith(".txt")


def _write_lines(target: Path, lines: Iterable[str], n: int) -> None:
    """Write lines of text, atomically; ``.gz`` compresses."""
    from truesource.grammar.support.atomic_files import atomic_path, opened_to_write
    from truesource.grammar.support.printable import meter

    with (
        atomic_path(target) as temporary,
        meter("writing lines", total=n) as progress,
        opened_to_write(temporary, packed=target.suffix == ".gz") as stream,
    ):
        for line in lines:
            stream.write(line.encode() + b"\n")
            progress.advance(1)


def write_corpus(
    source: Path, target: Path, split: str, *, symbols: bool, binarised: bool, json: Path | None, force: bool
) -> None:
    """Write one split: Penn bracketings, or sentences if the name of ``target`` ends in ``.txt``; ``.gz`` compresses.

    Raises:
        InputError: there is no such corpus or split, it has no trees, a word of a sentence contains white space, or
            ``target`` cannot be written.
    """
    from truesource.generator.corpus import Corpus
    from truesource.generator.text_files import line_of
    from truesource.terminal.output import OutputFiles, json_of

    files = OutputFiles(text=target, json=json, force=force)
    corpus = Corpus.load(source)
    n = corpus.n_sentences(split)
    plain = _is_text(target)
    if plain and (symbols or binarised):
        raise InputError("--symbols and --binarised are for trees, but .txt files hold sentences; remove them", target)
    lines: Iterable[str]
    if plain:
        lines = (line_of(sentence) for sentence in corpus.sentences(split))
    else:
        lines = corpus.brackets(split, coarse=not symbols, binarised=binarised)
    _write_lines(target, lines, n)
    following = f"inspect GRAMMAR {target}" if plain else f"induce {target} -o grammar.npz"
    what = "sentences" if plain else "trees"
    also = files.also(json=json_of({"file": str(target), "split": split, what: n, "tokens": corpus.n_tokens(split)}))
    echo(f"Wrote {target}{also}: {counted(n, what[:-1])}. Next: truesource {following}")
