"""Learning in context: knowledge of perfect readers of documents, and the reader that a model resembles.

A pool of languages is the truth of its documents; the prior that the languages were drawn from is the truth of a reader
who knows the family, but not the languages. A model that has memorised the languages of its training comes near the
first, one that generalises near the second.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from typing_extensions import override

from truesource.evaluation.core.score import Score, keyed
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.core.signature import signature
from truesource.evaluation.core.transformed import require_tokens
from truesource.evaluation.divergence.blocks import TruthBlock
from truesource.evaluation.divergence.compare import signed_parts
from truesource.evaluation.divergence.contexts import CachedTruth, cache_truth
from truesource.evaluation.divergence.means import Column, mean_scores, rows_kl
from truesource.evaluation.documents.mixtures import LARGEST, intervals, nearest
from truesource.evaluation.measures.bootstrap import ci_part
from truesource.generator.language_model import DistributionModel, check_sentences
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess
from truesource.grammar.support.arrays import FloatArray, IntArray
from truesource.grammar.support.errors import InputError, NothingToMeasureError
from truesource.grammar.support.printable import ResultRecords, too_few
from truesource.grammar.support.settings import DEFAULT_SEED
from truesource.grammar.truth import Truth

TRUTH, FAMILY = "truth", "family"  #: the predictors, in names of measures
_NATS: dict[str, object] = {"unit": "nats/token", "contexts-of": "truth", "may": "infinite"}


@dataclass(frozen=True, eq=False)
class ReaderKnowledge:
    """Knowledge of a perfect reader at each of the T positions of documents, the end of each included."""

    document: IntArray  #: (T,) number of the document
    position: IntArray  #: (T,) words before, from 0 on
    string: IntArray  #: (T,) strings before, from 0 on
    entropy: FloatArray  #: (T,) of the language given the words before, nats
    regret: FloatArray  #: (T,) ln P(word | words before, language) - ln P(word | words before), nats

    def by(self, key: IntArray, values: FloatArray) -> FloatArray:
        """Return the mean of some values, (T,), at each of the numbers of ``key``, from 0 on."""
        return np.asarray(np.bincount(key, values) / np.maximum(np.bincount(key), 1))


def what_is_known(
    truth: DocumentProcess,
    documents: Sequence[Sequence[str]],
    languages: Sequence[int] | IntArray,
    lengths: LengthRange | None = None,
) -> ReaderKnowledge:
    """Return the exact uncertainty about the language of documents, and its cost, word by word.

    The regret of a document, summed, is at most the entropy of the prior on average: the information that the document
    gives about its language.

    Args:
        truth: a pool.
        documents: n of them, such as `truesource.generator.corpus.Corpus.sentences`.
        languages: (n,) number of the language of each, as `truesource.generator.corpus.Corpus.languages` gives them.
        lengths: the condition on the words of a document.

    Raises:
        InputError: as `DocumentProcess.posterior` and `DocumentProcess.knowing`; not one language a document; or a
            document is impossible in its language.
    """
    numbers = np.asarray(languages, dtype=np.int64)
    if len(numbers) != len(documents):
        raise InputError(f"there are {len(documents):,} documents, but {len(numbers):,} languages; give one for each")
    posterior = truth.posterior(documents)
    mixed = truth.exact.causal_log_probs(documents, lengths)
    in_language: list[FloatArray] = [np.empty(0)] * len(documents)
    for k in np.unique(numbers).tolist():
        some = np.flatnonzero(numbers == k).tolist()
        rows = truth.knowing(k).exact.causal_log_probs([documents[i] for i in some], lengths)
        for i, row in zip(some, rows, strict=True):
            in_language[i] = row
    if not all(np.isfinite(row).all() for row in in_language):
        raise InputError(
            "a document is impossible in the language that is given for it; is this the truth of the corpus?"
        )
    sizes = [len(row) for row in mixed]
    return ReaderKnowledge(
        document=np.repeat(np.arange(len(documents)), sizes),
        position=np.concatenate([np.arange(size) for size in sizes]),
        string=_strings(documents),
        entropy=_entropies(posterior),
        regret=np.concatenate(in_language) - np.concatenate(mixed),
    )


def _strings(documents: Sequence[Sequence[str]]) -> IntArray:
    """Return strings before each position of some documents, from 0 on, (T,)."""
    return np.concatenate([np.cumsum([0, *(word == SEPARATOR for word in document)]) for document in documents])


def _entropies(posterior: Sequence[FloatArray]) -> FloatArray:
    """Return the entropy of weights of languages at every position of some documents, (T,) nats."""
    weights = np.concatenate(posterior)
    logs = np.log(weights, out=np.zeros_like(weights), where=weights > 0.0)
    return np.asarray(np.maximum(-(weights * logs).sum(axis=1), 0.0))


@dataclass(frozen=True)
class Strategy:
    """The predictor, among some, that a model resembles."""

    weight: dict[str, float]  #: of each in the mixture that is nearest to the model; they sum to one
    kl: dict[str, float]  #: mean KL(predictor || model) of each, nats a token
    rest: float  #: mean KL(model given the events that the mixture allows || that mixture), nats a token
    #: 95% interval of each weight, from resampling documents; of two predictors or more, and of enough documents
    interval: dict[str, tuple[float, float]] = field(default_factory=dict)


def strategy(
    model: DistributionModel,
    predictors: Mapping[str, Truth],
    documents: Sequence[Sequence[str]],
    lengths: LengthRange | None = None,
    *,
    seed: int = DEFAULT_SEED,
) -> Strategy:
    """Return the mixture of some exact predictors that is nearest to a model, at every position of some documents.

    Weights minimise the mean KL(model || mixture) over positions, which has one minimum (unless two predictors are the
    same). `documents_read` has the same along the training of a model.

    Args:
        model: causal, of whole words, with full distributions.
        predictors: by name, such as the pool that the documents are from and its generating prior.
        documents: any that every predictor can make.
        lengths: the condition on the words of a document, of all predictors.
        seed: of the resampling.

    Raises:
        InputError: there is no predictor or no document, or too many predictors, the model is masked or does not know
            all words, or a predictor cannot make a document.
    """
    if not predictors or not documents:
        raise InputError("give one predictor or more, and one document or more")
    if model.objective != "causal":
        raise InputError("only a causal model learns from the words before alone; give a causal one", code="masked")
    readers = _Readers.of(model, predictors, documents, lengths)
    if lost := len(documents) - readers.documents:
        raise InputError(f"{lost:,} documents are impossible for {next(iter(predictors))}; give possible ones")
    return readers.strategy(readers.log_q(model), seed)


@dataclass(frozen=True, eq=False)
class _Readers:
    """Exact predictors at all T positions of the documents that the first can make, kept for one model or more."""

    cached: CachedTruth  #: of the first
    log_p: dict[str, FloatArray]  #: (T, E) of each, nats
    observed: IntArray  #: (T,) column of the observed token
    document: IntArray  #: (T,) number of the document; documents that the first cannot make do not occur
    position: IntArray  #: (T,) words before

    @classmethod
    def of(
        cls,
        model: DistributionModel,
        predictors: Mapping[str, Truth],
        documents: Sequence[Sequence[str]],
        lengths: LengthRange | None,
    ) -> _Readers:
        """Compute them in the words of a model.

        Raises:
            InputError: there are too many, or one of them cannot make what the first can.
            NothingToMeasureError: the first can make no document.
        """
        if len(predictors) > LARGEST:
            raise InputError(f"a mixture has at most {LARGEST} predictors, not {len(predictors)}; leave some out")
        (first, truth), *others = predictors.items()
        cached = cls._cached(model, truth, documents, lengths)
        possible = sorted(member for _, blocks in cached.groups for row in blocks[0].members for member in row)
        number, some = np.array(possible), [documents[i] for i in possible]
        sizes = np.array([len(document) + 1 for document in some])
        starts = np.full(len(documents), -1)
        starts[number] = np.cumsum(sizes) - sizes
        log_p, observed = cls._table(cached, starts, int(sizes.sum()))
        tables = {first: log_p}
        for name, other in others:
            try:
                of_other = cls._cached(model, other, some, lengths)
                lost = len(some) - of_other.sentences
            except NothingToMeasureError:
                lost = len(some)
            if lost:
                raise InputError(
                    f"{name} cannot make {lost:,} of {len(some):,} documents; give it the words and the number of"
                    f" strings of {first}"
                )
            tables[name], _ = cls._table(of_other, starts[number], len(log_p))
        position = np.concatenate([np.arange(size) for size in sizes])
        return cls(cached, tables, observed, np.repeat(number, sizes), position)

    @staticmethod
    def _cached(
        model: DistributionModel, truth: Truth, documents: Sequence[Sequence[str]], lengths: LengthRange | None
    ) -> CachedTruth:
        contexts = sum(len(document) + 1 for document in documents)
        return cache_truth(model, Setting(truth, documents, lengths), contexts=contexts, dtype=np.float64)

    @staticmethod
    def _table(cached: CachedTruth, starts: IntArray, size: int) -> tuple[FloatArray, IntArray]:
        """Return ln P (T, E), and the columns of the observed tokens (T,)."""
        log_p, observed = np.empty((size, len(cached.events))), np.empty(size, dtype=np.int64)
        for _, blocks in cached.groups:
            for block in blocks:
                at, rows = _places(block, starts)
                log_p[at], observed[at] = block.log_prob[rows], block.observed[rows]
        return log_p, observed

    @property
    def documents(self) -> int:
        """Number of the first predictor can make."""
        return len(np.unique(self.document))

    @property
    def starts(self) -> IntArray:
        """First position of each of these, (D,)."""
        return np.flatnonzero(np.diff(self.document, prepend=-1))

    def log_q(self, model: DistributionModel) -> FloatArray:
        """Return ln Q of a model at all positions, (T, E) nats; it runs once.

        Raises:
            InputError: it has another objective or other words than the one that these are kept for.
        """
        starts = np.full(int(self.document.max()) + 1, -1)
        starts[self.document[self.starts]] = self.starts
        log_q = np.empty((len(self.document), len(self.cached.events)))
        for block, log_probs in self.cached.blocks(model):
            at, rows = _places(block, starts)
            log_q[at] = log_probs[rows]
        return log_q

    def kl(self, name: str, log_q: FloatArray) -> FloatArray:
        """Return KL(predictor || model) at all positions, (T,) nats; inf if the model has no such word."""
        return rows_kl(self.log_p[name], log_q)

    def paired(self, log: FloatArray) -> FloatArray:
        """Return the entries of a table (T, E) at the observed tokens, (T,)."""
        return np.asarray(log[np.arange(len(log)), self.observed])

    def strategy(self, log_q: FloatArray, seed: int) -> Strategy:
        """Return the mixture that is nearest to a model, see `strategy`."""
        names, starts, q = tuple(self.log_p), self.starts, np.exp(log_q)
        exact = np.exp(np.stack([self.log_p[name] for name in names]))
        weight = nearest(exact, q)
        mixture = np.tensordot(weight, exact, axes=1)
        counted = (mixture > 0.0) & (q > 0.0)
        allowed = np.where(counted, q, 0.0).sum(axis=1)
        gap = np.zeros_like(q)
        gap[counted] = q[counted] * (log_q[counted] - np.log(mixture[counted]))
        valid = allowed > 0.0
        rest = gap.sum(axis=1)[valid] / allowed[valid] - np.log(allowed[valid])  # of the model given these events
        ends: dict[str, tuple[float, float]] = {}
        if len(names) > 1 and not too_few(len(starts)):
            low, high = intervals(exact, q, starts, weight, seed)
            ends = dict(zip(names, zip(low.tolist(), high.tolist(), strict=True), strict=True))
        kl = {name: float(self.kl(name, log_q).mean()) for name in names}
        return Strategy(dict(zip(names, weight.tolist(), strict=True)), kl, float(rest.mean()), ends)


def _places(block: TruthBlock, starts: IntArray) -> tuple[IntArray, IntArray]:
    """Return the positions in a block, and the row of each."""
    rows = np.repeat(np.arange(len(block.members)), [len(members) for members in block.members])
    return starts[[member for members in block.members for member in members]] + block.position, rows


Scores = dict[str, dict[str, Score]]  #: by perfect reader, of which the truth is the first, and by measure


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class DocumentReading(ResultRecords):
    """Result of `documents_read` for one model."""

    model: str
    objective: str
    scores: Scores  #: of all positions
    tables: dict[str, dict[str, Scores]]  #: by ``string``, ``position`` and ``step``, and by group of these
    contexts: int  #: positions that were compared
    impossible: IntArray  #: documents that the truth cannot make
    informed: bool  #: the language of each document is known, so that there is a regret

    @override
    def as_scores(self) -> list[Score]:
        """Return all scores; a family at all positions is a group by ``reader``, in other groups it is a key."""
        by_reader = {name: {TRUTH: scores} for name, scores in self.scores.items() if name != TRUTH}
        every = list(self.scores[TRUTH].values())
        for by, groups in {"reader": by_reader, **self.tables}.items():
            for group, readers in groups.items():
                for reader, scores in readers.items():
                    family = {} if reader == TRUTH else {"reader": reader}
                    every += keyed(scores.values(), by=by, group=group, **family)
        return keyed(every, model=self.model, objective=self.objective)


def documents_read(
    model: DistributionModel,
    setting: Setting,
    *,
    families: Mapping[str, Truth] | None = None,
    along: Iterable[tuple[int, DistributionModel]] = (),
) -> DocumentReading:
    """Compare a model with the best readers of documents, by the number of the string and by the words before.

    Means over tokens, nats, with intervals that resample documents; of all positions, and of the groups:

    * ``kl``: KL(truth || model), exact at every position; ``kl_paired``: estimated from the observed tokens.
    * ``entropy``: of the language, given the words before, and ``regret``: the cost of not knowing the language,
      see `what_is_known`. The first needs a pool, the second its corpus, too.
    * of each family, ``kl_family``: KL(family || model), and ``family_above``: the loss of its reader above the truth.

    ``weight_truth`` and ``weight_family`` are weights of the mixture of all readers that is nearest to the model, see
    `strategy`, and ``rest`` is the divergence from that mixture.

    Args:
        model: causal, of whole words, with full distributions.
        setting: documents and their truth. Every position counts, whatever the frame.
        families: by name, distributions that the languages may be drawn from, or other strategies.
        along: the same model at steps of its training; table ``step`` has the numbers of all positions.

    Raises:
        InputError: the truth is not of documents, or a family is the same or cannot make one of them.
        NothingToMeasureError: the model is masked.
    """
    truth, others = setting.known, dict(families or {})
    _check(model, setting, truth, others)
    assert isinstance(truth, DocumentProcess)
    readers = _Readers.of(model, {TRUTH: truth, **others}, setting.sentences, setting.lengths)
    lost = np.setdiff1d(np.arange(len(setting.sentences)), readers.document)
    documents = [setting.sentences[i] for i in np.unique(readers.document).tolist()]
    shared = signed_parts(readers.cached.oracle, setting, contexts=len(readers.document), excluded=len(lost))
    languages = _languages(setting, truth, np.unique(readers.document))
    measuring = _ReaderComparison(
        readers, others, _columns_of_truth(truth, documents, setting, languages), shared, setting
    )
    string = _strings(documents)
    log_q = readers.log_q(model)
    columns = measuring.columns(log_q)
    keys = {
        "string": (string, [str(n + 1) for n in range(int(string.max()) + 1)]),
        "position": (_band(readers.position), _bands(readers.position)),
    }
    tables = {by: measuring.by(columns, by, *key) for by, key in keys.items()}
    if steps := {str(step): measuring.whole(readers.log_q(each), {"step": step}) for step, each in along}:
        tables["step"] = steps
    return DocumentReading(
        model=model.name,
        objective=model.objective,
        scores=measuring.whole(log_q, {}),
        tables=tables,
        contexts=len(readers.document),
        impossible=lost,
        informed=languages is not None,
    )


def _check(model: DistributionModel, setting: Setting, truth: Truth, families: Mapping[str, Truth]) -> None:
    """Refuse what `documents_read` cannot measure, before anything is computed."""
    if not isinstance(truth, DocumentProcess):
        raise InputError(
            f"evaluate documents needs a truth of documents, which {truth.identity} is not; sample a corpus of pool,"
            " dirichlet-markov, dirichlet-automaton or context-tree",
            code="missing-ability",
        )
    for family in families.values():
        if family.identity == truth.identity:
            raise InputError(f"the family {family.identity} is the truth itself; leave the family out")
    check_sentences(setting.sentences)
    if model.objective != "causal":
        raise NothingToMeasureError(
            "only a causal model learns from the words before alone; give a causal one", "masked"
        )
    require_tokens(setting.transform, "causal", "the reading of documents")


def _columns_of_truth(
    truth: DocumentProcess, documents: Sequence[Sequence[str]], setting: Setting, languages: IntArray | None
) -> dict[str, Column]:
    """Return the measures of a perfect reader of the truth, which no model changes."""
    if languages is not None:
        knowledge = what_is_known(truth, documents, languages, setting.lengths)
        regret = Column(knowledge.regret, {"unit": "nats/token", "estimator": "paired"})
        return {"entropy": Column(knowledge.entropy, {"unit": "nats"}), "regret": regret}
    if truth.languages is not None:
        return {"entropy": Column(_entropies(truth.posterior(documents)), {"unit": "nats"})}
    return {}


@dataclass(frozen=True, eq=False)
class _ReaderComparison:
    """Models compared with perfect readers."""

    readers: _Readers
    families: Mapping[str, Truth]
    fixed: Mapping[str, Column]  #: of the truth, whatever the model
    shared: Mapping[str, object]  #: parts of every signature
    setting: Setting

    def columns(self, log_q: FloatArray) -> dict[str, dict[str, Column]]:
        """Return the measures of each reader at all positions, for ln Q (T, E) of a model."""
        readers, exact = self.readers, {**_NATS, "estimator": "rao-blackwell"}
        truth = readers.paired(readers.log_p[TRUTH])
        columns = {
            TRUTH: {
                "kl": Column(readers.kl(TRUTH, log_q), exact),
                "kl_paired": Column(truth - readers.paired(log_q), {**_NATS, "estimator": "paired"}),
                **self.fixed,
            }
        }
        for name, family in self.families.items():
            parts = {"unit": "nats/token", "family": family.identity}
            columns[name] = {
                "kl_family": Column(readers.kl(name, log_q), {**exact, **parts}),
                "family_above": Column(truth - readers.paired(readers.log_p[name]), {**parts, "estimator": "paired"}),
            }
        return columns

    def whole(self, log_q: FloatArray, place: Mapping[str, object]) -> Scores:
        """Return the numbers of all positions, and the weights of the readers."""
        shared = {**self.shared, **place}
        scores = {
            name: mean_scores(columns, self.readers.document, shared, self.setting.seed)
            for name, columns in self.columns(log_q).items()
        }
        if not self.families:
            return scores
        nearest_one = self.readers.strategy(log_q, self.setting.seed)
        ci = ci_part(self.readers.documents, self.setting.seed, "document", method="percentile")
        families = {"family": "+".join(family.identity for family in self.families.values())}
        for name, weight in nearest_one.weight.items():
            measure = f"weight_{TRUTH if name == TRUTH else FAMILY}"
            signed = signature({**shared, **families, "unit": "share", "ci": ci})
            scores[name][measure] = Score(measure, weight, signed, *nearest_one.interval.get(name, (None, None)))
        signed = signature({**shared, **families, "unit": "nats/token"})
        scores[TRUTH]["rest"] = Score("rest", nearest_one.rest, signed)
        return scores

    def by(
        self, columns: Mapping[str, Mapping[str, Column]], by: str, key: IntArray, names: Sequence[str]
    ) -> dict[str, Scores]:
        """Return means of the measures in each group that has a position."""
        scores = {}
        for number in np.unique(key).tolist():
            at = key == number
            parts = {**self.shared, "by": by, "group": names[number], "contexts": int(at.sum())}
            scores[names[number]] = {
                reader: mean_scores(
                    {name: Column(column.values[at], column.parts) for name, column in some.items()},
                    self.readers.document[at],
                    parts,
                    self.setting.seed,
                )
                for reader, some in columns.items()
            }
        return scores


def _languages(setting: Setting, truth: DocumentProcess, kept: IntArray) -> IntArray | None:
    """Return the number of the language of some documents; None if none is known, or it changes within a document."""
    text = setting.text
    if truth.languages is None or truth.predictor.switch > 0.0 or text is None or text.corpus is None:
        return None
    return text.corpus.languages(text.split)[kept] if text.corpus.grammar_digest == truth.digest else None


def _band(position: IntArray) -> IntArray:
    """Return the number of the band of each position: 0, 1, 2 to 3, 4 to 7 and so on."""
    return np.asarray(np.frexp(position)[1], dtype=np.int64)


def _bands(position: IntArray) -> list[str]:
    """Return the names of the bands up to the last position."""
    ends = [(2**k // 2, 2**k - 1) for k in range(int(_band(position).max()) + 1)]
    return [str(low) if low == high else f"{low}-{high}" for low, high in ends]
