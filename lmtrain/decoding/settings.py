"""How text is drawn from a model: one object that says everything which could change its distribution."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, Literal, get_args

from truesource.grammar.errors import InputError

Sampling = Literal["ancestral", "nucleus", "top_k", "typical", "eta", "epsilon"]
Beams = Literal["beam_sampling", "beam_sampling_fairseq", "beam_sampling_hf", "beam"]
Scheme = Literal[Sampling, Beams]
Keep = Literal["best", "all"]

SAMPLING: tuple[str, ...] = get_args(Sampling)
BEAMS: tuple[str, ...] = get_args(Beams)
UNLIMITED = 200  #: most tokens of a sentence where neither the model nor the user sets a limit (as in fairseq)

#: the setting that a scheme cannot do without, and an example of it
_NEEDED = {
    "nucleus": ("top_p", 0.9),
    "top_k": ("top_k", 50),
    "typical": ("typical_p", 0.95),
    "eta": ("eta", 0.0003),
    "epsilon": ("epsilon", 0.0003),
}
#: what each setting of a beam is when it is not given; (5, Meister & Cotterell 2021)
_OF_BEAMS: dict[str, Any] = {"beams": 5, "length_penalty": 1.0, "keep": "best"}


@dataclass(frozen=True)
class Decoding:
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
    - ``epsilon``: from those of probability ``epsilon`` or more (the same).

    Where tokens tie for the last place of a set, those with lower numbers are in it. The most probable token is always
    in it.

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
        InputError: a setting is missing, out of range, or not one of the scheme.
    """

    scheme: Scheme = "ancestral"
    temperature: float | None = None  #: above 0; 1 where a scheme takes it and it is not given
    top_p: float | None = None  #: above 0, at most 1
    top_k: int | None = None  #: 1 or more
    typical_p: float | None = None  #: above 0, at most 1
    eta: float | None = None  #: above 0, below 1
    epsilon: float | None = None  #: above 0, below 1
    beams: int | None = None  #: 1 or more; 5 where a scheme takes it and it is not given
    length_penalty: float | None = None  #: 0 or more; 1 likewise
    keep: Keep | None = None  #: ``best`` likewise
    dedupe: bool | None = None  #: of ``beam_sampling`` only, True where it is not given
    max_tokens: int | None = None  #: words of a sentence; None: what the model takes, see `within`

    def __post_init__(self) -> None:
        if self.scheme not in (*SAMPLING, *BEAMS):
            raise InputError(f"unknown decoding {self.scheme!r}; there are {', '.join((*SAMPLING, *BEAMS))}")
        needed, example = _NEEDED.get(self.scheme, (None, None))
        if needed is not None and getattr(self, needed) is None:
            raise InputError(f"{self.scheme} decoding needs {needed}, such as {example}")
        defaults = {"temperature": 1.0} if self.scheme in SAMPLING else dict(_OF_BEAMS)
        if self.scheme == "beam_sampling":
            defaults["dedupe"] = True
        for name, value in defaults.items():
            if getattr(self, name) is None:
                object.__setattr__(self, name, value)
        allowed = {"scheme", "max_tokens", needed, *defaults}
        for field in fields(self):
            if field.name not in allowed and getattr(self, field.name) is not None:
                raise InputError(f"{field.name} is no setting of {self.scheme} decoding; leave it out")
        self._check_ranges()

    def _check_ranges(self) -> None:
        for name in ("top_p", "typical_p"):
            _check(name, getattr(self, name), "above 0 and at most 1", lambda x: 0.0 < x <= 1.0)
        for name in ("eta", "epsilon"):
            _check(name, getattr(self, name), "above 0 and below 1", lambda x: 0.0 < x < 1.0)
        _check("temperature", self.temperature, "above 0", lambda x: 0.0 < x < math.inf)
        _check("length_penalty", self.length_penalty, "0 or more", lambda x: 0.0 <= x < math.inf)
        for name in ("top_k", "beams", "max_tokens"):
            _check(name, getattr(self, name), "a whole number from 1 on", lambda x: x >= 1 and x == int(x))
        if self.keep not in (None, *get_args(Keep)):
            raise InputError(f"keep is best or all, got {self.keep!r}")

    # -- what follows from it -----------------------------------------------------------------------------

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
        """The same with ``max_tokens`` set for a model that takes ``longest`` words, or any number (None).

        Raises:
            InputError: ``max_tokens`` is more than the model takes.
        """
        if self.max_tokens is None:
            return replace(self, max_tokens=UNLIMITED if longest is None else longest)
        if longest is not None and self.max_tokens > longest:
            raise InputError(f"max_tokens is {self.max_tokens}, but the model takes 1 to {longest} words")
        return self

    def as_record(self) -> dict[str, Any]:
        """The settings of the scheme, for a JSON file; `from_record` reads them."""
        return {name: value for name, value in asdict(self).items() if value is not None}

    @classmethod
    def from_record(cls, record: Mapping[str, Any]) -> Decoding:
        """The decoding that ``record`` tells of.

        Raises:
            InputError: it tells of something else.
        """
        unknown = set(record) - {field.name for field in fields(cls)}
        if unknown:
            raise InputError(f"a decoding has no {', '.join(sorted(unknown))}")
        return cls(**record)

    def __str__(self) -> str:
        """The signature, such as ``nucleus|temperature:1|top_p:0.9|max_tokens:127``."""
        settings = {name: value for name, value in self.as_record().items() if name != "scheme"}
        parts = [f"{k}:{v:g}" if isinstance(v, float) else f"{k}:{str(v).lower()}" for k, v in settings.items()]
        return "|".join([self.scheme, *parts])


def _check(name: str, value: Any, wanted: str, holds: Any) -> None:
    if value is None:
        return
    number = isinstance(value, int | float) and not isinstance(value, bool)
    if not (number and math.isfinite(value) and holds(value)):
        raise InputError(f"{name} is {wanted}, got {value!r}")
