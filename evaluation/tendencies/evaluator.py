"""The evaluator `tendencies`."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Literal, Self, get_args

from pydantic import Field, WithJsonSchema, model_validator

from truesource.evaluation.core.evaluator import Evaluator
from truesource.evaluation.tendencies import TendencySettings as Engine
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.settings import KeysOf, Settings
from truesource.lmtrain.decoding.settings import Decoding, Scheme

if TYPE_CHECKING:
    from truesource.evaluation.core.run_view import RunRequest


_SCHEME = WithJsonSchema({"enum": sorted(get_args(Scheme))})


class TendenciesSettings(Settings):
    """Samples of the causal models by several schemes, and their text; see docs/howto/tendencies.md."""

    advanced: ClassVar = frozenset({"chance", "permutations", "definitions"})
    yaml_only = frozenset({"schemes", "reference"})  # the verb is given samples, and --oracle or a text

    schemes: list[Annotated[str, _SCHEME] | Annotated[dict[str, Any], KeysOf(Decoding)]] = Field(
        ["ancestral", {"scheme": "nucleus", "top_p": 0.9}, {"scheme": "beam_sampling", "beams": 5}],
        description="Decoding schemes: a name, or a name with its settings.",
    )
    number: int = Field(2000, ge=20, description="Number of sentences to sample from each model.")
    reference: Literal["truth", "split"] = Field(
        "truth", description="Compare with the exact distribution (truth) or the sentences of the split."
    )
    chance: int = Field(Engine.chance, ge=19, description="Number of samples of the truth for null distributions.")
    permutations: int = Field(
        Engine.permutations, ge=19, description="Number of permutations of sentences, for a reference text."
    )
    stopwords: Path | None = Field(None, description="File of stopwords, one per line (default: English).")
    definitions: Literal["default", "paper"] = Field(
        "default", description="Definitions and tests: default, or paper (as published), for a reference text."
    )

    @model_validator(mode="after")
    def _schemes_are_known(self) -> Self:
        self.decodings()
        return self

    def decodings(self) -> dict[str, Decoding]:
        """Return the schemes by name, such as ``nucleus-0.9``.

        Raises:
            ValueError: one is unknown, two are the same, or the sentences of one are not independent.
        """
        decodings: dict[str, Decoding] = {}
        for scheme in self.schemes:
            record = {"scheme": scheme} if isinstance(scheme, str) else scheme
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
            if name in decodings:
                raise ValueError(f"schemes: {name} is given twice")
            decodings[name] = decoding
        if not decodings:
            raise ValueError("schemes: name one or more, such as ancestral")
        return decodings


def check(config: RunRequest) -> None:
    """Refuse a configuration without what the evaluator needs, by a ValueError."""
    settings = config.evaluation.of(TendenciesSettings)
    if settings.definitions == "paper" and settings.reference == "truth":
        raise ValueError("evaluation.tendencies.definitions: paper compares with a text, so it needs reference: split")


TENDENCIES = Evaluator(
    name="tendencies",
    title="What the text looks like",
    summary="Compare sampled text with the truth: lengths, words, Zipf's and Heaps' laws.",
    code=f"{__package__}.report",
    declared=False,
    of_corpus=False,
    settings=TendenciesSettings,
    kinds=("samples",),
)
