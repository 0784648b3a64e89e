"""What can be set of the evaluator `tendencies`."""

from __future__ import annotations

from typing import Any, Literal, Self

from pydantic import Field, model_validator

from truesource.grammar.errors import InputError
from truesource.grammar.settings import Settings
from truesource.lmtrain.decoding.settings import Decoding


class TendenciesSettings(Settings):
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
