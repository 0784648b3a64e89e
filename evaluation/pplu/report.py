"""Measurement, tables and figure of `evaluate pplu`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from operator import itemgetter
from typing import TYPE_CHECKING, Any, Literal, cast

from pydantic import with_config
from typing_extensions import TypedDict

from truesource.evaluation.core.evaluator import EvaluatorOutput, Measure
from truesource.evaluation.core.exclusion import UNCORRECTED
from truesource.evaluation.core.oracle import UNKNOWN, Oracle
from truesource.evaluation.core.run_view import MeasuredRun
from truesource.evaluation.core.score import Score, ScoreRecord, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.text import Text
from truesource.evaluation.core.transformed import require_tokens, require_whole
from truesource.evaluation.pplu.compare import UnigramPerplexity, compare_pplu
from truesource.evaluation.pplu.evaluator import PPLU, PpluSettings
from truesource.evaluation.pplu.random_split import Knowledge, random_split
from truesource.evaluation.pplu.rankings import Rankings, rank_sentences
from truesource.evaluation.pplu.reduced_vocabulary import PROTOCOLS, ReducedVocabulary, halving, reduce_vocabulary
from truesource.evaluation.pplu.sense_split import SenseSplit, sense_split
from truesource.evaluation.show.declared import measures_table
from truesource.evaluation.show.figures import MODEL, TRUTH, plain_log_axis, round_ticks, to_svg
from truesource.evaluation.show.figures import figure as new_figure
from truesource.evaluation.show.records import Record, nested
from truesource.evaluation.show.table import Cell, ReportTable, TableRow, number_cell
from truesource.generator.language_model import END, LanguageModel
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import STRICT, Count

if TYPE_CHECKING:
    from truesource.generator.language_model import DistributionModel


Scores = list[Score]
Curves = dict[str, list[ReducedVocabulary]]
TRUTH_NAME = "the truth"  #: named next to the model
#: what the model and the word frequencies know of a random split
KNOWLEDGE: tuple[tuple[Knowledge, Knowledge], ...] = (("true", "true"), ("true", "counts"), ("counts", "counts"))
SOURCES = {
    "oracle": "exact, of the language",
    "train": "counts of training text",
    "test": "counts of the scored text, so PPLu is the largest possible, its interval of texts of this size",
    "model": "counts of the model's samples",
}
RANKINGS = {
    "ppl": "by PPL of the model",
    "pplu": "by PPLu of the model",
    "truth_ppl": "by PPL of the truth",
    "truth_pplu": "by PPLu of the truth",
}
LONGEST = 90  #: characters of a sentence that are shown
WHAT = {
    "skip": "skip: other words left out",
    "merge": "merge: other words are <unk>",
    "renormalise": "renormalise: left out, the rest in proportion",
}


def measure(model: LanguageModel, setting: Setting, settings: PpluSettings) -> EvaluatorOutput:
    """Compare a text; see `truesource.evaluation.pplu.compare.compare_pplu`.

    Smaller vocabularies are excluded if the model has no list of words or pieces with a probability each.

    Raises:
        InputError: smaller vocabularies of a transformed text, or as `compare_pplu`.
    """
    require_whole(setting.transform, model.objective, setting.frame_of(model.objective))
    if settings.reduce:
        require_tokens(setting.transform, model.objective, "--reduce")
    unigram = settings.unigram or ("test" if setting.language is None else "oracle")
    counted = _counted(setting, settings)
    scored = compare_pplu(model, setting, unigram=unigram, text=counted, smoothing=settings.smoothing)
    scores = scored.as_scores()
    distributed = setting.distributed(model) if settings.reduce else None
    if distributed is not None and distributed[0].vocabulary is not None:
        tokens, cut = distributed
        of_tokens = scored
        if cut is not setting:  # frequencies of the same source, of pieces
            text = tokens.of_words.cut(counted)
            of_tokens = compare_pplu(tokens, cut, unigram=unigram, text=text, smoothing=settings.smoothing)
        scores += _reduced(tokens, cut, of_tokens)
    if settings.split_words:
        scores += _split_scores(scored, settings, setting.seed)
    if settings.senses and setting.language is not None:
        split = sense_split(setting.grammar, settings.senses, lengths=setting.lengths, seed=setting.seed)
        scores += _sense_scores(split, settings.senses)
    if settings.rank:
        scores += _rank_scores(rank_sentences(scored, setting.sentences), scored, settings.rank)
    n = len(set(scored.sentence.tolist()))
    return EvaluatorOutput(
        scores=scores,
        entries={"excluded": scored.excluded, "unigram": scored.unigram.source},
        impossible=(scored.impossible_model.tolist(), scored.impossible_truth.tolist()),
        title=f"{scored.model} ({scored.objective}), {len(scored.tokens):,} tokens of {n:,} sentences",
        line=str(scored.scores["pplu"]),
    )


def _counted(setting: Setting, settings: PpluSettings) -> Sequence[Sequence[str]]:
    """Return the text that word frequencies are counted in; none if they are not counted, or in the scored text.

    Raises:
        InputError: the text of training is to be counted, and the scored one is a file.
    """
    if settings.unigram not in ("train", "model"):
        return []
    if settings.counted is not None:
        return Text.read(settings.counted, "train").sentences
    text = setting.text
    if text is None or text.path is None or not text.path.is_dir():
        raise InputError("--unigram train counts a text of training; name it: --counted TEXT")
    return Text.read(text.path).sentences if text.corpus is None else text.corpus.sentences("train")


def _reduced(model: LanguageModel, setting: Setting, found: UnigramPerplexity) -> Scores:
    """Return scores of smaller vocabularies, of the model first, then of the truth if it is known."""
    sentences = [setting.sentences[i] for i in sorted(set(found.sentence.tolist()))]
    sides = {found.model: cast("DistributionModel", model)}
    if setting.language is not None:
        sides[TRUTH_NAME] = setting.full_oracle(model)
    sizes = halving(len(model.vocabulary or ()))
    curves = {}
    for name, side in sides.items():
        number = len(side.words if isinstance(side, Oracle) else model.vocabulary or ())  # the truth may use fewer
        curves[name] = reduce_vocabulary(side, sentences, found.unigram, [size for size in sizes if size <= number])
    return _reduction_scores(curves, found, {} if setting.words is None else {"of": "pieces"})


def _reduction_scores(curves: Curves, found: UnigramPerplexity, unit: Mapping[str, str]) -> Scores:
    """Return scores of smaller vocabularies; the truth's distributions exclude no sentences of earlier splits."""
    of_grammar = {"disjoint": UNCORRECTED} if "disjoint" in found.parts else {}
    names = ("ppl", "ppl_unigram", "pplu", "change_ppl", "change_pplu")
    scores: Scores = []
    for side, rows in zip(("model", "truth"), curves.values(), strict=False):
        for row in sorted(rows, key=lambda r: (-r.words, r.protocol)):
            more = {"side": side, "protocol": row.protocol, "words": row.words, "counted": row.tokens, **unit}
            values = {name: float(getattr(row, name)) for name in names}
            scores += _scores(found, "reduction", values, more, of_grammar if side == "truth" else {})
    return scores


