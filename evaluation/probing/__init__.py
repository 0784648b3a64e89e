"""Probes: their labels from the exact grammar, and their quality."""

from __future__ import annotations

from typing import ClassVar, Literal

from pydantic import Field

from truesource.grammar.support.settings import Settings

By = Literal["type", "position"]
Kind = Literal["tag", "state", "span"]
Given = Literal["sentence", "left"]
Truth = Literal["argmax", "sampled"]
Control = Literal["tokens", "split", "none"]


class ProbeSettings(Settings):
    """The settings of probes: training, splits and measures."""

    advanced: ClassVar = frozenset({"soft", "split_by", "control", "mdl"})
    soft: bool = Field(True, description="Train on the exact posterior; otherwise only on the right label.")
    split_by: By = Field(
        "type", description="Test on new word types, or on another part of the text (position: 80/10/10)."
    )
    control: Control = Field(
        "tokens", description="Split for selectivity: tokens (by position), split (as --split-by), or none."
    )
    mdl: bool = Field(True, description="Measure the minimum description length.")
