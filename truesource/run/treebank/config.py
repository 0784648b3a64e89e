"""The treebank of a configuration."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import ConfigDict, Field, model_validator
from pydantic.dataclasses import dataclass as checked

from truesource.grammar.support.settings import Settings, field_description, none_as_null
from truesource.grammar.treebank.normalise import Normalisation
from truesource.run.lengths import Lengths

STRICT = ConfigDict(extra="forbid")


@checked(config=STRICT, frozen=True)
class _Normalisation(Normalisation):
    """Normalisation settings with validation; the length range is text."""

    lengths: Annotated[Lengths, Field(description=field_description(Normalisation, "lengths"))] = None

    @model_validator(mode="before")
    @classmethod
    def _none_is_a_value(cls, values: Any) -> Any:
        return none_as_null(vars(cls)["__pydantic_fields__"], values)


class DatasetSource(Settings):
    """Trees in a column of a dataset that `datasets` can load from disk."""

    path: str = Field(description="Folder of the dataset, relative to the configuration.")
    column: str = Field("tree", description="Column with a Penn bracketing in each row.")
    split: str | None = Field(None, description="Split to read, if the dataset has several.")


class TreebankConfig(Settings):
    """Source of the trees: exactly one of ``embedded``, ``files``, ``nltk`` and ``dataset``."""

    advanced: ClassVar = frozenset({"limit"})
    embedded: Literal["english", "english:size=medium", "english:size=small"] | None = Field(
        None, description="Sample trees from the embedded English grammar, or from a smaller version of it."
    )
    sentences: int = Field(
        4000, ge=1, description="Number of trees to sample from the embedded grammar, held-out ones included."
    )
    files: str | list[str] | None = Field(
        None, description="Penn bracketings: a file, folder, glob, or a list of these; relative to the configuration."
    )
    nltk: str | None = Field(None, description="Treebank that NLTK has installed, such as treebank.")
    dataset: DatasetSource | None = Field(None, description="Trees in a column of a dataset on disk.")
    held_out_files: str | list[str] | None = Field(
        None, description="Files of held-out trees (default: the share held_out of the treebank)."
    )
    held_out: float = Field(
        0.05, ge=0.0, lt=0.9, description="Share of the trees to hold out, chosen at random, if there are no files."
    )
    limit: int | None = Field(None, ge=1, description="Maximum number of trees to use.")
    normalise: _Normalisation = Field(_Normalisation(), description="Changes to every tree before use.")

    @model_validator(mode="after")
    def _one_source(self) -> Self:
        sources = [name for name in ("embedded", "files", "nltk", "dataset") if getattr(self, name) is not None]
        if len(sources) != 1:
            raise ValueError(
                f"set exactly one of embedded, files, nltk and dataset, got {', '.join(sources) or 'none'}"
            )
        for name in ("files", "nltk", "held_out_files"):
            value = getattr(self, name)
            if value is not None and (not value or "" in [*value]):
                raise ValueError(f"{name} is empty; name a treebank there, or remove the key")
        return self
