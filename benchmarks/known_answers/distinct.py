"""Draw, for each text of the kit, how far apart its conventions and mistakes are.

    python benchmarks/known_answers/distinct.py FILE.png

A cell is the relative difference of two numbers that an evaluation can give; the test of the kit demands 1 %.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib import pyplot as plt

from truesource import known_answers


def differences(values: np.ndarray) -> np.ndarray:
    """Return the relative difference of every two numbers, in percent."""
    return 100.0 * (np.maximum.outer(values, values) / np.minimum.outer(values, values) - 1.0)


def main() -> None:
    """Draw, and print the nearest pair of each text."""
    texts = known_answers().detail.texts
    figure, panels = plt.subplots(2, 4, figsize=(10.5, 5.4), layout="constrained")
    image: Any = None
    for axes in panels.flat[len(texts) :]:
        axes.axis("off")
    print("| text | conventions | mistakes | nearest pair | apart by |\n|---|---|---|---|---|")
    for axes, (name, text) in zip(panels.flat, texts.items(), strict=False):
        answers = sorted(text.answers, key=lambda answer: (answer.kind, answer.value))
        apart = differences(np.array([answer.value for answer in answers]))
        image = axes.imshow(np.log10(np.maximum(apart, 0.1)), cmap="viridis", vmin=-1, vmax=3)
        kinds = [sum(answer.kind == kind for answer in answers) for kind in ("convention", "mistake")]
        axes.set_title(f"{name}\n{kinds[0]} conventions, {kinds[1]} mistakes", fontsize=8)
        for line in (axes.axhline, axes.axvline):
            line(kinds[0] - 0.5, color="white", linewidth=0.8)
        axes.set_xticks([])
        axes.set_yticks([])
        np.fill_diagonal(apart, np.inf)
        one, other = np.unravel_index(int(apart.argmin()), apart.shape)
        pair = " / ".join(answers[int(i)].name.split(" = ")[0] for i in (one, other))
        print(f"| {name} | {kinds[0]} | {kinds[1]} | {pair} | {apart.min():.2f} % |")
    bar = figure.colorbar(image, ax=panels, shrink=0.7, ticks=range(-1, 4))
    bar.ax.set_yticklabels(["0.1 %", "1 %", "10 %", "100 %", "1,000 %"])
    bar.set_label("apart by")
    figure.savefig(Path(sys.argv[1]), dpi=110)


if __name__ == "__main__":
    main()
