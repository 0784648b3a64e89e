"""The figure of docs/howto/control.md on frequency, from the runs of one row.

truesource reproduce frequency-intervention --runs runs
python benchmarks/frequency.py runs docs/images/frequency.svg
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import numpy as np
from documents import Record, study

from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, figure, to_svg, write_figure
from truesource.studies.reproduce.quantities import mean_of_seeds
from truesource.studies.reproduce.studies.construction import TIMES


def interval(records: list[Record], **wanted: Any) -> tuple[float, float, float]:
    """Mean over seeds of the records with these fields, and its interval."""
    found = [each for each in records if all(each.get(key) == value for key, value in wanted.items())]
    mean = mean_of_seeds({each["seed"]: each["value"] for each in found})
    assert mean.value is not None and mean.low is not None and mean.high is not None
    return mean.value, mean.low, mean.high


def draw(runs: Path) -> str:
    """KL inside a construction and elsewhere by its frequency, beside words of that frequency."""
    set_to = {times: study(runs / f"snaebjarnarson2026-m{times}") for times in TIMES}
    natural = study(runs / "snaebjarnarson2026-natural")
    with figure(7.6, 4.4, "frequency") as drawn:
        axes = drawn.subplots()
        lines = (
            ("kl_within", TRUTH, "after “that”, set to this frequency"),
            ("kl_elsewhere", QUIET, "other sentences"),
        )
        for name, color, label in lines:
            value, low, high = np.array([interval(records, name=name) for records in set_to.values()]).T
            axes.plot(TIMES, value, "-o", markersize=4, color=color, label=label)
            axes.vlines(TIMES, low, high, color=color, alpha=0.6)
        events = dict.fromkeys((each["event"], each["per_100000"]) for each in natural if each["name"] == "kl_within")
        own = [interval(natural, name="kl_within", event=event) for event, _ in events]
        axes.plot(
            [times for _, times in events], [value for value, _, _ in own], "x", color=MODEL, label="after other words"
        )
        line = [interval(natural, name="kl_correlated", times=times)[0] for times in TIMES]
        axes.plot(TIMES, line, ":", color=SECOND, label="what these suggest")
        axes.set_xscale("log")
        axes.set_yscale("log")
        axes.set_xlabel("sentences with the word, of 100,000 (logarithmic)")
        axes.set_ylabel("KL(P‖Q), nats a token (logarithmic)")
        axes.grid(axis="y")
        axes.legend()
        return to_svg(drawn, "frequency", "KL inside a construction by how often it occurs")


if __name__ == "__main__":
    write_figure(Path(sys.argv[2]), lambda: draw(Path(sys.argv[1])))
