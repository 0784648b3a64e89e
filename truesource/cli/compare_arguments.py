"""Arguments of `truesource compare`: models with a corpus and its grammar or with its variants, or runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from truesource.evaluation.core.evaluator import Evaluator
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.folders import kind_of
from truesource.grammar.support.printable import listed
from truesource.grammar.support.settings import did_you_mean
from truesource.studies.compare.named_models import NamedModel, named_models
from truesource.terminal.console import echo

if TYPE_CHECKING:
    from truesource.evaluation.comparing import ModelScores
    from truesource.evaluation.core.setting import Setting
    from truesource.evaluation.core.vocabulary import Kind
    from truesource.generator.language_model import LanguageModel
    from truesource.grammar.conditioning import LengthRange

#: keys and names of options that need a known truth
OF_A_TRUTH = {"exact": "--exact-kl", "also": "--evaluators", "vocabulary": "--vocabulary", "figure": "--figure"}
OF_A_TRUTH |= {"columns": "--columns"}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The sentences of a corpus to score, and the frame."""

    split: str = "eval"  #: name of the split in a corpus folder
    frame: str = "default"  #: name of a preset
    lengths: str | None = None  #: condition on sentence length; None: the condition of the corpus
    longest: int | None = None  #: maximum number of words in a sentence
    first: int | None = None  #: number of sentences; None: all
    exact: int | None = None  #: number of sentences whose full distributions are compared; None: no comparison
    also: Sequence[Evaluator] = ()  #: further evaluators of each model
    vocabulary: Kind | None = None  #: kind of vocabulary to compare in; None: the default
    seed: int  #: seed of the intervals

    @classmethod
    def of(cls, options: Mapping[str, Any], seed: int) -> Scored:
        """Build from the options of a call; ``also`` is a comma-separated list of evaluators.

        Raises:
            InputError: there is no such evaluator.
        """
        also = [name.strip() for name in options.get("also", "").split(",") if name.strip()]
        return cls(**{**options, "also": further_evaluators(also)}, seed=seed)


def further_evaluators(names: Sequence[str]) -> list[Evaluator]:
    """Return evaluators by name; each must measure a model on a text.

    Raises:
        InputError: there is no such evaluator, or it measures something else.
    """
    from truesource.evaluation.evaluators import EVALUATORS

    fit = {each.name: each for each in EVALUATORS if each.measures}
    for name in names:
        if name not in fit:
            raise InputError(f"--evaluators takes {', '.join(fit)}, not {name!r}", code="unknown-evaluator")
    return [fit[name] for name in names]


def scores_of_models(
    texts: Sequence[str], oracle: Path | None, scored: Scored, baseline: str | None
) -> list[ModelScores]:
    """Load models and score them on the corpus, which is the last argument.

    Raises:
        InputError: there are fewer than two models, an unknown baseline, or a model or the text cannot be used.
    """
    corpus = _corpus(texts)
    models = named_models(texts[:-1])
    _check_models(models, baseline)
    from truesource.studies.compare.scoring import score_models

    setting = _setting(corpus, oracle, models, scored)
    scores = score_models(models, setting, scored.exact, scored.also, scored.vocabulary)
    _say_left_out(scores, setting, scored.exact)
    return scores


def models_on_real_text(
    texts: Sequence[str],
    drawn: LengthRange | None,
    oracle: Path | None,
    scored: Scored,
    given: Mapping[str, Any],
    baseline: str | None,
) -> tuple[dict[str, LanguageModel], Setting]:
    """Load models, the baseline first, and the real text, which is the last argument.

    Args:
        texts: the models, each with one seed, and last a file that `truesource split` wrote.
        drawn: range of lengths that its sentences were selected by.
        oracle: grammar of its treebank, as a reference; None: no reference.
        scored: the sentences, and the frame.
        given: options of the call that have a value.
        baseline: name of the model to compare the others with.

    Raises:
        InputError: an option needs a text whose truth is known, there is one model, a model has several seeds, an
            unknown baseline, or a model or the text cannot be used.
    """
    needless = [option for key, option in OF_A_TRUTH.items() if given.get(key) is not None]
    if needless:
        raise InputError(
            f"the true distribution of real text is not known, so {listed(needless)} cannot be computed; remove"
            f" {'it' if len(needless) == 1 else 'them'}",
            Path(texts[-1]),
            code="real-text",
        )
    models = named_models(texts[:-1])
    _check_models(models, baseline)
    several = [model.name for model in models if len(model.seeds) > 1]
    if several:
        raise InputError(
            f"{several[0]} has several seeds; on real text, give each another name, NAME=MODEL", code="repeated-name"
        )
    from truesource.lmtrain.models import load_model  # torch, after the quick checks
    from truesource.terminal.inputs import read_setting

    read = partial(read_setting, frame=scored.frame, seed=scored.seed, first=scored.first, longest=scored.longest)
    setting = read(Path(texts[-1]), scored.split, oracle or False, scored.lengths, drawn=drawn)
    first = baseline or models[0].name
    models.sort(key=lambda model: model.name != first)
    return {model.name: load_model(model.seeds[0].text) for model in models}, setting


