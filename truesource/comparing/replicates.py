"""Which trained models are seeds of one model: those whose records of training differ in nothing but the seed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from itertools import takewhile
from pathlib import Path

from truesource.grammar.support.files import digest_json
from truesource.lmtrain.training_record import FILE, read_training

#: keys of ``training.json`` that say how the training went, or what it left, not what was asked for
OUTCOMES = ("seed", "name", "final", "files", "versions", "steps", "step", "stopped_early")
_NUMBERED = re.compile(r"[-_. ]+(seed)?[-_. ]*\d*$")  #: how a name ends before the rest of a number


@dataclass(frozen=True)
class Training:
    """What a model was trained with."""

    settings: str  #: digest of all that was asked for but the seed
    seed: int


def training_of(folder: Path) -> Training | None:
    """The training of a model folder; None where there is no record of it, or none of its seed.

    Raises:
        InputError: the record is damaged.
    """
    if not (folder / FILE).is_file():
        return None
    record = read_training(folder).model_dump(mode="json")
    seed = record.get("seed")
    if not isinstance(seed, int):
        return None
    asked = {key: value for key, value in record.items() if key not in OUTCOMES}
    if isinstance(asked.get("model"), dict):
        asked["model"] = {key: value for key, value in asked["model"].items() if key != "name"}
    return Training(digest_json(asked), seed)


def are_replicates(trainings: list[Training | None]) -> bool:
    """Whether models were trained alike, each with a seed of its own."""
    known = [training for training in trainings if training is not None]
    settings, seeds = {training.settings for training in known}, {training.seed for training in known}
    return len(known) == len(trainings) == len(seeds) and len(settings) == 1


def common_name(names: list[str]) -> str:
    """``gpt2`` of ``gpt2-seed1`` and ``gpt2-seed2``: what all names begin with; the first where that is nothing."""
    same = (letters[0] for letters in takewhile(lambda letters: len(set(letters)) == 1, zip(*names, strict=False)))
    return _NUMBERED.sub("", "".join(same)) or names[0]
