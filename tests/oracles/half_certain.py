"""A language to train tiny networks on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np


def language(n: int, seed: int) -> list[list[str]]:
    """(a b | c d)+ with one of three ends: what follows is half certain."""
    rng = np.random.default_rng(seed)
    return [
        [w for pair in rng.integers(2, size=rng.integers(1, 4)) for w in (["a", "b"], ["c", "d"])[pair]]
        + [str(rng.choice([".", "!", "?"]))]
        for _ in range(n)
    ]


@dataclass(frozen=True)
class Source:
    """A corpus of it, as training sees one."""

    train: int = 300  #: sentences
    dev: int = 40  #: sentences

    @property
    def splits(self) -> tuple[str, ...]:
        return ("train", "dev")

    def sentences(self, split: str) -> list[list[str]]:
        return {"train": language(self.train, 0), "dev": language(self.dev, 1)}[split]
