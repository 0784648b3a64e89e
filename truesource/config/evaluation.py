"""The part of a configuration that says what is measured."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from truesource.config.section import Section
from truesource.config.tokenisation import TokenisationConfig
from truesource.evaluation.dynamics.derivations import Tags
from truesource.evaluation.pairs.settings import PHENOMENA
from truesource.evaluation.pairs.settings import PairSettings as PairSettings
from truesource.grammar.errors import InputError
from truesource.lmtrain.decoding.settings import Decoding


class TendenciesConfig(Section):
    """Samples of the causal models by several decoding schemes, and what their text looks like; docs/tendencies.md."""

    #: a scheme with its settings, or its bare name; see `truesource.lmtrain.decoding.settings.Decoding`
    schemes: list[str | dict[str, Any]] = [
        "ancestral", {"scheme": "nucleus", "top_p": 0.9}, {"scheme": "beam_sampling", "beams": 5}
    ]  # fmt: skip
    sentences: int = Field(2000, ge=20)  #: to draw by each model and scheme
    reference: Literal["truth", "split"] = "truth"  #: the exact distribution, or the sentences of ``evaluation.split``
    chance: int = Field(999, ge=19)  #: samples of the truth that show what chance does; p is 1 / (1 + chance) or more
    permutations: int = Field(999, ge=19)  #: of sentences, with ``reference: split``
    stopwords: str | None = None  #: file, one word a line, relative to the configuration; None: an English list

    @model_validator(mode="after")
    def _schemes_are_known(self) -> Self:
        self.decodings()
        return self

    def decodings(self) -> dict[str, Decoding]:
        """The schemes by name, such as ``nucleus-0.9``.

        Raises:
            ValueError: one is unknown, two are the same, or the sentences of one are not independent.
        """
        found: dict[str, Decoding] = {}
        for given in self.schemes:
            record = {"scheme": given} if isinstance(given, str) else given
            name = "-".join([str(record.get("scheme")), *(f"{v}" for k, v in record.items() if k != "scheme")])
            try:
                decoding = Decoding.from_record(record)
            except (InputError, TypeError) as error:
                raise ValueError(f"schemes: {error}") from error
            if decoding.at_most > 1:
                raise ValueError(
                    "schemes: sentences of one beam are not independent, as all tests need; leave out keep"
                )
            if decoding.scheme == "beam":
                raise ValueError("schemes: beam search always gives the same sentence; take beam_sampling")
            if name in found:
                raise ValueError(f"schemes: {name} stands twice")
            found[name] = decoding
        if not found:
            raise ValueError("schemes: name one or more, such as ancestral")
        return found


class PairsConfig(Section):
    """Minimal pairs from the grammar, and what the models prefer; see docs/pairs.md."""

    number: int | None = Field(None, ge=1)  #: at most so many pairs of each phenomenon; None: 200, or all of ``file``
    phenomena: list[str] | None = None  #: None: all, or all of ``file``
    tries: int = Field(10, ge=1)  #: at most so many sentences are drawn for each pair wanted
    tolerance: float = Field(0.5, gt=0.0, allow_inf_nan=False)  #: nats between frequencies of exchanged words, at most
    attached: float = Field(0.8, ge=0.5, lt=1.0)  #: posterior from which an attachment is nearly sure
    possible: bool = False  #: only pairs of which the grammar can make both sentences
    forms: str | None = None  #: file of forms that differ in number, relative to the configuration; None: English ones
    file: str | None = None  #: pairs to score in place of drawn ones, JSON lines, relative to the configuration

    @model_validator(mode="after")
    def _settings_fit(self) -> Self:
        if self.file is None:
            try:
                PairSettings(phenomena=PHENOMENA if self.phenomena is None else tuple(self.phenomena))
            except InputError as error:
                raise ValueError(str(error)) from error
            return self
        fields = type(self).model_fields
        told = [n for n in ("tolerance", "tries", "attached", "forms") if getattr(self, n) != fields[n].default]
        if told:
            names, they, them = " and ".join(told), *(("is", "it") if len(told) == 1 else ("are", "them"))
            raise ValueError(f"{names} {they} for making pairs, and file has them made; leave {them} out")
        return self


class ProbeConfig(Section):
    """Linear probes on the layers of the networks, against the exact posterior; see docs/probing.md."""

    targets: list[Literal["tag", "state", "span"]] = Field(["tag"], min_length=1)
    sentences: int | None = Field(1000, ge=3)  #: the first so many of the split that is evaluated; None: all
    checkpoints: Literal["last", "all"] = "all"  #: all: also the snapshots of models that kept some
    split_by: Literal["type", "position"] = "type"  #: no word type is in two parts; or 80/10/10 of the text
    soft: bool = True  #: train on the exact posterior; false: on the right label alone
    right: Literal["argmax", "sampled"] = "argmax"  #: the most probable label, or that of a tree drawn
    control: Literal["tokens", "split", "none"] = "tokens"  #: split on which selectivity is measured
    mdl: bool = True  #: also the minimum description length
    correlations: bool = True  #: of probe and word probabilities
    pieces: Literal["last", "mean"] = "last"  #: of models of pieces: what stands for a word


class DynamicsConfig(Section):
    """What models with snapshots learn when, beside the truth; see docs/dynamics.md."""

    by: list[Literal["class", "length", "position", "frequency", "depth"]] = Field(
        ["class", "length", "position", "frequency", "depth"], min_length=1
    )
    tags: Tags = "expected"  #: posterior shares of each token, or tags of one derivation: ``paper`` or ``drawn``
    classes: str | None = None  #: file that maps tags to classes, relative to the configuration; None: Penn tags
    threshold: float = Field(0.2, gt=0.0, allow_inf_nan=False)  #: nats a token below which a class counts as learned
    contexts: int = Field(2000, ge=0)  #: positions for the exact divergence, about; 0: none
    sentences: int | None = Field(None, ge=2)  #: the first so many of the split; None: as all of the evaluation


class DivergenceConfig(Section):
    """All that the models expect beside all that the truth expects; see docs/models.md."""

    sentences: int = Field(300, ge=2)  #: the first so many of the split that is evaluated
    top: int = Field(10, ge=1)  #: size of the sets of most probable words


class NaturalnessConfig(Section):
    """The corpus beside held-out trees: word frequencies, sentence lengths, n-grams; needs a treebank."""

    sentences: int = Field(10_000, ge=2)  #: of each source, at most


class EvaluationConfig(Section):
    """What is compared with the truth."""

    split: str = "eval"
    sentences: int | None = Field(None, ge=1)  #: the first so many of the split; None: all
    frame: Literal["default", "paper"] = "default"
    naturalness: NaturalnessConfig | None = None  #: None: the corpus is not compared with trees
    divergence: DivergenceConfig | None = None  #: None: no full distributions are compared
    tokenisation: TokenisationConfig | None = None  #: None: one way to cut each text, the tokeniser's
    tendencies: TendenciesConfig | None = None  #: None: no text is drawn from the models
    pplu: bool = False  #: also perplexities over those of word frequencies
    pairs: PairsConfig | None = None  #: None: no minimal pairs
    dynamics: DynamicsConfig | None = None  #: None: no snapshots are measured
    probe: ProbeConfig | None = None  #: None: the layers of the models are not probed

    @model_validator(mode="after")
    def _sets_have_names(self) -> Self:
        from truesource.tokenisation_sets import check_set_names

        if self.tokenisation is not None and self.tokenisation.also:
            try:
                check_set_names([self.split, *self.tokenisation.also])
            except InputError as error:
                raise ValueError(f"tokenisation.also: {error}") from error
        return self