def _split_scores(found: UnigramPerplexity, settings: PpluSettings, seed: int) -> Scores:
    words = set(settings.split_words)
    if words == {"all"}:
        words = set(found.tokens) - {END, UNKNOWN}
    scores: Scores = []
    for model, unigram in KNOWLEDGE:
        split = random_split(found, words, settings.beta, seed=seed, model=model, unigram=unigram)
        values = {"ppl_split": split.ppl_split, "pplu_split": split.pplu_split}
        more = {"model_knows": model, "unigram_knows": unigram, "beta": settings.beta, "seed": seed}
        scores += _scores(found, "random-split", values, {**more, "occurrences": split.occurrences})
    return scores


def _sense_scores(split: SenseSplit, sentences: int) -> Scores:
    scores = [
        scores[name].at(side=side)
        for side, scores in (("whole", split.whole), ("split", split.split))
        for name in ("ppl", "ppl_unigram", "pplu", "mutual_information")
    ]
    head = {"model": "oracle", "objective": "causal", "table": "senses"}
    return keyed(scores, **head, sentences=sentences, words=split.words)


def _rank_scores(ranked: Rankings, found: UnigramPerplexity, k: int) -> Scores:
    scores: Scores = []
    for by in ("ppl", "pplu"):
        for end in ("first", "last"):
            for row in ranked.top(k, by, last=end == "last"):
                ranks = {
                    name: rank
                    for name in ("rank_ppl", "rank_pplu", "rank_truth_ppl", "rank_truth_pplu")
                    if (rank := getattr(row, name)) is not None
                }
                more = {"by": by, "end": end, "sentence": row.sentence, **ranks}
                of_sentence = _scores(found, "ranking", {"ppl": row.ppl, "pplu": row.pplu}, more)
                scores += [score.with_more(text=row.text) for score in of_sentence]
    for pair, tau in ranked.tau.items():
        scores += _scores(found, "ranking", {"kendall_tau": tau}, {"of": list(pair)})
    return scores


