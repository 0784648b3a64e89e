"""What figures of the report show, and that all of it lies inside their frames."""

from __future__ import annotations

import json
import re
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest

from truesource.evaluation.divergence import report as divergence
from truesource.evaluation.naturalness import report as figures_naturalness
from truesource.evaluation.naturalness.compare import compare_naturalness
from truesource.evaluation.show.figures import figure, to_svg
from truesource.evaluation.show.words import command_line, file_names
from truesource.evaluation.tendencies import report as tendencies
from truesource.grammar.pcfg import PCFG
from truesource.run.grammar.section import possible_held_out, spectrum_figure, trace_figure


def row(group: int, sentences: int, value: float, *, each: int = 1) -> dict[str, Any]:
    """The record of a divergence at a position or length."""
    place = {"by": "position", "group": str(group), "tokens": float(sentences * each)}
    return {**place, "name": "kl", "value": value, "low": 0.9 * value, "high": 1.5 * value}


def inside(axes: Any) -> bool:
    """Whether every point of every curve, bar and band lies within the limits."""
    low, high = axes.get_ylim()
    ends = [line.get_ydata() for line in axes.get_lines()]
    ends += [[bar.get_height()] for bar in axes.patches]
    ends += [path.vertices[:, 1] for band in axes.collections for path in band.get_paths()]
    values = np.concatenate([np.asarray(end, dtype=np.float64) for end in ends])
    return bool((values >= low - 1e-12).all() and (values <= high + 1e-12).all())


def test_a_divergence_that_grows_stays_in_its_frame() -> None:
    rows = [row(position, 60, 0.01 * 1.5**position) for position in range(20)]
    with figure(4, 4, "x") as drawn:
        divergence._places(drawn, {"records": [{"name": "kl", "value": 0.03}]}, [("position", rows)])
        (axes,) = drawn.axes
        assert inside(axes) and len(axes.get_lines()[-1].get_xdata()) == 20


@pytest.mark.parametrize(
    ("by", "objective", "each"), [("position", "causal", 1), ("length", "causal", 6), ("length", "masked", 5)]
)
def test_few_sentences_have_no_place_in_a_figure(by: str, objective: str, each: int) -> None:
    found = {"objective": objective}
    rows = [{**row(5, n, 1.0, each=each), "by": by} for n in (1, 9, 10, 11)]
    assert [divergence._drawn(found, by, each) for each in rows] == [False, False, True, True]
    assert not divergence._drawn(found, by, {**rows[-1], "name": "js"})


@pytest.fixture(scope="module")
def natural() -> Any:
    """Texts of which the second has one length far more often than any other has."""
    rng = np.random.default_rng(0)
    words = [f"w{i}" for i in range(30)]

    def text(lengths: list[int]) -> list[list[str]]:
        return [list(rng.choice(words, n)) for n in lengths]

    spread = [int(n) for n in rng.integers(2, 9, 200)]
    texts = {"trees": text(spread), "raw": text(spread), "peak": text([3] * 200)}
    return compare_naturalness(texts, "trees", seed=1)


@pytest.fixture(scope="module")
def shown(natural: Any) -> Any:
    """What is drawn of them, read back from JSON."""
    return json.loads(json.dumps(figures_naturalness.drawn_of(natural), allow_nan=False))


def test_no_panel_of_lengths_loses_a_point(shown: Any) -> None:
    with figure(9, 4, "x") as drawn:
        figures_naturalness._lengths(drawn, shown)
        panels = [axes for axes in drawn.axes if axes.get_visible()]
        assert len(panels) == 2 and all(map(inside, panels))
        assert max(axes.get_lines()[0].get_ydata().max() for axes in panels) == 1.0


def test_n_grams_are_drawn_as_shares_that_are_shared(natural: Any, shown: Any) -> None:
    with figure(9, 4, "x") as drawn:
        figures_naturalness._ngrams(drawn, shown)
        (axes,) = drawn.axes
        heights = [bar.get_height() for bar in axes.patches]
        scores = [natural.scores[s].get(f"ngram_shared_tokens_{n}") for s in ("raw", "peak") for n in range(1, 5)]
        wanted = [score.value for score in scores if score is not None]
        assert len(wanted) > 4 and heights == wanted and min(heights) >= 0.0 and max(heights) <= 1.0 and inside(axes)


