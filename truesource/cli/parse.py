"""`truesource parse`: write the best trees of sentences."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell, score_cell
from truesource.grammar.support.errors import InputError
from truesource.studies.parsing.settings import SHARD_SIZE, ParseOutcome, ParseSettings
from truesource.terminal.console import echo
from truesource.terminal.options import (
    Convention,
    Force,
    Grammar,
    Json,
    License,
    Scheduler,
    Shard,
    SplitName,
    TextOrCorpus,
    Workers,
)
from truesource.terminal.settings import with_options

if TYPE_CHECKING:
    from truesource.grammar.pcfg import PCFG
    from truesource.grammar.support.parallel import Share
    from truesource.grammar.support.parallel import Workers as AtWork
    from truesource.grammar.tree import Tree
    from truesource.studies.parsing.build import Parsing
    from truesource.studies.parsing.record import ParsedCorpus
    from truesource.studies.parsing.source import ParserInput, RawSource
    from truesource.terminal.output import OutputFiles

MOST = 10  #: labels, tags and confusions that are shown by default
#: measure, its heading, and True for a share, which is shown in per cent
LABELLED = (
    ("labelled_f1", "labelled F1", True),
    ("labelled_precision", "precision", True),
    ("labelled_recall", "recall", True),
    ("exact_match", "exact\nmatch", True),
    ("tagging_accuracy", "tags", True),
    ("crossing_brackets", "crossing\nbrackets", False),
    ("no_crossing", "no\ncrossing", True),
)
UNLABELLED = (
    ("unlabelled_f1", "unlabelled F1", True),
    ("unlabelled_precision", "precision", True),
    ("unlabelled_recall", "recall", True),
    ("at_most_two_crossing", "two or fewer\ncrossing", True),
)
GROUPS = {"label": "Most frequent labels", "tag": "Most frequent tags"}


@with_options(ParseSettings)
def command(
    grammar: Grammar,
    corpus: TextOrCorpus,
    output: Annotated[
        Path, typer.Option("-o", "--output", help="File for the trees (.mrg, .mrg.gz), or folder; resumable.")
    ],
    *,
    settings: ParseSettings,
    gold: Annotated[
        Path | None, typer.Option(help="Treebank with trees of the same sentences, to score the trees against.")
    ] = None,
    convention: Convention = "penn",
    split: SplitName = "eval",
    shard: Shard = None,
    workers: Workers = 1,
    scheduler: Scheduler = None,
    json: Json = None,
    license: License = None,  # noqa: A002
    force: Force = False,
) -> None:
    """Write the best tree of every sentence, with treebank labels, one per line.

    Sentences without a tree are counted and listed: they have probability 0, their charts do not fit into memory,
    they are longer than --longest, or empty. A file has the line () for each, to keep its lines aligned. A folder
    has a table of all sentences instead. Unknown words are classed by their form if the grammar was induced with
    --lexicon parse.

    Split-merge grammars are parsed coarse to fine: constituents that are improbable under coarser grammars are
    skipped. This is over ten times faster, and changes about one tree in ten; --exact skips nothing.

    A folder is a treebank for induce, can be divided among jobs (--shard), and does not depend on the number of
    workers. An interrupted call resumes if it is repeated.

    Example: truesource parse grammar.npz text.txt -o trees.mrg --method max-rule

    Example: truesource parse grammar.npz text.txt.gz -o trees/ --method max-rule --workers 8 --json counts.json

    Example: truesource parse grammar.npz news.txt -o trees/ --raw --method max-rule
    """
    from truesource.grammar.support.parallel import Share
    from truesource.grammar.support.parallel import Workers as AtWork
    from truesource.studies.parsing.build import is_file_name, make_trees, parts_of_file, write_joined
    from truesource.terminal.output import OutputFiles, json_of

    if gold is None and convention != "penn":
        raise InputError("--convention applies to the trees of --gold; add --gold or remove --convention")
    if license is not None and is_file_name(output):
        raise InputError("--license is for the card of a folder; name a folder with -o, or remove --license")
    share, at_work = None if shard is None else Share.parse(shard), AtWork(workers, scheduler)
    as_file = is_file_name(output)
    if as_file:
        settings = _settings_of_file(settings, share)
    files = _claimed(output, json, as_file=as_file, share=share, force=force)
    parsing = _opened(grammar, corpus, split, settings, at_work)
    gold_trees = None if gold is None else _read_gold(gold, convention, corpus, parsing.held.sentences)
    if as_file:
        with parts_of_file(parsing, output, force=force) as parts:
            record, counts = _report(parsing, parts, gold_trees), parts.counts
            written = files.write(trees=lambda path: write_joined(parts, path), json=json_of(record))
        following = f"bound {grammar} {corpus}"
    else:
        parsed = make_trees(parsing, output, share=share, force=force, license=license)
        if parsed is None:
            echo(f"Wrote this job's shards of {output}. Next: run the other jobs; the last one completes the folder.")
            return
        record, counts = _report(parsing, parsed, gold_trees), parsed.counts
        if share is not None:
            files = OutputFiles(json=json, force=force)
        written = [str(output), *files.write(json=json_of(record))]
        following = f"induce {output} -o grammar.npz"
    trees = counts["outcomes"][ParseOutcome.PARSED]
    if not trees:
        following = f"inspect {grammar} {corpus}"
    echo(f"Wrote {' and '.join(written)}: {trees:,} trees. Next: truesource {following}")


def _settings_of_file(settings: ParseSettings, share: Share | None) -> ParseSettings:
    """Return the settings for one file, with one line per sentence; refuse settings for folders."""
    from truesource.studies.parsing.build import FILE_SHARD

    folder_options = {
        "--shard": share is not None,
        "--shard-size": settings.shard_size != SHARD_SIZE,
        "--keep-missing": settings.keep_missing,
        "--best": settings.best is not None,
        "--samples": settings.samples is not None,
    }
    wrong = next((option for option, is_given in folder_options.items() if is_given), None)
    if wrong is not None:
        raise InputError(f"{wrong} is for folders; name a folder (-o trees/) or remove {wrong}")
    return settings.model_copy(update={"shard_size": FILE_SHARD, "keep_missing": True})


def _claimed(output: Path, json: Path | None, *, as_file: bool, share: Share | None, force: bool) -> OutputFiles:
    """Claim the files of this call until it ends; jobs of an array share them, and the last one writes them."""
    from truesource.terminal.output import OutputFiles, hold

    if share is not None:
        return OutputFiles(json=json, shared=True, force=force)
    if as_file:
        return OutputFiles(trees=output, json=json, force=force)
    hold(output)
    return OutputFiles(json=json, force=force)


def _opened(grammar: Path, corpus: Path, split: str, settings: ParseSettings, workers: AtWork) -> Parsing:
    from truesource.grammar.pcfg import PCFG
    from truesource.studies.parsing.build import Parsing
    from truesource.studies.parsing.source import open_source, survey

    pcfg = PCFG.load(grammar)
    source: ParserInput
    if settings.raw:
        raw = _raw(corpus, pcfg, settings)
        source, settings = raw, settings.model_copy(update={"splitting": raw.splitting})
    else:
        source = open_source(corpus, split)
    return Parsing(pcfg, source, survey(source), settings, workers)


def _raw(text: Path, pcfg: PCFG, settings: ParseSettings) -> RawSource:
    """Return raw text with the sentence splitter of this machine; workers elsewhere use the same or fail."""
    from truesource.generator.text import RawTextReader
    from truesource.studies.parsing.source import RawSource

    if text.is_dir():
        raise InputError("--raw is for a text file, but this is a folder; remove --raw", text)
    language = settings.language
    splitting = RawTextReader(pcfg.word_ids, splitting=settings.splitting, language=language).splitting
    echo(f"raw text, split into sentences by {splitting}")
    return RawSource(text.absolute(), pcfg.word_ids, splitting, language)


def _report(parsing: Parsing, parsed: ParsedCorpus, gold: list[Tree] | None) -> dict[str, object]:
    """Print sentences without a tree and the quality of the other trees; return both for JSON."""
    from truesource.studies.parsing.report import call_record, compare_with_gold, missing_lines
    from truesource.terminal.tables import show

    missing = parsed.missing()
    for line in missing_lines(missing, parsing):
        echo(line, err=True)
    record = call_record(parsing, parsed, missing)
    if gold is not None:
        summary, scores = compare_with_gold(gold, parsing, parsed)
        echo(summary)
        for table in parse_tables(scores["summary"]):
            show(table)
        record |= scores
    return record


def _read_gold(gold: Path, convention: Convention, text: Path, sentences: int) -> list[Tree]:
    from truesource.grammar.treebank import Normalisation, Treebank
    from truesource.terminal.treebanks import show_reading, warn_of_signs, warn_of_unread

    bank = Treebank.read(gold, Normalisation(convention=convention))
    if bank.refused or bank.ledger.dropped or bank.ledger.cut:
        show_reading(bank, has_settings=False)
    else:
        warn_of_unread(bank)
        warn_of_signs(bank, has_settings=False)
    if len(bank) != sentences:
        raise InputError(
            f"the treebank has {len(bank):,} trees, but {text} has {sentences:,} sentences; both need the same number",
            gold,
        )
    return list(bank.trees)


def parse_tables(records: Sequence[Record], *, full: bool = False) -> list[ReportTable]:
    """Build tables of the scores of all sentences, by length, and of the most frequent labels.

    Args:
        records: the ``summary`` of `truesource.evaluation.parsing.ParseScores.records`.
        full: show all labels, and also unlabelled brackets, tags, and the most frequent confusions of tags.
    """
    tables = [_lengths(records, "Labelled brackets, by sentence length", LABELLED)]
    if full:
        tables.append(_lengths(records, "Unlabelled brackets, by sentence length", UNLABELLED))
    tables.append(_groups(records, "label", full))
    if full:
        tables += [_groups(records, "tag", full), _confusions(records)]
    return [table for table in tables if table.rows]


def _lengths(records: Sequence[Record], title: str, measures: Sequence[tuple[str, str, bool]]) -> ReportTable:
    """Build a row for all sentences and for each range of lengths; the first measure has its interval."""
    some = (record for record in records if record.get("by", "length") == "length")
    groups = nested(some, lambda record: str(record.get("group", "all")))
    main = measures[0][0]
    return ReportTable(
        title=title,
        columns=("length", "sentences", "without\na parse", *(heading for _, heading, _ in measures)),
        keys=("length", "sentences", "unparsed", *(name for name, _, _ in measures)),
        rows=[
            TableRow(
                (
                    length,
                    *(number_cell(group[name]["value"], ",") for name in ("sentences", "unparsed")),
                    *(_cell(group.get(name), share, ends=name == main) for name, _, share in measures),
                ),
                group[main if main in group else "sentences"]["signature"],
            )
            for length, group in groups.items()
        ],
        note="per cent, counted as evalb counts, but sentences without a parse count too; crossing brackets: mean"
        " number in a sentence with a parse; 95% interval of F1 from resampling sentences",
    )


def _groups(records: Sequence[Record], by: str, full: bool) -> ReportTable:
    """Build a row for each label or tag, most frequent in the treebank first."""
    groups = nested((record for record in records if record.get("by") == by), itemgetter("group"))
    chosen = groups if full else dict(list(groups.items())[:MOST])
    return ReportTable(
        title=f"All {by}s" if full or len(groups) <= MOST else GROUPS[by],
        columns=(by, "gold", "proposed", "matched", "precision", "recall", "F1"),
        keys=(by, "gold", "proposed", "matched", "precision", "recall", "f1"),
        rows=[
            TableRow(
                (
                    group,
                    *(number_cell(scores["f1"][count], ",") for count in ("gold", "proposed", "matched")),
                    *(_cell(scores.get(name), True, ends=False) for name in ("precision", "recall", "f1")),
                ),
                scores["f1"]["signature"],
            )
            for group, scores in chosen.items()
        ],
        note="per cent; gold: in the treebank, proposed: in the parses",
    )


def _confusions(records: Sequence[Record]) -> ReportTable:
    confusions = [record for record in records if record.get("by") == "confusion"][:MOST]
    return ReportTable(
        title="Most frequent confusions of tags",
        columns=("tag of the treebank", "tag of the parse", "words"),
        keys=("gold", "proposed", "words"),
        text=(0, 1),
        rows=[
            TableRow((record["gold"], record["proposed"], number_cell(record["value"], ",")), record["signature"])
            for record in confusions
        ],
    )


def _cell(record: Record | None, share: bool, *, ends: bool) -> Cell | None:
    cell = None if record is None else _percent(record) if share else score_cell(record, ".2f")
    return cell if cell is None or ends else replace(cell, ends=None, no_interval="")


def _percent(record: Record) -> Cell | None:
    """Return a cell with a share in per cent; files have the share itself."""
    value, low, high = (record[key] for key in ("value", "low", "high"))
    scaled = {key: None if record[key] is None else 100.0 * record[key] for key in ("value", "low", "high")}
    cell = score_cell({**record, **scaled}, ".2f")
    return None if cell is None else replace(cell, score=(value, low, high))
