"""The corpus, sampled from the grammar."""

from __future__ import annotations

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, field_validator, model_validator

from truesource.generator.plan import Columns, Overlap, Plan, Transform, parse_transform
from truesource.grammar.support.settings import Settings
from truesource.run.lengths import Lengths

SPLITS = {"train": 40_000, "dev": 1000, "test": 1000, "eval": 1000}


class CorpusSettings(Settings):
    """The settings of a corpus, in a configuration and on the command line."""

    advanced: ClassVar = frozenset({"shard_size", "stratified"})
    overlap: Overlap | None = Field(
        None, description="Splits: iid (default); disjoint (no sentence of an earlier split); unique (none twice)."
    )
    trees: Literal["ids", "text", "none"] = Field(
        "ids", description="Store derivations as node numbers (ids), as Penn bracketings (text), or not (none)."
    )
    shard_size: int = Field(50_000, ge=1, description="Sentences per file; the sampled sentences depend on it.")
    transform: str | None = Field(
        None, description="Reorder words: reversal, odd-even, block-shuffle:size=3, length-shuffle:seed=0."
    )
    stratified: bool | None = Field(
        None, description="For a tilted grammar: sample exactly the expected number of sentences with its event."
    )

    @field_validator("transform")
    @classmethod
    def _known(cls, text: str | None) -> str | None:
        return None if text is None else str(parse_transform(text))

    @property
    def words_order(self) -> Transform | None:
        """Return the transform; None for the order of the grammar."""
        return None if self.transform is None else parse_transform(self.transform)


class CorpusConfig(CorpusSettings):
    """The corpus of a configuration."""

    lengths: Lengths = Field(
        None, description="Numbers of words that sentences may have, such as 6..25; none: all lengths of the grammar."
    )
    splits: dict[Annotated[str, Field(pattern=r"^[A-Za-z0-9_]+$")], Annotated[int, Field(ge=1)]] = Field(
        SPLITS, description="Splits by name, and the number of sentences of each."
    )
    workers: int = Field(1, ge=1, description="Number of processes that sample; the text is the same for any number.")

    @field_validator("overlap")
    @classmethod
    def _has_a_truth(cls, overlap: Overlap | None) -> Overlap | None:
        if overlap == "unique":
            raise ValueError(
                "models are compared with the truth, but the truth of a text without repetition is unknown;"
                " use iid or disjoint"
            )
        return overlap

    @model_validator(mode="after")
    def _strata_are_independent(self) -> Self:
        if self.stratified and self.overlap not in (None, "iid"):
            raise ValueError("stratified needs overlap: iid; remove one of the two")
        return self

    def plan(self, seed: int) -> Plan:
        """Return the plan of the corpus."""
        return Plan(
            self.splits,
            seed,
            self.lengths,
            self.overlap or "iid",
            columns=Columns(trees=self.trees),
            shard_size=self.shard_size,
            transform=self.words_order,
            stratified=bool(self.stratified),
        )

    def as_inputs(self) -> dict[str, object]:
        """Return the settings that decide the text, for ids; newer settings only if they differ from their default."""
        settings = self.model_dump(mode="json", exclude={"workers"})
        if settings["transform"] is None:
            del settings["transform"]
        if not settings["stratified"]:
            del settings["stratified"]
        if settings["overlap"] in (None, "iid"):
            del settings["overlap"]
        settings["trees"] = {"ids": True, "none": False}.get(settings["trees"], settings["trees"])
        return settings


class SampleSettings(CorpusSettings):
    """The further settings of `truesource sample`."""

    advanced: ClassVar = frozenset({"exact_correction", "start", "max_height", "string_logprob", "ids"})
    exact_correction: bool = Field(False, description="Disjoint splits: sum the excluded probability exactly.")
    start: str | None = Field(None, description="Symbol to expand (default: the grammar's start symbol).")
    temperature: float = Field(1.0, description="Temperature of rules: below 1, frequent rules gain probability.")
    max_height: int | None = Field(None, ge=2, description="Reject trees higher than this (changes the language).")
    string_logprob: bool = Field(False, description="Also write the exact log probability of each sentence (slow).")
    ids: bool = Field(False, description="Also write the tokens as numbers.")
