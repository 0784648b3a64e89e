"""What `truesource evaluate pplu` prints: the scores, smaller vocabularies, split words, ranked sentences."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from truesource.cli.console import console, echo

if TYPE_CHECKING:
    from rich.table import Table

    from truesource.evaluation.core.score import Score
    from truesource.evaluation.pplu.compare import UnigramPerplexity
    from truesource.evaluation.pplu.rankings import Ranked, Rankings
    from truesource.evaluation.pplu.reduction import ReducedVocabulary
    from truesource.evaluation.pplu.splitting import Knowledge, SenseSplit, SplitPerplexities

Records = list[dict[str, Any]]
ROWS = (
    ("ppl", "PPL", "of the model, a token"),
    ("bound", "  of the truth", "the least that any model can have on average"),
    ("ppl_unigram", "PPL of word frequencies", "what PPL is divided by; PPLu compares only where this is equal"),
    ("pplu", "PPLu", "PPL over that: below 1, and lower is better"),
    ("pplu_bound", "  of the truth", ""),
    ("mutual_information", "mutual information", "of a token and its context in the language, nats"),
    ("information_learned", "  the model has", "-ln PPLu of the model, nats"),
    ("share_learned", "  share learned", "1 - KL / mutual information"),
)
RANKINGS = {
    "ppl": "by PPL of the model",
    "pplu": "by PPLu of the model",
    "truth_ppl": "by PPL of the truth",
    "truth_pplu": "by PPLu of the truth",
}
TRUTH = "the truth"  #: beside the name of the model
LONGEST = 90  #: characters of a sentence that are shown


def print_scores(found: UnigramPerplexity) -> None:
    """A line a measure, with its interval; then the signature."""
    sentences = len(set(found.sentence.tolist()))
    title = f"{found.model} ({found.objective}), {len(found.tokens):,} tokens of {sentences:,} sentences"
    table = _table(title, f"u: {_source(found)}; in brackets: 95%, sentences resampled")
    table.add_column("measure", no_wrap=True)
    table.add_column("value", justify="right", no_wrap=True)
    table.add_column("meaning")
    for name, label, meaning in ROWS:
        if name == "information_learned" and "mutual_information" not in found.scores:
            label, meaning = "-ln PPLu", "nats a token that the model gains over these word frequencies"
        if name in found.scores:
            table.add_row(label, _value(found.scores[name]), meaning)
    console(140).print(table)
    echo(str(found.scores["pplu"]))


def print_reduced(curves: Mapping[str, Sequence[ReducedVocabulary]], found: UnigramPerplexity) -> Records:
    """PPL and PPLu by size of the vocabulary, a table a side; gives one record a number.

    Those of the truth are of its full distributions, which leave out no sentences of earlier splits.
    """
    from truesource.evaluation.core.exclusion import UNCORRECTED

    of_grammar = {"disjoint": UNCORRECTED} if "disjoint" in found.parts else {}
    records: Records = []
    for side, rows in curves.items():
        table = _table(
            f"only the most frequent words: {side}",
            "change: against all words (equation 15). Other words: skip: left out; merge: one word <unk>; renormalise:"
            " left out, the rest in proportion",
        )
        for head in ("words", "protocol", "tokens", "PPL", "change", "PPLu", "change"):
            table.add_column(head, justify="left" if head == "protocol" else "right", no_wrap=True)
        for row in sorted(rows, key=lambda r: (-r.words, r.protocol)):
            table.add_row(
                f"{row.words:,}",
                row.protocol,
                f"{row.tokens:,}",
                _number(row.ppl),
                f"{row.change_ppl:.1%}",
                _number(row.pplu),
                f"{row.change_pplu:.1%}",
            )
            values = {
                "ppl": row.ppl,
                "ppl_unigram": row.ppl_unigram,
                "pplu": row.pplu,
                "change_ppl": row.change_ppl,
                "change_pplu": row.change_pplu,
            }
            more = {"side": side, "protocol": row.protocol, "words": row.words, "counted": row.tokens}
            records += _records(found, "reduction", values, more, of_grammar if side == TRUTH else {})
        console(140).print(table)
    return records


def print_split(
    splits: Mapping[tuple[Knowledge, Knowledge], SplitPerplexities], found: UnigramPerplexity, beta: float, seed: int
) -> Records:
    """PPL and PPLu before and after a random split, by what model and word frequencies know of it."""
    first = next(iter(splits.values()))
    share = f"{first.occurrences:,} of {first.tokens:,} tokens"
    table = _table(
        f"words split at random, {beta:g} to {1 - beta:g}: {share}",
        "A random split tells nothing: whoever knows beta has another PPL and the same PPLu; to count the halves in"
        " the text instead is to fit it",
    )
    for head in ("the model", "word frequencies", "PPL", "after", "PPLu", "after"):
        table.add_column(head, justify="right" if head[0] in "Pa" else "left", no_wrap=True)
    names = {"true": "know beta", "counts": "count"}
    records: Records = []
    for (model, unigram), split in splits.items():
        values = {"ppl_split": split.ppl_split, "pplu_split": split.pplu_split}
        table.add_row(
            names[model].replace("know ", "knows ").replace("count", "counts"),
            names[unigram],
            *(_number(x) for x in (split.ppl, split.ppl_split, split.pplu, split.pplu_split)),
        )
        more = {"model_knows": model, "unigram_knows": unigram, "beta": beta, "seed": seed}
        records += _records(found, "random-split", values, {**more, "occurrences": split.occurrences})
    console(140).print(table)
    return records


def print_senses(split: SenseSplit, n: int) -> Records:
    """The truth with words told apart by their tags and without, on sentences of its own."""
    table = _table(
        f"the truth on {n:,} sentences of its own, {split.words:,} words split by their tags",
        "A split by meaning tells something of the context, so PPLu falls",
    )
    for head in ("measure", "before", "after"):
        table.add_column(head, justify="left" if head == "measure" else "right", no_wrap=True)
    shown = (("ppl", "PPL"), ("ppl_unigram", "PPL of word frequencies"), ("pplu", "PPLu"))
    for name, label in (*shown, ("mutual_information", "mutual information, nats")):
        table.add_row(label, _value(split.whole[name]), _value(split.split[name]))
    console(140).print(table)
    echo(f"mutual information gained: {split.gained:.4f} nats a token")
    return [
        {"model": "oracle", "objective": "causal", "table": "senses", "side": side, **scores[name].as_record()}
        for side, scores in (("whole", split.whole), ("split", split.split))
        for name in ("ppl", "ppl_unigram", "pplu", "mutual_information")
    ]


def print_ranks(ranked: Rankings, found: UnigramPerplexity, k: int) -> Records:
    """The first and last k sentences by PPL and by PPLu of the model, with all their ranks, and Kendall's tau."""
    records: Records = []
    for by in ("ppl", "pplu"):
        for last in (False, True):
            rows = ranked.top(k, by, last=last)
            _print_sentences(rows, f"{'last' if last else 'first'} {len(rows)} of {len(ranked.rows):,} {RANKINGS[by]}")
            for row in rows:
                values = {"ppl": row.ppl, "pplu": row.pplu}
                ranks = {"rank_ppl": row.rank_ppl, "rank_pplu": row.rank_pplu}
                if row.rank_truth_ppl is not None:
                    ranks |= {"rank_truth_ppl": row.rank_truth_ppl, "rank_truth_pplu": row.rank_truth_pplu or 0}
                end = "last" if last else "first"
                records += _records(found, "ranking", values, {"by": by, "end": end, "sentence": row.sentence, **ranks})
    table = _table("agreement of the rankings", "Kendall's tau-b: 1 the same, 0 unrelated, -1 reversed")
    table.add_column("")
    table.add_column("")
    table.add_column("tau", justify="right")
    for (one, other), tau in ranked.tau.items():
        table.add_row(RANKINGS[one], RANKINGS[other], f"{tau:.4f}")
        records += _records(found, "ranking", {"kendall_tau": tau}, {"of": [one, other]})
    console(140).print(table)
    return records


