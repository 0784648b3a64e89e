"""Stage: the perplexity of one model over that of word frequencies, and the same of the truth."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal, cast

from truesource.chain.scores import stage as score
from truesource.evaluation.core.comparison import oracle_for
from truesource.evaluation.core.exclusion import UNCORRECTED
from truesource.evaluation.core.oracle import UNKNOWN
from truesource.evaluation.core.signature import signature
from truesource.evaluation.measures.paired import NothingToCompareError
from truesource.evaluation.pplu.compare import UnigramPerplexity, compare_pplu
from truesource.evaluation.pplu.experiments import (
    Knowledge,
    Rankings,
    ReducedVocabulary,
    SenseSplit,
    halving,
    random_split,
    rank_sentences,
    reduce_vocabulary,
    sense_split,
)
from truesource.evaluators.pplu import PpluSettings
from truesource.generator.abilities import offers
from truesource.generator.language_model import END, preset_frame
from truesource.grammar.support.files import digest_json, write_json, write_text
from truesource.run.folder import under_name
from truesource.run.stage import Stage, of_settings

if TYPE_CHECKING:
    from truesource.chain.models import ModelEntry
    from truesource.evaluation.core.exclusion import Exclusion
    from truesource.generator.language_model import DistributionModel, LanguageModel
    from truesource.generator.plan import Transform
    from truesource.grammar.conditioning import LengthRange
    from truesource.grammar.pcfg import PCFG
    from truesource.run.config import RunConfig
    from truesource.run.folder import RunFolder


Records = list[dict[str, Any]]
Curves = dict[str, list[ReducedVocabulary]]
Frame = Literal["default", "paper"]
TRUTH = "the truth"  #: named next to the model
#: what the model and the word frequencies know of a random split
KNOWLEDGE: tuple[tuple[Knowledge, Knowledge], ...] = (("true", "true"), ("true", "counts"), ("counts", "counts"))


@dataclass(frozen=True)
class PpluResult:
    """Scores, and what else was measured."""

    scores: UnigramPerplexity
    records: Records  #: of everything, for JSON
    curves: Curves  #: smaller vocabularies, of the model first, then of the truth where it is known


def has_words(model: LanguageModel) -> bool:
    """True if a model has a probability for each word of a list, which smaller vocabularies need."""
    return offers(model, "words") and offers(model, "distributions")


def measure(
    model: LanguageModel,
    pcfg: PCFG | None,
    text: Sequence[Sequence[str]],
    settings: PpluSettings,
    *,
    frame: Frame,
    lengths: LengthRange | None,
    seed: int,
    counted: Iterable[Sequence[str]] = (),
    excluded: Exclusion | None = None,
    transform: Transform | None = None,
) -> PpluResult:
    """Compare a text; see `truesource.evaluation.pplu.compare.compare_pplu`.

    Args:
        model: to measure; smaller vocabularies are left out where it has no list of words.
        pcfg: the grammar that the text was sampled from; None: not known, and no splits by tags.
        text: to score.
        settings: of the comparison.
        frame: which positions count.
        lengths: condition of the text.
        seed: of all that is random.
        counted: sentences that word frequencies are counted in, for ``train`` and ``model``.
        excluded: sentences that the text leaves out.
        transform: of the text.
    """
    found = compare_pplu(
        model,
        pcfg,
        text,
        lengths=lengths,
        frame=preset_frame(frame, model.objective),
        unigram=settings.unigram or ("test" if pcfg is None else "oracle"),
        text=counted,
        smoothing=settings.smoothing,
        seed=seed,
        excluded=excluded,
        transform=transform,
    )
    curves = _reduced(model, pcfg, text, found, lengths, transform) if settings.reduce and has_words(model) else {}
    records = found.records() + _reduction_records(curves, found)
    if settings.split_words:
        records += _split_records(found, settings, seed)
    if settings.senses and pcfg is not None:
        records += _sense_records(sense_split(pcfg, settings.senses, lengths=lengths, seed=seed), settings.senses)
    if settings.rank:
        records += _rank_records(rank_sentences(found, text), found, settings.rank)
    return PpluResult(found, records, curves)


def _reduced(
    model: LanguageModel,
    pcfg: PCFG | None,
    text: Sequence[Sequence[str]],
    found: UnigramPerplexity,
    lengths: LengthRange | None,
    transform: Transform | None,
) -> Curves:
    kept = [text[i] for i in sorted(set(found.sentence.tolist()))]
    sides = {found.model: cast("DistributionModel", model)}
    if pcfg is not None:
        sides[TRUTH] = oracle_for(model, pcfg, lengths, transform=transform)
    sizes = halving(len(model.vocabulary or ()))
    return {name: reduce_vocabulary(side, kept, found.unigram, sizes) for name, side in sides.items()}


def _reduction_records(curves: Curves, found: UnigramPerplexity) -> Records:
    """Records of smaller vocabularies; the truth's full distributions leave out no sentences of earlier splits."""
    of_grammar = {"disjoint": UNCORRECTED} if "disjoint" in found.parts else {}
    names = ("ppl", "ppl_unigram", "pplu", "change_ppl", "change_pplu")
    records: Records = []
    for side, rows in zip(("model", "truth"), curves.values(), strict=False):
        for row in sorted(rows, key=lambda r: (-r.words, r.protocol)):
            more = {"side": side, "protocol": row.protocol, "words": row.words, "counted": row.tokens}
            values = {name: float(getattr(row, name)) for name in names}
            records += _records(found, "reduction", values, more, of_grammar if side == "truth" else {})
    return records


