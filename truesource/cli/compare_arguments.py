"""Arguments of `truesource compare`: models with a corpus and its grammar or with its variants, or runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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

#: options that need a text whose truth is known
OF_A_TRUTH = {"exact": "--exact-kl", "also": "--evaluators", "vocabulary": "--vocabulary", "figure": "--figure"}
OF_A_TRUTH |= {"columns": "--columns"}


@dataclass(frozen=True, kw_only=True)
class Scored:
    """The sentences of a corpus to score, and the frame."""

    split: str = "eval"  #: of a corpus folder
    frame: str = "default"  #: name of a preset
    lengths: str | None = None  #: condition of the truth; None: that of the corpus
    longest: int | None = None  #: most words of a sentence
    first: int | None = None  #: number of sentences; None: all
    exact: int | None = None  #: number of sentences whose full distributions are compared; None: of none
    also: Sequence[Evaluator] = ()  #: that measure each model too
    vocabulary: Kind | None = None  #: that models are compared in; None: the default
    seed: int  #: of intervals

    @classmethod
    def of(cls, options: Mapping[str, Any], seed: int) -> Scored:
        """Read the options that a call names; ``also`` is a list of names of evaluators.

        Raises:
            InputError: there is no such evaluator.
        """
        also = [name.strip() for name in options.get("also", "").split(",") if name.strip()]
        return cls(**{**options, "also": further_evaluators(also)}, seed=seed)


def further_evaluators(names: Sequence[str]) -> list[Evaluator]:
    """The evaluators of some names, which measure a model on a text and so can stand beside a comparison of models.

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
    """The models of references, scored on the corpus that is the last of the arguments.

    Raises:
        InputError: there are fewer than two models, an unknown baseline, or a model or the text cannot be used.
    """
    corpus = _corpus(texts)
    models = named_models(texts[:-1])
    _check_models(models, baseline)
    from truesource.studies.compare.scoring import score_models

    setting = _setting(corpus, oracle, models, scored)
    found = score_models(models, setting, scored.exact, scored.also, scored.vocabulary)
    _say_left_out(found, setting, scored.exact)
    return found


def models_on_real_text(
    texts: Sequence[str],
    drawn: LengthRange | None,
    oracle: Path | None,
    scored: Scored,
    given: Mapping[str, Any],
    baseline: str | None,
) -> tuple[dict[str, LanguageModel], Setting]:
    """The models of references, the baseline first, and the real text that is the last of the arguments.

    Args:
        texts: the models, each with one seed, and last a file that `truesource split` wrote.
        drawn: lengths that its sentences were selected by.
        oracle: grammar of its treebank, as a reference; None: no reference.
        scored: the sentences, and the frame.
        given: options of the call.
        baseline: name of the model that the others are compared with.

    Raises:
        InputError: an option needs a text whose truth is known, there is one model, a model has several seeds, an
            unknown baseline, or a model or the text cannot be used.
    """
    needless = [option for key, option in OF_A_TRUTH.items() if given.get(key) is not None]
    if needless:
        raise InputError(
            f"this is real text, whose truth is not known, so {listed(needless)} cannot be computed; remove"
            f" {'it' if len(needless) == 1 else 'them'}",
            Path(texts[-1]),
            code="real-text",
        )
    models = named_models(texts[:-1])
    _check_models(models, baseline)
    several = [model.name for model in models if len(model.seeds) > 1]
    if several:
        raise InputError(
            f"{several[0]} has several seeds; on real text, name each model apart, NAME=MODEL", code="repeated-name"
        )
    from truesource.lmtrain.models import load_model  # torch, after the quick checks
    from truesource.terminal.inputs import read_setting

    how: dict[str, Any] = {"first": scored.first, "longest": scored.longest, "drawn": drawn}
    setting = read_setting(
        Path(texts[-1]), scored.split, oracle or False, scored.lengths, frame=scored.frame, seed=scored.seed, **how
    )
    first = baseline or models[0].name
    models.sort(key=lambda model: model.name != first)
    return {model.name: load_model(model.seeds[0].text) for model in models}, setting


