"""`truesource convert`: convert grammars to other formats, n-gram models to grammars, corpora to text."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, ClassVar, cast

import typer
from pydantic import Field

from truesource.grammar.formats import names
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.printable import listed
from truesource.grammar.support.settings import Settings, option_name
from truesource.terminal.console import echo
from truesource.terminal.options import Convention, Force, Json, Normalise
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG
    from truesource.lmtrain.architectures.ngram.models import NgramModel


FORMATS = ", ".join(names())
GRAMMAR, CORPUS, TREEBANK = "grammar", "corpus folder", "treebank"


class ConversionSettings(Settings):
    """Settings of `truesource convert`: how it reads, changes and writes a grammar."""

    advanced: ClassVar = frozenset({"start", "level", "prune"})
    from_: str | None = Field(None, description=f"Source format: {FORMATS} (default: detected).")
    to: str | None = Field(None, description="Target format (default: by file name); for corpora: bin, jsonl or ids.")
    start: str | None = Field(None, description="Start symbol (default: the start symbol of the source).")
    normalise: bool = Field(False, description="Divide the weights of each symbol's rules by their sum.")
    cut_words: bool = Field(False, description="Split words at white space, and remove empty words.")
    level: int | None = Field(None, ge=0, description="Project a split-merge grammar to this split level.")
    prune: float | None = Field(None, description="Remove rules with a lower probability and report the cost.")


@with_options(ConversionSettings)
def command(
    source: Annotated[
        Path,
        typer.Argument(help="Grammar (NAME of NAME.grammar, NAME.lexicon), language, n-gram model, corpus, trees."),
    ],
    target: Annotated[
        Path,
        typer.Argument(help="File such as g.npz or g.txt.gz (.txt of a corpus: sentences), or a folder for exports."),
    ],
    settings: ConversionSettings,
    split: Annotated[
        str | None, typer.Option("--split", help="Split of a corpus folder (default: train; for exports: all).")
    ] = None,
    symbols: Annotated[
        bool, typer.Option("--symbols", help="Write nonterminals of the grammar into trees of a corpus, not labels.")
    ] = False,
    binarised: Annotated[bool, typer.Option("--binarised", help="Keep the @ nodes in the trees of a corpus.")] = False,
    no_bound: Annotated[
        bool, typer.Option("--no-bound", help="Export a corpus without the exact bound of each split.")
    ] = False,
    convention: Convention = "penn",
    tree_settings: Normalise = None,
    json: Json = None,
    force: Force = False,
) -> None:
    """Convert a grammar to another format, or write a corpus or treebank as trees, as text, or for other training code.

    Probabilities in Berkeley and EarleyX text are always normalised. The folder of an n-gram model of words becomes the
    grammar of its language.

    For other training code, each split of a corpus becomes one file in a folder: token numbers in one row (bin, as
    nanoGPT reads it), lines of JSON with the key text (jsonl), or lines of token numbers (ids). The file meta.json has
    the vocabulary, and the exact bound of each split in nats per token: validation loss minus this bound estimates how
    far the model is from the truth.

    Example: truesource convert grammar.npz grammar.txt

    Example: truesource convert corpus/ shards/ --to bin
    """
    from truesource.cli.convert_corpus import write_corpus, write_treebank
    from truesource.cli.convert_exports import export_corpus
    from truesource.generator.export import ENDINGS
    from truesource.terminal.treebanks import normalisation

    kind = _kind(source, forced=bool(tree_settings) or convention != "penn")
    grammar_options = settings.model_dump(exclude_defaults=True)
    to = next((to for to in ENDINGS if to == settings.to and kind == CORPUS), None)
    if to is not None:
        del grammar_options["to"]
    options_by_kind: dict[str, dict[str, object]] = {
        GRAMMAR: grammar_options,
        CORPUS: {"split": split, "symbols": symbols, "binarised": binarised, "no_bound": no_bound},
        TREEBANK: {"normalisation": tree_settings or None, "convention": convention != "penn"},
    }
    _refuse_options_of_others(kind, options_by_kind, source)
    if kind == GRAMMAR:
        convert_grammar(source, target, settings, json=json, force=force)
    elif kind == TREEBANK:
        write_treebank(source, target, normalisation(convention, tree_settings), json=json, force=force)
    elif to is None:
        if no_bound:
            raise InputError("--no-bound is for exports; remove it, or add --to bin, jsonl or ids", source)
        write_corpus(source, target, split or "train", symbols=symbols, binarised=binarised, json=json, force=force)
    else:
        if symbols or binarised or json is not None:
            raise InputError("exports have no trees and no --json; remove --symbols, --binarised and --json", source)
        export_corpus(source, target, to, split, bound=not no_bound, force=force)


def _refuse_options_of_others(kind: str, options_by_kind: Mapping[str, Mapping[str, object]], source: Path) -> None:
    """Refuse options that apply to a kind of source other than ``kind``."""
    for other, values in options_by_kind.items():
        options = [option_name(name) for name, value in values.items() if value is not None and value is not False]
        if options and other != kind:
            verb, pronoun = ("applies", "it") if len(options) == 1 else ("apply", "them")
            raise InputError(
                f"this is a {kind}, but {listed(options)} {verb} to {other}s only; remove {pronoun}", source
            )


def _kind(source: Path, *, forced: bool) -> str:
    """Return the kind of ``source``: a grammar (or a model that becomes one), a corpus folder or a treebank."""
    from zipfile import is_zipfile

    from truesource.terminal.treebanks import is_treebank

    if is_treebank(source) or (forced and source.is_file() and not is_zipfile(source)):
        return TREEBANK
    return CORPUS if source.is_dir() and not (source / "config.json").is_file() else GRAMMAR


def convert_grammar(
    source: Path, target: Path, settings: ConversionSettings, *, json: Path | None, force: bool
) -> None:
    """Write a grammar in another format, projected or pruned if asked."""
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
    """Return the grammar of the n-gram model in a folder or an ARPA file."""
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.errors import InputError
    from truesource.grammar.support.folders import refuse_other_kind
    from truesource.lmtrain.architectures.ngram.as_grammar import as_grammar
    from truesource.lmtrain.architectures.ngram.models import NGRAM
    from truesource.lmtrain.folders import model_type_of
    from truesource.lmtrain.models import load_model

    refuse_other_kind(folder, "model")
    ignored = settings.model_dump(include={"from_", "start", "normalise", "cut_words"}, exclude_defaults=True)
    if ignored:
        options = ", ".join(map(option_name, ignored))
        raise InputError(f"this is a folder of a model, but {options} applies to grammars only; remove it", folder)
    if folder.is_dir() and model_type_of(folder) != NGRAM:
        raise InputError("only n-gram models can be written as grammars, but this is another model", folder)
    pcfg = PCFG.of(as_grammar(cast("NgramModel", load_model(folder))))
    if pcfg.meta["empty"]["mass"] > 0.0:
        echo(f"Removed the empty sentence, which has probability {pcfg.meta['empty']['mass']:.3g} in the model.")
    return pcfg
