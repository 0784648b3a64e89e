"""What all parts of a configuration have in common."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, model_validator

log = logging.getLogger("truesource")


class Section(BaseModel):
    """Unknown keys are refused; keys of earlier versions are read under their new names, with a warning."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    renamed: ClassVar[Mapping[str, str]] = {}  #: earlier name of a key: its name now

    @model_validator(mode="before")
    @classmethod
    def _read_earlier_names(cls, values: Any) -> Any:
        earlier = cls.renamed.keys() & values.keys() if isinstance(values, Mapping) else ()
        for old in sorted(earlier):
            new = cls.renamed[old]
            if new in values:
                raise ValueError(f"{old} is the earlier name of {new}; give only {new}")
            log.warning("the configuration key %s is now called %s", old, new)
        return {cls.renamed.get(key, key): value for key, value in values.items()} if earlier else values