def _scores(
    found: UnigramPerplexity,
    table: str,
    values: Mapping[str, float],
    more: Mapping[str, Any],
    signed: Mapping[str, object] | None = None,
) -> Scores:
    """Return numbers without intervals, with the signature of the scores and further settings.

    Parts that differ from the signature of the scores are ``signed``.
    """
    chosen = "|".join(f"{k}:{'/'.join(map(str, v)) if isinstance(v, list) else v}" for k, v in more.items())
    signed_text = f"{table}|{chosen}|{signature({**found.parts, **(signed or {})})}"
    scores = (Score(name, value, signed_text) for name, value in values.items())
    return keyed(scores, model=found.model, objective=found.objective, table=table, **more)


def scores_table(models: Mapping[str, Record], title: str = "") -> ReportTable:
    """Return a row for each measure, a column for each model.

    Args:
        models: records of each model in a run, by the heading of its column.
        title: of the table.
    """
    unigram = next(iter(models.values()))["unigram"]
    note = f"95% intervals from resampling sentences; word frequencies: {SOURCES[unigram]}"
    alone = not any(each["name"] == "mutual_information" for record in models.values() for each in record["records"])
    evaluator = PPLU
    if alone:
        gained = "nats per token that the model gains over these word frequencies"
        learned = Measure("information_learned", "-ln PPLu", meaning=gained)
        measures = tuple(learned if each.name == learned.name else each for each in PPLU.measures)
        evaluator = replace(PPLU, measures=measures)
    return measures_table(evaluator, models, title, note)


def tables(record: Record, title: str) -> list[ReportTable]:
    """Return all tables of one model."""
    return [scores_table({record["model"]: record}, title), *further_tables(record["records"])]


def further_tables(records: Sequence[Record]) -> list[ReportTable]:
    """Return tables of further measurements of one model: smaller vocabularies, split words, rankings of sentences."""
    of = {
        name: [record for record in records if record.get("table") == name]
        for name in ("reduction", "random-split", "senses", "ranking")
    }
    sides = {side: [r for r in of["reduction"] if r["side"] == side] for side in ("model", "truth")}
    result = [_reduction_table(rows) for rows in sides.values() if rows]
    if of["random-split"]:
        result.append(_split_table(of["random-split"], {r["name"]: r for r in records if "table" not in r}))
    if of["senses"]:
        result.append(_senses_table(of["senses"]))
    return result + (_ranking_tables(of["ranking"]) if of["ranking"] else [])