def _split_records(found: UnigramPerplexity, settings: PpluSettings, seed: int) -> Records:
    words = set(settings.split_words)
    if words == {"all"}:
        words = set(found.tokens) - {END, UNKNOWN}
    records: Records = []
    for model, unigram in KNOWLEDGE:
        split = random_split(found, words, settings.beta, seed=seed, model=model, unigram=unigram)
        values = {"ppl_split": split.ppl_split, "pplu_split": split.pplu_split}
        more = {"model_knows": model, "unigram_knows": unigram, "beta": settings.beta, "seed": seed}
        records += _records(found, "random-split", values, {**more, "occurrences": split.occurrences})
    return records


def _sense_records(split: SenseSplit, sentences: int) -> Records:
    head = {"model": "oracle", "objective": "causal", "table": "senses", "sentences": sentences, "words": split.words}
    return [
        {**head, "side": side, **scores[name].as_record()}
        for side, scores in (("whole", split.whole), ("split", split.split))
        for name in ("ppl", "ppl_unigram", "pplu", "mutual_information")
    ]


def _rank_records(ranked: Rankings, found: UnigramPerplexity, k: int) -> Records:
    records: Records = []
    for by in ("ppl", "pplu"):
        for end in ("first", "last"):
            for row in ranked.top(k, by, last=end == "last"):
                ranks = {
                    name: rank
                    for name in ("rank_ppl", "rank_pplu", "rank_truth_ppl", "rank_truth_pplu")
                    if (rank := getattr(row, name)) is not None
                }
                more = {"by": by, "end": end, "sentence": row.sentence, **ranks}
                made = _records(found, "ranking", {"ppl": row.ppl, "pplu": row.pplu}, more)
                records += [{**record, "text": row.text} for record in made]
    for pair, tau in ranked.tau.items():
        records += _records(found, "ranking", {"kendall_tau": tau}, {"of": list(pair)})
    return records


def _records(
    found: UnigramPerplexity,
    table: str,
    values: Mapping[str, float],
    more: Mapping[str, Any],
    signed: Mapping[str, object] | None = None,
) -> Records:
    """One record per number: no interval, and the signature of the scores with what else was chosen.

    Parts of that signature that are other than those of the scores are ``signed``.
    """
    chosen = "|".join(f"{k}:{'/'.join(map(str, v)) if isinstance(v, list) else v}" for k, v in more.items())
    own = f"{table}|{chosen}|{signature({**found.parts, **(signed or {})})}"
    head = {"model": found.model, "objective": found.objective, "table": table, **more}
    return [
        {**head, "name": name, "value": value, "low": None, "high": None, "signature": own}
        for name, value in values.items()
    ]


def stages(config: RunConfig) -> list[Stage]:
    """One for each model."""
    made = ("pplu/{}.json", "pplu/{}.svg")
    return [Stage.of_model("pplu", model, made, inputs, make) for model in config.entries]


def inputs(run: RunFolder, model: ModelEntry) -> Any:
    """Settings, and the inputs of its scores: split, seed, corpus, grammar, and the trained model."""
    return {**score.inputs(run, model), **of_settings(run, PpluSettings)}


def make(run: RunFolder, model: ModelEntry) -> str:
    """Write ``pplu/<name>.json``, and the figure ``pplu/<name>.svg`` of smaller vocabularies."""
    from truesource.evaluators.pplu.section import reduction_figure
    from truesource.report.figures import standalone

    config, settings = run.config.evaluation, run.settings(PpluSettings)
    trained = run.model(model)
    record: dict[str, Any] = {"model": model.name, "objective": trained.objective}
    figure = run.folder / "pplu" / f"{model.name}.svg"
    figure.unlink(missing_ok=True)
    pcfg, transform = run.text_grammar
    try:
        result = measure(
            trained,
            pcfg,
            run.corpus.sentences(config.split)[: config.sentences],
            settings,
            frame=config.frame,
            lengths=run.corpus.lengths,
            seed=run.config.seed,
            counted=_counted(run, settings),
            transform=transform,
        )
    except NothingToCompareError as error:  # as the stage of its scores says
        record |= {"excluded": error.n_sentences, "records": []}
    else:
        record |= {
            "excluded": result.scores.excluded,
            "unigram": result.scores.unigram.source,
            "records": under_name(result.records, trained.name, model.name),
        }
        if result.curves:
            write_text(figure, standalone(reduction_figure(result.curves, f"reduction-{model.name}")))
    write_json(run.folder / "pplu" / f"{model.name}.json", record)
    return digest_json(record)


def _counted(run: RunFolder, settings: PpluSettings) -> list[list[str]]:
    """The text that word frequencies are counted in; none where they are not counted, or in the scored text."""
    from truesource.generator.text import read_sentences

    if settings.counted is not None:
        return read_sentences(settings.counted)
    return run.corpus.sentences("train") if settings.unigram == "train" else []