def scores_of_variants(texts: Sequence[str], scored: Scored, baseline: str | None) -> list[ModelScores]:
    """Models of a grammar and of its variants, each scored on its own corpus with the truth of that corpus.

    Args:
        texts: ``CORPUS=MODEL`` for each model, and last the folder that `truesource sample --variant` made.
        scored: the sentences, the same of each corpus.
        baseline: name of the corpus that the others are compared with.

    Raises:
        InputError: a model is not called as a corpus of the folder, there are models of fewer than two corpora, an
            unknown baseline, or a model or a corpus cannot be used.
    """
    folder = _corpus(texts)
    models = named_models(texts[:-1], several_texts=True)
    from truesource.generator.parallel_corpora import parallel_corpora

    corpora = parallel_corpora(folder)
    for model in models:
        if model.name not in corpora:
            raise InputError(
                f"{model.name} is not a corpus of {folder}{did_you_mean(model.name, corpora)}; call each model as the"
                f" corpus that it learned, as in {corpora[0]}=MODEL; the corpora are {listed(corpora)}",
                code="unknown-corpus",
            )
    _check_models(models, baseline)
    from truesource.studies.compare.scoring import score_parallel

    settings = [_setting(folder / model.name, None, [model], scored) for model in models]
    found = score_parallel(models, settings, scored.exact, scored.also, scored.vocabulary)
    for scores, setting in zip(found, settings, strict=True):
        _say_left_out([scores], setting, scored.exact)
    return found


def _corpus(texts: Sequence[str]) -> Path:
    """The corpus that is the last argument of a call without runs."""
    for text in texts:
        if kind_of(Path(text)) == "run":
            raise InputError(
                f"{text} is the folder of a run; compare runs alone, without --oracle and a corpus", code="no-model"
            )
    corpus = Path(texts[-1])
    if not corpus.exists():
        raise InputError(f"the last argument is the corpus or text, but there is no {corpus}", code="missing")
    return corpus


def _setting(corpus: Path, oracle: Path | None, models: Sequence[NamedModel], scored: Scored) -> Setting:
    """The text that models are scored on; what is odd about it or about the models is said."""
    from truesource.terminal.inputs import announce_long, asked_truth, read_setting, require_truth, warn_of_other_corpus

    setting = read_setting(
        corpus,
        scored.split,
        asked_truth(oracle),
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
    """Refuse before anything is loaded what `comparisons` (`truesource.studies.compare.scoring`) would refuse later."""
    names = [model.name for model in models]
    if len(names) < 2:
        raise InputError(
            f"a comparison takes two models or more and then the corpus, but there is {listed(names) or 'no model'}"
            f"{' with several seeds' if names and len(models[0].seeds) > 1 else ''}; name another model",
            code="too-few-models",
        )
    if baseline is not None and baseline not in names:
        raise InputError(
            f"there is no model {baseline!r} to be the baseline; there are {listed(names)}", code="unknown-baseline"
        )


def _say_left_out(models: Sequence[ModelScores], setting: Setting, exact: int | None) -> None:
    """Name the models and sentences without numbers that the call asks for."""
    from truesource.terminal.inputs import say_left_out

    without = [model.name for model in models if exact is not None and any(seed.exact is None for seed in model.seeds)]
    if without:
        reason = "it takes full distributions of the model, and a truth of tokens, not of sentences"
        echo(f"no exact KL of {listed(without)}: {reason}", err=True)
    for model in models:
        for seed in model.seeds:
            if len(seed.paired.impossible_model):
                n = seed.paired.n_sentences
                echo(f"{seed.label} can make {n - len(seed.paired.impossible_model):,} of {n:,} sentences", err=True)
    say_left_out(setting, [], models[0].seeds[0].paired.impossible_oracle.tolist())
