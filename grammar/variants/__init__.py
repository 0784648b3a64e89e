"""Controlled variants: from a grammar P a grammar Q that differs in one aspect, with the exact divergence.

Changes are written as text: ``mirror=NP+VP``, ``zipf=1.2``, several joined by commas.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import replace

from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank.head_rules import HeadRules
from truesource.grammar.variants.change import (
    Chain,
    Change,
    DerivationDivergence,
    GrammarMeasures,
    RuleMap,
    Variant,
    measure,
)
from truesource.grammar.variants.structure import Ablation, Branching, Order, near
from truesource.grammar.variants.weights import Collapse, Sharpen, Temperature, Vocabulary, Zipf

ALL = "all"  #: every category
LONGEST_NAME = 80  #: most characters of a file name from a change

#: examples of all changes, for help
EXAMPLES = (
    "mirror=NP+VP",
    "head-initial=all",
    "head-final=all",
    "zipf=1.2",
    "sharpen=1.5",
    "temperature=0.8",
    "ablate=NP -> NP PP",
    "vocabulary=5000",
    "collapse=5000",
)

_NEXT = re.compile(r",(?=\s*[a-z][a-z-]*\s*=)")  # a comma may also be a label, as in NP -> NP ,


def parse_variant(text: str, heads: HeadRules | None = None) -> Change:
    """Read a change, or several joined by commas, which are applied in order.

    >>> parse_variant("mirror=NP+VP,zipf=1.2").spec
    'mirror=NP+VP,zipf=1.2'

    Args:
        text: the change.
        heads: heads for head-initial and head-final, before the heads of the grammar itself.

    Returns:
        A function of a grammar (and lengths) that returns a `Variant`.

    Raises:
        InputError: a change is unknown, or its value has the wrong type.
    """
    changes = tuple(_one(part) for part in _NEXT.split(text))
    if heads is not None:
        changes = tuple(replace(change, heads=heads) if isinstance(change, Branching) else change for change in changes)
    return changes[0] if len(changes) == 1 else Chain(changes)


def _one(text: str) -> Change:
    name, separator, value = (part.strip() for part in text.partition("="))
    if name not in _CHANGES:
        names = ", ".join(_CHANGES)
        alike = near(name, _CHANGES)
        hint = f"; {alike}" if alike.startswith("near") else ""
        raise InputError(f"there is no variant {name!r}{hint}; use one of {names}, written such as {EXAMPLES[0]}")
    if not separator or not value:
        example = next(example for example in EXAMPLES if example.startswith(f"{name}="))
        raise InputError(f"{name} needs a value, as in {example}")
    return _CHANGES[name](value)


def _branching(order: Order) -> Callable[[str], Change]:
    def parse(value: str) -> Change:
        names = tuple(dict.fromkeys(name for name in map(str.strip, value.split("+")) if name))
        return Branching(order, None if value == ALL else names)

    return parse


def _number(name: str, value: str) -> float:
    try:
        return float(value)
    except ValueError:
        raise InputError(f"{name} needs a number, got {value!r}") from None


def _whole(name: str, value: str) -> int:
    try:
        return int(value.replace("_", ""))
    except ValueError:
        raise InputError(f"{name} needs an integer number of words, got {value!r}") from None


_CHANGES: dict[str, Callable[[str], Change]] = {
    "mirror": _branching("mirror"),
    "head-initial": _branching("head-initial"),
    "head-final": _branching("head-final"),
    "zipf": lambda value: Zipf(_number("zipf", value)),
    "sharpen": lambda value: Sharpen(_number("sharpen", value)),
    "temperature": lambda value: Temperature(_number("temperature", value)),
    "ablate": lambda value: Ablation((value,)),
    "vocabulary": lambda value: Vocabulary(_whole("vocabulary", value)),
    "collapse": lambda value: Collapse(_whole("collapse", value)),
}


def file_names(specs: Sequence[str]) -> list[str]:
    """Return a file name for each change, valid on any file system and unique even without case."""
    names: list[str] = []
    taken = {"original"}
    for spec in specs:
        stem = re.sub(r"[^A-Za-z0-9.+]+", "-", spec)[:LONGEST_NAME].strip("-.")
        name, number = stem, 1
        while name.lower() in taken:
            number += 1
            name = f"{stem}-{number}"
        taken.add(name.lower())
        names.append(name)
    return names


__all__ = [
    "Ablation",
    "Branching",
    "Chain",
    "Change",
    "Collapse",
    "DerivationDivergence",
    "GrammarMeasures",
    "RuleMap",
    "Sharpen",
    "Temperature",
    "Variant",
    "Vocabulary",
    "Zipf",
    "measure",
    "parse_variant",
]