def _reduction_table(records: Sequence[Record]) -> ReportTable:
    side = records[0]["model"] if records[0]["side"] == "model" else "the truth"
    unit = records[0].get("of", "words")
    return ReportTable(
        title=f"Only the most frequent {unit}: {side}",
        columns=(unit, "protocol", "tokens", "PPL", "change", "PPLu", "change"),
        keys=("words", "protocol", "tokens", "ppl", "change_ppl", "pplu", "change_pplu"),
        text=(1,),
        rows=[
            TableRow(
                (
                    number_cell(words, ","),
                    protocol,
                    number_cell(tokens, ","),
                    _number(row["ppl"]),
                    number_cell(row["change_ppl"]["value"], ".1%"),
                    _number(row["pplu"]),
                    number_cell(row["change_pplu"]["value"], ".1%"),
                )
            )
            for (words, protocol, tokens), row in nested(records, itemgetter("words", "protocol", "counted")).items()
        ],
        note=f"change: without sign, against all {unit}. Other {unit}: skip: left out; merge: one {unit[:-1]} <unk>;"
        " renormalise: left out, the rest in proportion",
    )


def _split_table(records: Sequence[Record], whole: Mapping[str, Record]) -> ReportTable:
    names = {"true": "known probabilities", "counts": "counted"}
    beta = records[0]["beta"]
    return ReportTable(
        title=f"Words split at random, {beta:g} to {1 - beta:g}: {records[0]['occurrences']:,} tokens",
        columns=("halves for the model", "for word frequencies", "PPL", "after", "PPLu", "after"),
        keys=("model_knows", "unigram_knows", "ppl", "ppl_split", "pplu", "pplu_split"),
        text=(0, 1),
        rows=[
            TableRow(
                (
                    names[model],
                    names[unigram],
                    *map(_number, (whole["ppl"], row["ppl_split"], whole["pplu"], row["pplu_split"])),
                )
            )
            for (model, unigram), row in nested(records, itemgetter("model_knows", "unigram_knows")).items()
        ],
        note="A random split adds no information: with known probabilities PPL changes and PPLu does not. Counting the"
        " halves in the text fits them to it",
    )


def _senses_table(records: Sequence[Record]) -> ReportTable:
    names = {"ppl": "PPL", "ppl_unigram": "PPL of word frequencies", "pplu": "PPLu"}
    sides = nested(records, itemgetter("side"))
    whole, split = sides["whole"], sides["split"]
    gained = split["mutual_information"]["value"] - whole["mutual_information"]["value"]
    rows = [
        TableRow((label, _number(whole[name]), _number(split[name])))
        for name, label in (*names.items(), ("mutual_information", "mutual information, nats"))
    ]
    head = records[0]
    return ReportTable(
        title=f"The truth on {head['sentences']:,} sentences of its own, {head['words']:,} words split by their tags",
        columns=("measure", "before", "after"),
        rows=[*rows, TableRow(("  gained, nats per token", None, number_cell(gained, ".4f")))],
        note="A split by meaning adds information about the context, so PPLu falls",
    )


def _ranking_tables(records: Sequence[Record]) -> list[ReportTable]:
    ends: dict[tuple[str, str], list[dict[str, Record]]] = {}
    ranked = nested((r for r in records if "by" in r), itemgetter("by", "end", "sentence"))
    for (by, end, _), row in ranked.items():
        ends.setdefault((by, end), []).append(row)
    taus = [record for record in records if record["name"] == "kendall_tau"]
    agreement = ReportTable(
        title="Agreement of the rankings",
        columns=("ranking", "ranking", "tau"),
        keys=("ranking", "other_ranking", "kendall_tau"),
        text=(0, 1),
        rows=[TableRow((*(RANKINGS[name] for name in tau["of"]), number_cell(tau["value"], ".4f"))) for tau in taus],
        note="Kendall's tau-b: 1 the same, 0 unrelated, -1 reversed",
    )
    return [*(_sentences_table(rows, by, end) for (by, end), rows in ends.items()), agreement]


