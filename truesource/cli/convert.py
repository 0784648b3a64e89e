"""`truesource convert`: a grammar in another format, or an n-gram model as a grammar."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

import typer
from pydantic import Field

from truesource.grammar.formats import names
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import counted
from truesource.grammar.support.settings import Settings, option_name
from truesource.terminal.console import echo
from truesource.terminal.options import Convention, Force, Json, Normalise, SplitName
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.treebank import Normalisation
    from truesource.lmtrain.architectures.ngram.models import NgramModel


FORMATS = ", ".join(names())


class ConversionSettings(Settings):
    """How `truesource convert` reads, changes and writes a grammar."""

    advanced: ClassVar = frozenset({"start", "level", "prune"})
    from_: str | None = Field(None, description=f"Source format: {FORMATS} (default: detected).")
    to: str | None = Field(None, description=f"Target format: {FORMATS} (default: by name).")
    start: str | None = Field(None, description="Start symbol (default: the start symbol of the source).")
    normalise: bool = Field(False, description="Divide the weights of each symbol's rules by their sum.")
    cut_words: bool = Field(False, description="Make words with white space several words, and empty ones none.")
    level: int | None = Field(None, ge=0, description="Project a split-merge grammar to this number of splits.")
    prune: float | None = Field(None, description="Remove rules with a lower probability and report the cost.")


@with_options(ConversionSettings)
def command(
    source: Annotated[
        Path,
        typer.Argument(help="Grammar (NAME of NAME.grammar, NAME.lexicon), language, n-gram model, corpus, trees."),
    ],
    target: Annotated[
        Path, typer.Argument(help="File to write, such as g.npz or g.txt.gz; of a corpus, .txt for sentences.")
    ],
    settings: ConversionSettings,
    split: SplitName = "train",
    symbols: Annotated[
        bool, typer.Option("--symbols", help="Write the grammar's symbols into the trees of a corpus, not labels.")
    ] = False,
    binarised: Annotated[bool, typer.Option("--binarised", help="Keep the @ nodes in the trees of a corpus.")] = False,
    convention: Convention = "penn",
    tree_settings: Normalise = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Convert a grammar to another format, or write the trees or sentences of a corpus or treebank as text.

    Numbers in Berkeley and EarleyX text are always normalised. The folder of an n-gram model of words becomes the
    grammar of its language.

    Example: truesource convert grammar.npz grammar.txt
    """
    from zipfile import is_zipfile

    from truesource.terminal.treebanks import is_treebank, normalisation

    for_trees = "--normalisation" if tree_settings else "--convention" if convention != "penn" else ""
    trees = is_treebank(source) or bool(for_trees and source.is_file() and not is_zipfile(source))
    if for_trees and not trees:
        raise InputError(f"{for_trees} applies to treebanks only; remove it", source)
    if not trees and (not source.is_dir() or (source / "config.json").is_file()):
        convert_grammar(source, target, settings, json=json, force=force)
        return
    given = ", ".join(map(option_name, settings.model_dump(exclude_defaults=True)))
    if given:
        what = "treebank" if trees else "corpus folder"
        raise InputError(f"this is a {what}, but {given} applies to grammars only; remove it", source)
    if trees:
        if symbols or binarised:
            raise InputError("--symbols and --binarised apply to corpora only; remove them", source)
        write_treebank(source, target, normalisation(convention, tree_settings), json=json, force=force)
        return
    write_corpus(source, target, split, symbols=symbols, binarised=binarised, json=json, force=force)


def convert_grammar(
    source: Path, target: Path, settings: ConversionSettings, *, json: Path | None, force: bool
) -> None:
    """Write a grammar in another format, perhaps coarser or smaller."""
    from truesource.grammar.formats import format_of, save_grammar, target_files
    from truesource.grammar.pcfg import PCFG
    from truesource.lmtrain.references import is_arpa
    from truesource.terminal.output import OutputFiles, json_of

    for name in (settings.from_, settings.to):
        if name is not None:
            format_of(name)
    files = target_files(target, settings.to)
    outputs = OutputFiles(more=files, json=json, force=force)
    if source.is_dir() or is_arpa(source):
        pcfg = _language_of_model(source, settings)
    else:
        pcfg = PCFG.load(
            source,
            normalise=settings.normalise,
            format=settings.from_,
            start=settings.start,
            cut_words=settings.cut_words,
        )
    pruning = None
    if settings.level is not None:
        from truesource.grammar.estimate.split_merge.projection import project

        pcfg = project(pcfg, settings.level)
    if settings.prune is not None:
        from truesource.grammar.restrict import prune

        pcfg, cost = prune(pcfg, settings.prune)
        echo(str(cost))
        pruning = asdict(cost)
    record = {"files": list(map(str, files)), "digest": pcfg.digest, "sizes": pcfg.sizes(), "pruning": pruning}
    also = outputs.write_with(
        lambda: save_grammar(pcfg, target, force=True, format=settings.to), files, {"json": json_of(record)}
    )
    echo(f"Wrote {' and '.join([*map(str, files), *also])}: {pcfg!r}. Next: truesource inspect {files[0]}")


def _language_of_model(folder: Path, settings: ConversionSettings) -> PCFG:
    """The grammar of the n-gram model in a folder or an ARPA file."""
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.folders import refuse_other_kind
    from truesource.lmtrain.architectures.ngram.as_grammar import as_grammar
    from truesource.lmtrain.architectures.ngram.models import NGRAM
    from truesource.lmtrain.loading import model_type_of
    from truesource.lmtrain.models import load_model

    refuse_other_kind(folder, "model")
    given = settings.model_dump(include={"from_", "start", "normalise", "cut_words"}, exclude_defaults=True)
    if given:
        options = ", ".join(map(option_name, given))
        raise InputError(f"this is a folder of a model, but {options} applies to grammars only; remove it", folder)
    if folder.is_dir() and model_type_of(folder) != NGRAM:
        raise InputError("of the models, only n-gram models can be written as grammars; this is another one", folder)
    pcfg = PCFG.of(as_grammar(cast("NgramModel", load_model(folder))))
    if pcfg.meta["empty"]["mass"] > 0.0:
        echo(f"Left out the empty sentence, which has probability {pcfg.meta['empty']['mass']:.3g} in the model.")
    return pcfg


def write_treebank(source: Path, target: Path, normalise: Normalisation, *, json: Path | None, force: bool) -> None:
    """Write the trees of a treebank, or their sentences if the name of ``target`` ends in ``.txt``; gzipped if .gz.

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
    """Write lines of text, packed for ``.gz``, atomically."""
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
    """Write one split: Penn bracketings, or sentences if the name of ``target`` ends in ``.txt``; compressed if .gz.

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
        raise InputError("--symbols and --binarised are for trees, but .txt files have sentences; remove them", target)
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
