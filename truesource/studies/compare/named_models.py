"""The models of a call: references with or without a name, seeds of one model together."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import takewhile

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import expand_user
from truesource.lmtrain.references import ModelReference, model_reference
from truesource.lmtrain.training_record import Training, are_replicates, model_name, training_of

_NUMBERED = re.compile(r"[-_. ]+(seed)?[-_. ]*\d*$")  #: end of a name before a number
ORACLE = "oracle"  #: name of the truth in tables
_NAMED = re.compile(r"([A-Za-z0-9][\w.+-]*)=(.+)", re.DOTALL)


def common_name(names: list[str]) -> str:
    """Return the common beginning of names, ``gpt2`` of ``gpt2-seed1`` and ``gpt2-seed2``, or else the first name."""
    same = (letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))
    return _NUMBERED.sub("", "".join(same)) or names[0]


@dataclass(frozen=True)
class NamedReference:
    """A model that a call names."""

    text: str  #: the reference as given, without the name
    reference: ModelReference
    training: Training | None  #: of a folder that records it


@dataclass(frozen=True)
class NamedModel:
    """A name, and one or more references that are its seeds."""

    name: str
    seeds: Sequence[NamedReference]


def named_models(texts: Sequence[str], *, several_texts: bool = False) -> list[NamedModel]:
    """Read ``REFERENCE`` and ``NAME=REFERENCE``; nothing is loaded, and no code is run.

    References of one name are its seeds. Folders without a name that were trained alike with different seeds are one
    model, named by the common beginning of their names.

    Args:
        texts: the references, with or without a name.
        several_texts: each name belongs to a text of its own, so a reference may occur once for each.

    Raises:
        InputError: a reference names no model, or is given twice; or a model has the name of the truth.
    """
    groups: list[tuple[str | None, list[NamedReference]]] = []
    for text in texts:
        name, named = _read(text)
        place = next((seeds for called, seeds in groups if _belongs(name, named, called, seeds)), None)
        if place is None:
            groups.append((name, [named]))
        else:
            place.append(named)
    for seeds in [each for _, each in groups] if several_texts else [[seed for _, each in groups for seed in each]]:
        _refuse_repeats(seeds)
    proposed = [name or _default_name(seeds) for name, seeds in groups]
    names = [
        seeds[0].text if name is None and (proposed.count(proposal) > 1 or proposal == ORACLE) else proposal
        for proposal, (name, seeds) in zip(proposed, groups, strict=True)
    ]
    return [NamedModel(name, seeds) for name, (_, seeds) in zip(names, groups, strict=True)]


def _read(text: str) -> tuple[str | None, NamedReference]:
    named = None if expand_user(text).exists() else _NAMED.fullmatch(text)
    name, rest = (None, text) if named is None else named.groups()
    if name == ORACLE:
        raise InputError(f"{ORACLE} is the name of the truth in the table; give {rest} another", code="repeated-name")
    reference = model_reference(rest)
    training = None if reference.folder is None else training_of(reference.folder)
    return name, NamedReference(rest, reference, training)


def _belongs(name: str | None, found: NamedReference, called: str | None, seeds: Sequence[NamedReference]) -> bool:
    """Return True if a reference is a seed of an already named model."""
    if name is not None or called is not None:
        return name == called
    return are_replicates([seed.training for seed in (*seeds, found)])


def _refuse_repeats(seeds: Sequence[NamedReference]) -> None:
    seen: set[str] = set()
    for seed in seeds:
        folder = seed.reference.folder
        place = seed.text if folder is None else f"{seed.reference.code}@{folder.resolve()}"
        if place in seen:
            raise InputError(f"{seed.text} is given twice; a model is compared with others", code="repeated-name")
        seen.add(place)


def _default_name(seeds: Sequence[NamedReference]) -> str:
    names = [seed.text if seed.reference.folder is None else model_name(seed.reference.folder) for seed in seeds]
    return names[0] if len(names) == 1 else common_name(names)