def _sentences_table(rows: Sequence[Mapping[str, Record]], by: str, end: str) -> ReportTable:
    has_truth = "rank_truth_ppl" in rows[0]["ppl"]
    truth = {"truth: PPL rank": "rank_truth_ppl", "PPLu rank": "rank_truth_pplu"} if has_truth else {}
    return ReportTable(
        title=f"{end.capitalize()} {len(rows)} {RANKINGS[by]}",
        columns=("PPL", "rank", "PPLu", "rank", *truth, "sentence"),
        keys=("ppl", "rank_ppl", "pplu", "rank_pplu", *truth.values(), "sentence"),
        text=(-1,),
        rows=[
            TableRow(
                (
                    _number(row["ppl"]),
                    number_cell(row["ppl"]["rank_ppl"], ","),
                    _number(row["pplu"]),
                    number_cell(row["ppl"]["rank_pplu"], ","),
                    *(number_cell(row["ppl"][rank], ",") for rank in truth.values()),
                    _shortened(row["ppl"]["text"]),
                )
            )
            for row in rows
        ],
    )


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def _number(score: Record) -> Cell | None:
    return number_cell(score["value"], ",.2f" if abs(score["value"]) >= 10 else ".4f")


@with_config(STRICT)
class PpluRecord(TypedDict):
    """``pplu/<model>.json``."""

    model: str
    objective: str
    excluded: Count
    unigram: Literal["oracle", "train", "test", "model"]  #: source of the word frequencies
    records: list[ScoreRecord]


def section(run: MeasuredRun) -> dict[str, object] | None:
    """Return tables and figures for the template; None if no model was measured."""
    models = run.of_models("pplu", PpluRecord)
    if not models:
        return None
    signed = {name: [r for r in record["records"] if r["name"] == "pplu"] for name, record in models.items()}
    figures = {name: figure(record, f"reduction-{name}") for name, record in models.items()}
    return {
        "scores": scores_table({f"{name}\n{record['objective']}": record for name, record in models.items()}),
        "signatures": {
            name: next(r["signature"] for r in records if "table" not in r) for name, records in signed.items()
        },
        "further": {name: further for name, r in models.items() if (further := further_tables(r["records"]))},
        "figures": {name: svg for name, svg in figures.items() if svg is not None},
    }


def figure(record: Record, salt: str) -> str | None:
    """Draw relative change (equation 15) by vocabulary size, a panel a protocol, as ``<svg>``; None without reduction.

    Args:
        record: of a model.
        salt: of the identifiers in the figure.
    """
    reduction = [each for each in record["records"] if each.get("table") == "reduction"]
    if not reduction:
        return None
    names = {"model": record["model"], "truth": TRUTH_NAME}
    sizes = sorted({each["words"] for each in reduction})
    unit = reduction[0].get("of", "words")
    with new_figure(9.6, 3.4, salt) as canvas:
        panels: Any = canvas.subplots(1, len(PROTOCOLS), sharey=True, sharex=True)
        for axes, protocol in zip(panels, PROTOCOLS, strict=True):
            for side, colour in (("model", MODEL), ("truth", TRUTH)):
                of_side = [each for each in reduction if (each["side"], each["protocol"]) == (side, protocol)]
                for label, measure, style in (("PPL", "change_ppl", "-"), ("PPLu", "change_pplu", (0, (3, 2)))):
                    of = sorted((each["words"], each["value"]) for each in of_side if each["name"] == measure)
                    if of:
                        axes.plot(
                            [words for words, _ in of],
                            [100 * change for _, change in of],
                            color=colour,
                            linestyle=style,
                            marker="o",
                            markersize=3,
                            label=f"{label}, {names[side]}",
                        )
            axes.set_xscale("log")
            axes.set_title(WHAT[protocol], fontsize=9)
            axes.set_xlabel(f"{unit} kept, most frequent first")
            axes.grid()
        if sizes[-1] > sizes[0]:
            panels[0].set_xlim(0.8 * sizes[0], 1.25 * sizes[-1])
            for axes in panels:
                plain_log_axis(axes.xaxis, round_ticks(sizes[0], sizes[-1], 5))
        panels[0].set_ylim(bottom=0.0)
        panels[0].set_ylabel(f"change against all {unit}, %")
        canvas.legend(*panels[0].get_legend_handles_labels(), loc="outside lower center", ncols=4)
        return to_svg(canvas, salt, "Change of PPL and PPLu against vocabulary size")
