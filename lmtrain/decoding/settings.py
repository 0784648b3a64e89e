"""Settings of sampling text from a model: one object with everything that could change its distribution."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Literal, Self, get_args

from pydantic import ConfigDict, Field, ValidationError, model_validator

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.records import explain
from truesource.grammar.support.settings import Settings

Sampling = Literal["ancestral", "nucleus", "top_k", "typical", "eta", "epsilon"]
Beams = Literal["beam_sampling", "beam_sampling_fairseq", "beam_sampling_hf", "beam"]
Scheme = Literal[Sampling, Beams]
Keep = Literal["best", "all"]

SAMPLING: tuple[str, ...] = get_args(Sampling)
BEAMS: tuple[str, ...] = get_args(Beams)
UNLIMITED = 200  #: most tokens of a sentence if neither the model nor the user sets a limit (as in fairseq)

#: the setting that a scheme needs, and an example of it
_NEEDED = {
    "nucleus": ("top_p", 0.9),
    "top_k": ("top_k", 50),
    "typical": ("typical_p", 0.95),
    "eta": ("eta", 0.0003),
    "epsilon": ("epsilon", 0.0003),
}


def _defaults(scheme: object) -> dict[str, str | float]:
    """Return the default settings of a scheme; for beams as in Meister & Cotterell (2021)."""
    if scheme in SAMPLING:
        return {"temperature": 1.0}
    shared: dict[str, str | float] = {"beams": 5, "length_penalty": 1.0, "keep": "best"}
    return shared | ({"dedupe": True} if scheme == "beam_sampling" else {})


class Decoding(Settings):
    """A decoding scheme with its settings; those that do not belong to the scheme are refused, not ignored.

    Token by token, each sentence by itself (``p`` is the model's distribution of the next token with ``<pad>``,
    ``<bos>`` and ``<mask>`` left out and the rest in proportion; ``temperature`` raises it to the power 1/temperature
    first, and what is left out is chosen after that, as transformers orders it):

    - ``ancestral``: from ``p``.
    - ``nucleus``: from the smallest set of tokens with mass ``top_p`` or more (Holtzman et al. 2020).
    - ``top_k``: from the ``top_k`` most probable tokens (Fan et al. 2018).
    - ``typical``: from the smallest set of mass ``typical_p`` or more whose information is nearest to the entropy
      (locally typical sampling, Meister et al. 2023).
    - ``eta``: from the tokens of probability ``min(eta, sqrt(eta) * exp(-entropy))`` or more (Hewitt et al. 2022).
    - ``epsilon``: from the tokens of probability ``epsilon`` or more (the same).

    If tokens tie for the last place of a set, lower numbers come first. The most probable token is always in the set.

    With ``beams`` = k hypotheses, which compete by ``ln p / tokens ** length_penalty`` (the end of the sentence is a
    token); ``keep`` the best of them, or all:

    - ``beam_sampling``: Meister & Cotterell 2021. k tokens are drawn from ``p`` for each hypothesis, from one empty
      hypothesis at the start; of all candidates, those drawn twice merged unless ``dedupe`` is False, the k of highest
      ``ln p`` remain. Those that end leave the beam, until k have ended.
    - ``beam_sampling_fairseq``: what fairseq does under ``--sampling --beam k``, which that paper takes for its own: k
      independent sentences.
    - ``beam_sampling_hf``: ``generate(num_beams=k, do_sample=True)`` of transformers. 2k pairs of hypothesis and token
      are drawn without replacement from all, in proportion to their probability; of those not ended the k of highest
      ``ln p`` remain; those ended are candidates for the result when among the first k drawn.
    - ``beam``: beam search as in transformers, nothing drawn; there is one result (k with ``keep="all"``).

    A sentence not ended after ``max_tokens`` tokens is cut there and flagged; as a hypothesis, its score counts the
    token that was one too many.

    Raises:
        ValidationError: a setting is missing, out of range, or not one of the scheme.
    """

    advanced: ClassVar = frozenset({"typical_p", "eta", "epsilon", "length_penalty", "keep", "dedupe"})
    model_config = ConfigDict(strict=True, allow_inf_nan=False)

    scheme: Scheme = Field("ancestral", description="Decoding scheme.")
    temperature: float | None = Field(
        None, gt=0, description="Schemes without beams: temperature, applied before truncation (default: 1)."
    )
    top_p: float | None = Field(None, gt=0, le=1, description="Scheme nucleus: mass of the smallest set kept.")
    top_k: int | None = Field(None, ge=1, description="Scheme top_k: number of most probable tokens kept.")
    typical_p: float | None = Field(None, gt=0, le=1, description="Scheme typical: mass of the locally typical set.")
    eta: float | None = Field(None, gt=0, lt=1, description="Scheme eta: the parameter eta, such as 0.0003.")
    epsilon: float | None = Field(None, gt=0, lt=1, description="Scheme epsilon: smallest probability of a token kept.")
    beams: int | None = Field(None, ge=1, description="Schemes with beams: number of hypotheses (default: 5).")
    length_penalty: float | None = Field(
        None, ge=0, description="Schemes with beams: exponent of the length that divides a score (default: 1)."
    )
    keep: Keep | None = Field(None, description="Schemes with beams: hypotheses kept of each beam (default: best).")
    dedupe: bool | None = Field(None, description="Scheme beam_sampling: merge equal candidates (default: yes).")
    max_tokens: int | None = Field(
        None, ge=1, description="Maximum number of words in a sentence (default: the model's limit, or 200)."
    )

    @model_validator(mode="before")
    @classmethod
    def _fill_in(cls, values: Any) -> Any:
        if not isinstance(values, Mapping):
            return values
        settings = {name: value for name, value in values.items() if value is not None}
        return {**_defaults(settings.get("scheme", "ancestral")), **settings}

    @model_validator(mode="after")
    def _settings_fit_the_scheme(self) -> Self:
        needed, example = _NEEDED.get(self.scheme, (None, None))
        if needed is not None and getattr(self, needed) is None:
            raise ValueError(f"the scheme {self.scheme} needs {needed}, such as {example}")
        foreign = self.as_record().keys() - {"scheme", "max_tokens", needed, *_defaults(self.scheme)}
        if foreign:
            raise ValueError(f"the scheme {self.scheme} has no setting {min(foreign)}; remove it")
        return self

    # -- derived values ----------------------------------------------------------------------------------

    @property
    def width(self) -> int:
        """Hypotheses of a sentence: rows that the network runs for it."""
        return self.beams or 1

    @property
    def at_most(self) -> int:
        """Sentences kept of one run of the scheme."""
        return self.width if self.keep == "all" else 1

    @property
    def most(self) -> int:
        """``max_tokens`` of a decoding that has been fitted to a model by `within`."""
        if self.max_tokens is None:
            raise ValueError("this decoding has no max_tokens yet; call within(longest)")
        return self.max_tokens

    def within(self, longest: int | None) -> Decoding:
        """Set ``max_tokens`` for a model that takes ``longest`` words, or any number (None).

        Raises:
            InputError: ``max_tokens`` is more than the model takes.
        """
        if self.max_tokens is None:
            return self.model_copy(update={"max_tokens": UNLIMITED if longest is None else longest})
        if longest is not None and self.max_tokens > longest:
            raise InputError(f"max_tokens is {self.max_tokens}, but the model takes 1 to {longest} words")
        return self

    def as_record(self) -> dict[str, str | float | None]:
        """Return the settings of the scheme, for a JSON file; `from_record` reads them."""
        return self.model_dump(exclude_none=True)

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Decoding:
        """Return the scheme with the settings of a record.

        Raises:
            InputError: a setting is unknown, missing, out of range, or not one of the scheme.
        """
        try:
            return cls.model_validate(record)
        except ValidationError as error:
            raise InputError(explain(error, model=cls)) from error

    def __str__(self) -> str:
        """Return the signature, such as ``nucleus|temperature:1|top_p:0.9|max_tokens:127``."""
        settings = {name: value for name, value in self.as_record().items() if name != "scheme"}
        parts = [f"{k}:{v:g}" if isinstance(v, float) else f"{k}:{str(v).lower()}" for k, v in settings.items()]
        return "|".join([self.scheme, *parts])
