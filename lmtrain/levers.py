"""Levers: one more training for each thing that may hold a model back, with all else equal."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, get_args

from truesource.lmtrain.architectures.settings import GatedCNNSettings, NetworkSettings, NgramSettings
from truesource.lmtrain.config import ModelConfig, TrainConfig
from truesource.lmtrain.own.settings import OwnSettings

LeverName = Literal["data", "targets", "steps", "width", "layers", "context", "tokenizer"]
LEVERS: tuple[LeverName, ...] = get_args(LeverName)
FACTOR = 4  #: times the steps, the words of context, and the sentences of a model that counts
#: names of parameters of custom modules, as code calls them
LAYERS = ("layers", "n_layers", "num_layers", "n_layer", "num_hidden_layers", "depth")
WIDTHS = (
    *("dim", "width", "hidden", "hidden_size", "hidden_dim", "dim_model", "d_model", "n_embd", "embed_dim"),
    *("embedding_dim", "emb_dim", "d_ff", "ffn_dim", "intermediate_size", "channels"),
)
CONTEXTS = ("context", "context_size", "window", "window_size")
FEWEST_WORDS = 200  #: smallest vocabulary that is worth cutting into pieces

#: why a lever is not pulled, as records say it
LeverExclusion = Literal[
    "counts",  # the model counts, and has no such setting
    "fresh-already",  # the model saw no sentence twice, so fresh ones are what it had
    "whole-sentence",  # nothing limits the words that the model sees
    "no-size",  # the architecture has no such setting
    "no-parameter",  # the custom module has no parameter of a name that says so
    "masked",  # only a causal model can be trained like that
    "single-tokens",  # the architecture is trained on single tokens only
    "pieces",  # the pieces of words have no exact distribution, for the tokeniser does not show where words end
    "few-words",  # there are too few words to cut
    "unknown-words",  # the model reads rare words as one, which pieces spell: the two predict different things
    "no-order",  # the text is transformed, and its next word has no known distribution
    "over-budget",  # it takes longer than was granted
    "too-large",  # the expected distributions do not fit
]


@dataclass(frozen=True)
class Lever:
    """A training that differs in one setting from the training of the explained model."""

    name: LeverName
    model: ModelConfig
    training: TrainConfig | None  #: None: the model counts
    sentences: int | None = None  #: fresh sentences to train on; None: the model's corpus
    expected: bool = False  #: trained on what is expected at each position, not on what occurred
    before: str = ""  #: the differing setting in the model
    after: str = ""  #: the differing setting in the lever


@dataclass(frozen=True)
class KnownTraining:
    """Facts about the training of the explained model."""

    model: ModelConfig
    training: TrainConfig | None  #: None: it counts
    steps: int  #: number of steps; 0 of a model that counts
    epochs: float  #: passes over its sentences
    sentences: int  #: of its train split
    longest: int  #: words of the longest of them
    words: int  #: of the vocabulary
    ordered: bool = True  #: the next word of its text has a known distribution
    all_known: bool = True  #: it tells all words of its train split apart

    @property
    def window(self) -> int | None:
        """Words before a token that the model can see; None: nothing limits them."""
        if isinstance(self.model, NgramSettings):
            return self.model.order - 1
        if isinstance(self.model, GatedCNNSettings):
            return self.model.layers * ((self.model.kernel_size or 4) - 1) + 1
        return None


def levers_of(trained: KnownTraining) -> tuple[list[Lever], dict[LeverName, LeverExclusion]]:
    """Return the levers that a model has, and why it lacks the others, in the order of `LEVERS`.

    Every training has the seed, the batches and the vocabulary of the model's own, and as many steps; ``steps`` has
    `FACTOR` times as many, with the schedule of the learning rate stretched.
    """
    pulled = {
        "data": _data(trained),
        "targets": _targets(trained),
        "steps": _steps(trained),
        "width": _width(trained),
        "layers": _layers(trained),
        "context": _context(trained),
        "tokenizer": _tokenizer(trained),
    }
    levers = [lever for lever in pulled.values() if isinstance(lever, Lever)]
    return levers, {name: pulled[name] for name in LEVERS if not isinstance(pulled[name], Lever)}  # type: ignore[misc]


def base_training(trained: KnownTraining) -> TrainConfig | None:
    """Return the training of the model with its number of steps written out, and nothing kept on the way."""
    if trained.training is None:
        return None
    return trained.training.model_copy(
        update={
            "epochs": None,
            "max_steps": trained.steps,
            "max_seconds": None,
            "snapshots": "none",
            "report_to": (),
            "eval_every": max(trained.training.eval_every, trained.steps // 5),
        }
    )


def _data(trained: KnownTraining) -> Lever | LeverExclusion:
    if trained.training is None:
        n_sentences = FACTOR * trained.sentences
    elif trained.epochs <= 1.0:
        return "fresh-already"
    else:
        n_sentences = math.ceil(1.05 * trained.epochs * trained.sentences)  # batches of other sentences hold a few more
    return Lever(
        "data",
        trained.model,
        base_training(trained),
        sentences=n_sentences,
        before=f"{trained.sentences:,} sentences",
        after=f"{n_sentences:,} sentences, none twice",
    )


def _targets(trained: KnownTraining) -> Lever | LeverExclusion:
    if trained.training is None:
        return "counts"
    if trained.model.objective != "causal":
        return "masked"
    if trained.model.architecture == "adaptive":
        return "single-tokens"
    if not trained.ordered:
        return "no-order"
    tokens = "words" if trained.model.tokenizer == "word" else "pieces"
    before, after = f"the {tokens} that occurred", "their true probabilities"
    return Lever("targets", trained.model, base_training(trained), expected=True, before=before, after=after)


def _steps(trained: KnownTraining) -> Lever | LeverExclusion:
    training = base_training(trained)
    if training is None:
        return "counts"
    more = FACTOR * trained.steps
    longer = training.model_copy(update={"max_steps": more, "eval_every": FACTOR * training.eval_every})
    return Lever("steps", trained.model, longer, before=f"{trained.steps:,} steps", after=f"{more:,} steps")


def _width(trained: KnownTraining) -> Lever | LeverExclusion:
    model = trained.model
    if isinstance(model, OwnSettings):
        return _parameters("width", WIDTHS, trained, lambda size: 2 * size)
    if not isinstance(model, NetworkSettings):
        return "counts" if trained.training is None else "no-size"
    inner = getattr(model, "ffn_dim", None)
    wider = {"dim": 2 * model.dim, **({} if inner is None else {"ffn_dim": 2 * inner})}
    return Lever(
        "width",
        _changed(model, **wider),
        base_training(trained),
        before=f"width {model.dim}",
        after=f"width {2 * model.dim}",
    )


def _layers(trained: KnownTraining) -> Lever | LeverExclusion:
    model = trained.model
    if isinstance(model, OwnSettings):
        return _parameters("layers", LAYERS, trained, lambda size: 2 * size)
    if not isinstance(model, NetworkSettings):
        return "counts" if trained.training is None else "no-size"
    more = 2 * model.layers
    before, after = f"{model.layers} layer{'s' * (model.layers != 1)}", f"{more} layers"
    return Lever("layers", _changed(model, layers=more), base_training(trained), before=before, after=after)


def _context(trained: KnownTraining) -> Lever | LeverExclusion:
    window, model = trained.window, trained.model
    if isinstance(model, OwnSettings):
        return _parameters("context", CONTEXTS, trained, lambda size: FACTOR * size)
    if window is None or window >= trained.longest:
        return "whole-sentence"
    context = min(FACTOR * max(window, 1), trained.longest)
    if isinstance(model, GatedCNNSettings):
        kernel = 1 + math.ceil((context - 1) / model.layers)
        wider, seen = _changed(model, kernel_size=kernel), model.layers * (kernel - 1) + 1
    else:
        wider, seen = _changed(model, order=context + 1), context
    unit = "word" if model.tokenizer == "word" else "piece"
    before, after = f"{window} {unit}{'s' * (window != 1)} seen", f"{seen} {unit}s seen"
    return Lever("context", wider, base_training(trained), before=before, after=after)


def _parameters(
    name: LeverName, names: Sequence[str], trained: KnownTraining, larger: Callable[[int], int]
) -> Lever | LeverExclusion:
    """Return a lever of a custom module: all its whole-number parameters of some names, larger.

    Args:
        name: of the lever.
        names: of parameters that mean the same.
        trained: facts about the training; its settings have the defaults of the module.
        larger: maps the value of the model to the value of the lever.
    """
    assert isinstance(trained.model, OwnSettings)
    settings = trained.model.settings
    values = ((key, settings.get(key)) for key in names)
    before = {key: size for key, size in values if type(size) is int and size > 0}
    if not before:
        return "no-parameter"
    after = {key: larger(value) for key, value in before.items()}
    labels = (", ".join(f"{key} {value}" for key, value in sizes.items()) for sizes in (before, after))
    return Lever(name, _changed(trained.model, **after), base_training(trained), None, False, *labels)


def _tokenizer(trained: KnownTraining) -> Lever | LeverExclusion:
    model = trained.model
    if model.objective != "causal":
        return "masked"
    if trained.training is None:
        return "counts"
    if model.tokenizer != "word":
        words = _changed(model, tokenizer="word", vocab_size=None)
        before = f"{model.vocab_size:,} pieces ({model.tokenizer})"
        return Lever("tokenizer", words, base_training(trained), before=before, after="whole words")
    if trained.words < FEWEST_WORDS:
        return "few-words"
    if not trained.all_known:
        return "unknown-words"
    size = trained.words // 2
    positions = {} if model.longest is None else {"max_positions": 4 * model.longest}
    pieces = _changed(model, tokenizer="bpe", vocab_size=size, min_count=1, **positions)
    before = f"{trained.words:,} words"
    return Lever("tokenizer", pieces, base_training(trained), before=before, after=f"{size:,} pieces (bpe)")


def _changed(model: ModelConfig, **settings: object) -> ModelConfig:
    """Return the same model with other settings, checked, and named after them."""
    values = {name: getattr(model, name) for name in type(model).model_fields}
    if isinstance(model, OwnSettings):
        values |= model.settings
    return type(model)(**{**values, "name": None, **settings})


def within(levers: Sequence[Lever], seconds: Mapping[LeverName, float], budget: float) -> list[Lever]:
    """Return the levers that fit a budget together, cheapest first; in their own order.

    Args:
        levers: to choose from.
        seconds: duration of each; 0 if unknown.
        budget: seconds for all.
    """
    left, chosen = budget, set[str]()
    for lever in sorted(levers, key=lambda each: seconds[each.name]):
        if seconds[lever.name] <= left:
            left -= seconds[lever.name]
            chosen.add(lever.name)
    return [lever for lever in levers if lever.name in chosen]