@pytest.mark.long
def test_the_held_out_trees_of_each_step_are_counted() -> None:
    trace = [
        {
            "cycle": 1,
            "phase": "split",
            "log_likelihood": -3.0,
            "held_out": -4.0,
            "held_out_impossible": n,
            "substates": 3,
        }
        for n in (7, 5, 6)
    ]
    assert possible_held_out(trace, 10) == [3, 5, 4]
    assert possible_held_out(trace, None) is None
    assert possible_held_out([{**trace[0], "held_out_impossible": None}, *trace], 10) is None
    drawn, plain = trace_figure(trace, 10), trace_figure(trace)
    assert drawn is not None and plain is not None
    assert "held-out trees that the grammar can make" in drawn and drawn.count("axes_") > plain.count("axes_")


def test_phases_are_in_the_legend_and_cycles_above_them() -> None:
    trace = [
        {"cycle": cycle, "phase": phase, "log_likelihood": -3.0, "substates": 3}
        for cycle in range(1, 7)
        for phase, steps in (("split", 12), ("merge", 3), ("smooth", 2))
        for _ in range(steps)
    ]
    drawn = trace_figure([{**trace[0], "cycle": 0, "phase": "start"}, *trace])
    assert drawn is not None
    texts = re.findall(r"<text[^>]*>([^<]*)</text>", drawn)
    assert [texts.count(phase) for phase in ("start", "split", "merge", "smooth")] == [0, 1, 1, 1]
    assert [text for text in texts if text.startswith("cycle")] == [f"cycle {cycle}" for cycle in range(1, 7)]


def test_the_legend_of_the_rules_is_outside_the_axes() -> None:
    drawn = ElementTree.fromstring(spectrum_figure(PCFG.from_text("S -> S S 0.3 | 'a' 0.7")))
    groups = [element for element in drawn.iter() if "axes_1" in element.get("id", "")]
    assert len(groups) == 1
    inside = [element.get("id", "") for element in groups[0].iter()]
    legends = [name for element in drawn.iter() if "legend_1" in (name := element.get("id", ""))]
    assert len(legends) == 1 and legends[0] not in inside


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        ("/home/me/my bank/wsj_00.mrg, ../b.mrg", "wsj_00.mrg, ../b.mrg"),
        ("/x/{a,b}/*.mrg.gz", "*.mrg.gz"),
        ("C:\\\\banks\\\\a.mrg", "a.mrg"),
        ("sampled from the embedded English grammar", "sampled from the embedded English grammar"),
    ],
)
def test_folders_of_a_treebank_are_not_printed(text: str, wanted: str) -> None:
    assert file_names(text) == wanted


@pytest.mark.parametrize(
    ("text", "wanted"),
    [
        (
            "truesource run '/a/my b/toy.yaml' --runs=/scratch/me/runs --set x=3/4",
            "truesource run toy.yaml --runs=runs --set x=3/4",
        ),
        ("truesource run ~/toy.yaml it's", "truesource run toy.yaml 'it'\"'\"'s'"),
    ],
)
def test_folders_of_a_command_are_not_printed(text: str, wanted: str) -> None:
    assert command_line(text) == wanted


def test_what_chance_never_gives_is_no_multiple_of_it() -> None:
    record = {"name": "symbols_ks", "value": 0.25, "chance_high": 0.0, "p": 0.5, "draws": 19, "signature": ""}
    assert tendencies._multiple(record, tendencies._far(record)) == "by chance there is no difference at all"
    assert tendencies._multiple({**record, "chance_high": 0.1}, 2.5).startswith("KS 2.5 times the 97.5% quantile")
    types = {"name": "types", "value": 4.0, "chance_mean": 4.0, "chance_low": 4.0, "chance_high": 4.0}
    assert tendencies._far(types) == 0.0 and tendencies._far({**types, "value": 3.0}) == float("inf")


def test_a_figure_is_the_same_text_whatever_the_last_digits_of_its_layout() -> None:
    """The solver of the layout finds them in another way each time; nothing that is written may depend on them."""
    texts = []
    for shift in (0.0, 1e-13):
        with figure(4, 4, "x") as drawn:
            drawn.set_layout_engine("none")
            for left in (0.1, 0.6):
                axes = drawn.add_axes((left + shift, 0.1, 0.3, 0.8 - shift))
                axes.plot([0, 1], [0, 1], marker="o")
                axes.fill_between([0, 1], [0, 1])
            texts.append(to_svg(drawn, "x", "title"))
    assert texts[0] == texts[1]
    made = re.findall(r'\bid="([^"]+)"', texts[0])
    assert len(set(made)) == len(made) and all(name.startswith("x-") for name in made)
    used = re.findall(r'(?:url\(#|href="#)([^")]+)', texts[0])
    assert len({name for name in used if name.startswith("x-p")}) == 2
    assert set(used) <= set(made)