def scores_of_variants(texts: Sequence[str], scored: Scored, baseline: str | None) -> list[ModelScores]:
    """Score models of a grammar and of its variants, each on its corpus with the truth of this corpus.

    Args:
        texts: ``CORPUS=MODEL`` for each model, and last the folder that `truesource sample --variant` made.
        scored: which sentences to score, the same for each corpus.
        baseline: name of the corpus to compare the others with.

    Raises:
        InputError: a model does not have the name of a corpus, there are models of fewer than two corpora, an
            unknown baseline, or a model or a corpus cannot be used.
    """
    folder = _corpus(texts)
    models = named_models(texts[:-1], several_texts=True)
    from truesource.generator.parallel_corpora import parallel_corpora

    corpora = parallel_corpora(folder)
    for model in models:
        if model.name not in corpora:
            raise InputError(
                f"{model.name} is not a corpus of {folder}{did_you_mean(model.name, corpora)}; name each model after"
                f" its training corpus, as in {corpora[0]}=MODEL; the corpora are {listed(corpora)}",
                code="unknown-corpus",
            )
    _check_models(models, baseline)
    from truesource.studies.compare.scoring import score_parallel

    settings = [_setting(folder / model.name, None, [model], scored) for model in models]
    scores_of_corpora = score_parallel(models, settings, scored.exact, scored.also, scored.vocabulary)
    for scores, setting in zip(scores_of_corpora, settings, strict=True):
        _say_left_out([scores], setting, scored.exact)
    return scores_of_corpora


def _corpus(texts: Sequence[str]) -> Path:
    """Return the corpus, which is the last argument of a call without runs."""
    for text in texts:
        if kind_of(Path(text)) == "run":
            raise InputError(
                f"{text} is the folder of a run; compare it with runs, without --oracle and corpus", code="no-model"
            )
    corpus = Path(texts[-1])
    if not corpus.exists():
        raise InputError(f"the last argument is the corpus or text, but there is no {corpus}", code="missing")
    return corpus


def _setting(corpus: Path, oracle: Path | None, models: Sequence[NamedModel], scored: Scored) -> Setting:
    """Read the text that models are scored on; warn of mismatches with the models."""
    from truesource.terminal.inputs import (
        announce_long,
        read_setting,
        requested_truth,
        require_truth,
        warn_of_other_corpus,
    )

    setting = read_setting(
        corpus,
        scored.split,
        requested_truth(oracle),
        scored.lengths,
        frame=scored.frame,
        seed=scored.seed,
        first=scored.first,
        longest=scored.longest,
        uncorrected="numbers in a common vocabulary, and the exact KL,",
    )
    require_truth(setting, corpus)
    for reference in (seed.text for model in models for seed in model.seeds):
        warn_of_other_corpus(reference, setting.text)
    announce_long(setting, masked=False)
    return setting


def _check_models(models: Sequence[NamedModel], baseline: str | None) -> None:
    """Refuse, before loading models, arguments that `truesource.studies.compare.scoring` would refuse later."""
    names = [model.name for model in models]
    if len(names) < 2:
        raise InputError(
            f"a comparison needs at least two models followed by the corpus, but got {listed(names) or 'no model'}"
            f"{' with several seeds' if names and len(models[0].seeds) > 1 else ''}; name another model",
            code="too-few-models",
        )
    if baseline is not None and baseline not in names:
        raise InputError(
            f"the baseline {baseline!r} is not a model; choose one of {listed(names)}", code="unknown-baseline"
        )


def _say_left_out(models: Sequence[ModelScores], setting: Setting, exact: int | None) -> None:
    """Name the models and sentences that have no scores."""
    from truesource.studies.compare.scoring import without_exact
    from truesource.terminal.inputs import say_left_out

    for sentence in without_exact(models, exact):
        echo(sentence, err=True)
    for model in models:
        for seed in model.seeds:
            if len(seed.paired.impossible_model):
                n = seed.paired.n_sentences
                echo(f"{seed.label} can make {n - len(seed.paired.impossible_model):,} of {n:,} sentences", err=True)
    say_left_out(setting, [], models[0].seeds[0].paired.impossible_oracle.tolist())
