"""The cells of a benchmark: one model with one training seed on one language, trained and measured."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pydantic import with_config
from typing_extensions import TypedDict, override

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import adds_up_to_words, has_divergence
from truesource.evaluation.core.windows import BestWithin
from truesource.evaluation.core.word_frequencies import counted_frequencies
from truesource.evaluation.divergence.of_words import NOT_ADDED
from truesource.generator.abilities import offers, require
from truesource.grammar.support.atomic_files import remove_leftovers, working_folder, write_json
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.locks import exclusive
from truesource.grammar.support.records import STRICT, Count, Positive, read_record, read_records
from truesource.grammar.truth import process
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.device import computing, one_thread
from truesource.lmtrain.models import load_model
from truesource.run.cells import TrainingCells, cell_id
from truesource.studies.benchmark.results import WINDOWS, BenchmarkCell, Divergences, TruthRecord, has_truth
from truesource.studies.benchmark.suite import Candidate, Suite
from truesource.studies.benchmark.truth import LanguageTruth, Part

if TYPE_CHECKING:
    from truesource.evaluation.divergence.contexts import Contexts
    from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor
    from truesource.generator.corpus import Corpus
    from truesource.generator.language_model import LanguageModel
    from truesource.generator.objectives import Objective


HALVINGS = 8  #: of the train split, for models that count
_REMEDY = "delete it and it will be made again"


def network_curve(folder: Path) -> tuple[list[tuple[int, float]], int, int]:
    """Read the learning curve of a network: (tokens, KL in nats a token) pairs, steps, tokens.

    Raises:
        InputError: the metrics are damaged.
    """
    from truesource.lmtrain.training_record import MetricsRow

    remedy = "delete the folder of the model and it will be trained again"
    rows = [row for _, row in read_records(folder / "metrics.jsonl", MetricsRow, remedy=remedy)]
    curve = [(row.get("tokens") or 0, float(kl)) for row in rows if (kl := row.get("kl")) is not None]
    return curve, rows[-1]["step"], rows[-1].get("tokens") or 0


def counted_curve(
    corpus: Corpus, shape: ModelConfig, seed: int, monitor: OracleMonitor, target: Path
) -> list[tuple[int, float]]:
    """Measure the learning curve of a model that counts, trained on 1/2, 1/4, ... of the train split.

    Args:
        corpus: with splits train and dev.
        shape: settings of the model.
        seed: of its training.
        monitor: measures it.
        target: the finished model, whose words the others tell apart too.
    """
    from truesource.lmtrain.models import load_folder
    from truesource.lmtrain.subwords import make_tokenizer
    from truesource.lmtrain.training import train

    whole = corpus.coded("train")
    tokenizer = make_tokenizer(shape, whole, shape.objective)
    curve = []
    for halvings in range(HALVINGS, 0, -1):
        n = len(whole) >> halvings
        if n == 0:
            continue
        with working_folder(target) as folder:
            model = train(whole[:n], shape, None, folder / "model", seed=seed, tokenizer=tokenizer)
            curve.append((int(whole.lengths[:n].sum()) + n, monitor(model)["kl"]))
    curve.append((int(whole.lengths.sum()) + len(whole), monitor(load_folder(target))["kl"]))
    return curve


class MeasuredModel:
    """A model in the contexts of the test strings, and of longer ones.

    Args:
        model: with full distributions, or of pieces.
        truth: about the language.
        longest: most tokens that the model reads, its marks included; None: any number.

    Raises:
        InputError: the model has no full distributions, or gives probability 0 to what may follow.
    """

    def __init__(self, model: LanguageModel, truth: LanguageTruth, longest: int | None) -> None:
        self._truth = truth
        if not has_divergence(model):
            require(model, "distributions", "benchmark")
        if not adds_up_to_words(model):
            raise InputError(f"{model.name} cannot be compared per word: {NOT_ADDED}", code="masked")
        contexts = truth.measured(model, "test")
        self.test = self._divergences(model, contexts, "test")
        self.calibration = contexts.reliability.error
        self.longer: Divergences | None = None
        self.longer_refused: str | None = None
        if "longer" not in truth.parts:
            return
        needed = truth.tokens(model, "longer")
        if longest is not None and longest < needed:
            self.longer_refused = (
                f"the model reads {longest} tokens at most, and the longer strings have up to {needed}"
            )
            return
        self.longer = self._divergences(model, truth.measured(model, "longer"), "longer")

    def _divergences(self, model: LanguageModel, contexts: Contexts, part: Part) -> Divergences:
        counted = self._truth.counted(contexts, part)
        kl = self._truth.blocks(contexts, part, contexts.column("kl"))
        if not all(value < float("inf") for value in kl):
            raise InputError(
                f"{model.name} gives probability 0 to something that may follow, so that its divergence from the truth"
                " is infinite; smooth it",
                code="infinite-divergence",
            )
        wrong = contexts.column("impossible_mass") + contexts.column("special_mass")
        return {"kl": kl, "wrong": min(1.0, float(wrong[counted].mean()))}


@with_config(STRICT)
class FinishedCell(TypedDict):
    """``cells/<id>.json``: a finished cell."""

    measured: BenchmarkCell
    parameters: Count | None  #: without word and position vectors; None: the model has none that are trained


@with_config(STRICT)
class KeptTruth(TruthRecord):
    """``truths/<language>-<objective>.json``: what there is to learn."""

    words: Positive  #: number of those that models tell apart


@dataclass(frozen=True)
class SuiteCell:
    """A cell to train and measure."""

    language: str  #: name in the suite
    candidate: Candidate
    seed: int
    objective: Objective
    shape: ModelConfig | None  #: None: a reference
    training: TrainConfig | None  #: None: nothing is trained in steps
    suite_digest: str  #: of all that decides the results of this language
    folder: Path | None = None  #: folder of a model that was trained elsewhere; None: trained here

    @property
    def id(self) -> str:
        """Name of its files: other settings, suites or seeds have another."""
        settings = None if self.shape is None else self.shape.model_dump(mode="json") | {"name": None}
        training = None if self.training is None else self.training.model_dump(mode="json")
        request = {"suite": self.suite_digest, "model": settings, "training": training, "objective": self.objective}
        if self.folder is not None:
            request["files"] = {f.name: digest_file(f) for f in sorted(self.folder.iterdir()) if f.is_file()}
        return cell_id(f"{self.language}-{self.candidate.name}", self.seed, request)

    @property
    def is_reference(self) -> bool:
        """True of models that nobody trains: `REFERENCES`."""
        return self.shape is None and self.folder is None

    def __str__(self) -> str:
        kind = f", {self.objective}" if self.is_reference and self.objective != "causal" else ""
        return f"{self.candidate.name}{kind} on {self.language}, seed {self.seed}"


def planned_cells(
    suite: Suite, candidates: Sequence[Candidate], languages: Sequence[str], seeds: Sequence[int]
) -> list[SuiteCell]:
    """Return all cells, language by language; a model that no seed changes has one cell.

    Masked and any-order models and windows have no cells of processes, which have no truth for them. Any-order
    references are excluded unless a model fills gaps.

    Raises:
        InputError: settings of a model are wrong, its code cannot be used, or it is not causal and all languages are
            processes.
    """
    cells: list[SuiteCell] = []
    references = [suite.languages[name].language for name in languages]
    for name, reference in zip(languages, references, strict=True):
        for candidate in candidates:
            shape: ModelConfig | None = None
            training: TrainConfig | None = None
            folder = None if candidate.folder is None else candidate.folder_of(name, alone=len(languages) == 1)
            if folder is not None:
                objective = load_model(folder).objective
            elif candidate.trained:
                shape, training = candidate.resolve(suite, suite.languages[name])
                objective = shape.objective
            else:
                objective = candidate.model["objective"]
            needed: Objective = "masked" if candidate.architecture in WINDOWS else objective
            if not has_truth(reference, needed):
                if not any(has_truth(each, needed) for each in references) and (folder or shape) is not None:
                    require(process(reference), objective, f"the {objective} model {candidate.name}")
                continue
            digest = suite.digest_of(name)
            for seed in seeds if training is not None else list(seeds)[:1]:
                cells.append(SuiteCell(name, candidate, seed, objective, shape, training, digest, folder=folder))
    filling = any(cell.objective == "any-order" and not cell.is_reference for cell in cells)
    return [cell for cell in cells if filling or cell.objective != "any-order"]


def read_cell(folder: Path, cell: SuiteCell) -> FinishedCell | None:
    """Return the record of a cell; None: it is not finished, or the truth that it was compared with is missing.

    Raises:
        InputError: it is damaged.
    """
    path = _cell_file(folder, cell)
    if not path.is_file() or not _truth_file(folder, cell.language, cell.objective).is_file():
        return None
    return read_record(path, FinishedCell, what="the record of this cell", remedy=_REMEDY)


def read_truth(folder: Path, language: str, objective: Objective) -> KeptTruth | None:
    """Return the truth about a language for models of an objective; None: no cell has needed it yet.

    Raises:
        InputError: it is damaged.
    """
    path = _truth_file(folder, language, objective)
    if not path.is_file():
        return None
    return read_record(path, KeptTruth, what="the record of this truth", remedy=_REMEDY)


def _cell_file(folder: Path, cell: SuiteCell) -> Path:
    return folder / "cells" / f"{cell.id}.json"


def _truth_file(folder: Path, language: str, objective: Objective) -> Path:
    return folder / "truths" / f"{language}-{objective}.json"


@dataclass(frozen=True)
class SuiteCells(TrainingCells[SuiteCell]):
    """The cells of a suite in a folder of results; reaches worker processes.

    One thread computes each cell, so that its numbers are the same on any number of workers. The truth that a cell is
    compared with is kept too.
    """

    suite: Suite
    folder: Path
    device: str | None = None  #: device of networks; None: as the call says
    models = "models"

    @override
    def make(self, cell: SuiteCell, *, wait: bool = False) -> None:
        with computing(self.device), one_thread():
            super().make(cell, wait=wait)

    @override
    def is_finished(self, cell: SuiteCell) -> bool:
        return read_cell(self.folder, cell) is not None

    @override
    def results(self, cell: SuiteCell) -> tuple[Path]:
        return (_cell_file(self.folder, cell),)

    @override
    def train(self, cell: SuiteCell) -> None:
        from truesource.lmtrain.training import train

        place = self.place(cell)
        if cell.shape is None or place.is_dir() or self.results(cell)[0].is_file():  # then only the truth is missing
            return
        truth = self._truth(cell)
        monitor = None if cell.training is None else _monitor(self.suite, truth)
        train(truth.corpus, cell.shape, cell.training, place, seed=cell.seed, monitor=monitor)

    @override
    def score(self, cell: SuiteCell) -> None:
        (file,), truth = self.results(cell), self._truth(cell)
        record = None if file.is_file() else _measured(self.suite, self.place(cell), cell, truth)
        _keep_truth(self.folder, cell, truth)
        if record is not None:
            write_json(file, record)  # last: if it is there, the rest is

    def _truth(self, cell: SuiteCell) -> LanguageTruth:
        return _truth(self.suite.model_dump_json(), cell.language, self.folder)


@lru_cache(maxsize=1)  # cells come language by language
def _truth(suite: str, language: str, folder: Path) -> LanguageTruth:
    return LanguageTruth(Suite.model_validate_json(suite), language, folder)


def _measured(suite: Suite, place: Path, cell: SuiteCell, truth: LanguageTruth) -> FinishedCell:
    if cell.folder is not None:
        learned, longest = _pretrained(cell.folder, cell, truth)
    elif cell.shape is None:
        learned, longest = _reference(cell, truth), None
    else:
        learned, longest = _learned(suite, place, cell, truth), cell.shape.longest
    measured = MeasuredModel(learned.model, truth, longest)
    return {
        "measured": {
            "language": cell.language,
            "seed": cell.seed,
            "test": measured.test,
            "longer": measured.longer,
            "longer_refused": measured.longer_refused,
            "calibration": measured.calibration,
            "curve": learned.curve,
            "steps": learned.steps,
            "tokens": learned.tokens,
            "flops": learned.flops,
        },
        "parameters": learned.parameters,
    }


def _keep_truth(folder: Path, cell: SuiteCell, truth: LanguageTruth) -> None:
    path = _truth_file(folder, cell.language, cell.objective)
    with exclusive(path, wait=True):
        remove_leftovers(path)
        if not path.is_file():
            write_json(path, {**truth.record(cell.objective), "words": len(truth.known)})


@dataclass(frozen=True)
class CellModel:
    """The model of a cell, and the cost of its training."""

    model: LanguageModel
    curve: list[tuple[int, float]]
    steps: int
    tokens: int
    flops: int | None
    parameters: int | None


def _reference(cell: SuiteCell, truth: LanguageTruth) -> CellModel:
    tokens, sentences = truth.corpus.n_tokens("train"), truth.corpus.n_sentences("train")
    model: Any = counted_frequencies(cell.candidate.name, truth.known, sentences, cell.objective)
    architecture = cell.candidate.architecture
    exact: Callable[..., Oracle] | None = None
    if architecture == "oracle":
        exact = partial(Oracle, truth.distribution, cell.objective)
    elif architecture in WINDOWS:
        exact = partial(BestWithin, require(truth.distribution, "windows", architecture), WINDOWS[architecture])
    if exact is not None:
        conditioned, free = (exact(lengths=lengths, vocabulary=truth.known) for lengths in (truth.language.range, None))
        model = _LengthwiseOracle(conditioned, free, truth.language.range.high)
    return CellModel(model, [], 0, tokens + sentences, None, None)


def _pretrained(folder: Path, cell: SuiteCell, truth: LanguageTruth) -> tuple[CellModel, int | None]:
    """Return a model that was trained elsewhere, and the maximum number of tokens that it reads, marks included."""
    model = load_model(folder)
    words, expected = set(model.vocabulary or truth.known), set(truth.known)
    if words != expected:
        raise InputError(
            f"{cell.candidate.name} was trained on another text than the corpus of {cell.language}: it knows"
            f" {len(words & expected):,} of the {len(expected):,} words that occur at least"
            f" {truth.suite.training.min_count} times there, and {len(words - expected):,} others; train it on the"
            f" split train of corpora/{cell.language} in the folder of results (--corpora makes it), with these words",
            folder,
            code="other-language",
        )
    longest, marks = getattr(model, "longest", None), 0 if offers(model, "tokens") else 2  # pieces count their marks
    needed = truth.tokens(model, "test")
    if longest is not None and longest + marks < needed:
        raise InputError(
            f"{cell.candidate.name} reads {longest} {'words' if marks else 'pieces'} at most, but strings have up to"
            f" {needed - marks}",
            folder,
            code="too-short",
        )
    return CellModel(model, [], 0, 0, None, None), None if longest is None else longest + marks


class _LengthwiseOracle:
    """A reference under the length condition on test strings, without it on longer ones."""

    def __init__(self, conditioned: Oracle, free: Oracle, longest: int) -> None:
        self.name, self.objective, self.vocabulary = conditioned.name, conditioned.objective, conditioned.vocabulary
        self._conditioned, self._free, self._longest = conditioned, free, longest

    def distributions(self, sentences: Sequence[Sequence[str]]) -> Any:
        """Return distributions, without a length condition if sentences are longer than in training."""
        return (self._free if len(sentences[0]) > self._longest else self._conditioned).distributions(sentences)


def _monitor(suite: Suite, truth: LanguageTruth) -> OracleMonitor:
    from truesource.evaluation.dynamics.oracle_monitor import OracleMonitor

    return OracleMonitor.on_corpus(truth.distribution, truth.corpus, sentences=suite.sizes.dev)


def _learned(suite: Suite, place: Path, cell: SuiteCell, truth: LanguageTruth) -> CellModel:
    """Load the model that was trained into a folder."""
    from truesource.lmtrain.models import load_folder, load_trained

    assert cell.shape is not None
    corpus = truth.corpus
    if cell.training is None:
        seen = corpus.n_tokens("train") + corpus.n_sentences("train")
        curve = counted_curve(corpus, cell.shape, cell.seed, _monitor(suite, truth), place)
        return CellModel(load_folder(place), curve, 0, seen, None, None)
    parameters, flops = _size(suite, cell, corpus)
    network = load_trained(place, cell.shape)
    curve, steps, tokens = network_curve(place)
    return CellModel(network, curve, steps, tokens, flops, parameters)


def _size(suite: Suite, cell: SuiteCell, corpus: Corpus) -> tuple[int, int]:
    """Return the number of parameters without word and position vectors, and the FLOPs of the training."""
    from truesource.lmtrain.flops import training_cost
    from truesource.lmtrain.subwords import make_tokenizer

    assert cell.shape is not None
    assert cell.training is not None
    train = corpus.coded("train")
    tokenizer = make_tokenizer(cell.shape, train, cell.shape.objective)
    cost = training_cost(cell.shape, cell.training, train, tokenizer, seed=cell.seed)
    parameters, most = cost.parameters.without_embeddings, suite.training.parameters
    if parameters > most:
        raise InputError(
            f"{cell.candidate.name} has {parameters:,} parameters without word and position vectors, more than the"
            f" {most:,} of suite {suite.label}; make it smaller",
            code="too-many-parameters",
        )
    return parameters, cost.flops