def _print_sentences(rows: Sequence[Ranked], title: str) -> None:

    known = rows[0].rank_truth_ppl is not None
    table = _table(title, None)
    heads = ("PPL", "rank", "PPLu", "rank", *(("truth: PPL rank", "PPLu rank") if known else ()))
    for head in heads:
        table.add_column(head, justify="right")
    table.add_column("sentence", overflow="fold")
    for row in rows:
        text = row.text if len(row.text) <= LONGEST else f"{row.text[: LONGEST - 3]}..."
        truth = (f"{row.rank_truth_ppl:,}", f"{row.rank_truth_pplu:,}") if known else ()
        cells = (_number(row.ppl), f"{row.rank_ppl:,}", _number(row.pplu), f"{row.rank_pplu:,}", *truth)
        table.add_row(*cells, text)
    console(140).print(table)


def _records(
    found: UnigramPerplexity,
    table: str,
    values: Mapping[str, float],
    more: Mapping[str, Any],
    signed: Mapping[str, object] | None = None,
) -> Records:
    """One record a number: no interval, and the signature of the scores with what else was chosen.

    Parts of that signature that are other than those of the scores are ``signed``.
    """
    from truesource.evaluation.core.signature import signature

    chosen = "|".join(f"{k}:{'/'.join(map(str, v)) if isinstance(v, list) else v}" for k, v in more.items())
    own = f"{table}|{chosen}|{signature({**found.parts, **(signed or {})})}"
    head = {"model": found.model, "objective": found.objective, "table": table, **more}
    return [
        {**head, "name": name, "value": value, "low": None, "high": None, "signature": own}
        for name, value in values.items()
    ]


def _source(found: UnigramPerplexity) -> str:
    return {
        "oracle": "exact word frequencies of the language",
        "train": "word counts of the reference",
        "test": "word counts of the scored text: PPLu is the largest possible, its interval of texts of this size",
        "model": "word counts of the model's own samples",
    }[found.unigram.source]


def _table(title: str, caption: str | None) -> Table:
    from rich.table import Table

    return Table(title=title, title_justify="left", caption=caption, caption_justify="left")


def _value(score: Score) -> str:
    ends = "" if score.low is None or score.high is None else f" [{_number(score.low)}, {_number(score.high)}]"
    return f"{_number(score.value)}{ends}"


def _number(value: float) -> str:
    return f"{value:,.2f}" if abs(value) >= 10 else f"{value:.4f}"
