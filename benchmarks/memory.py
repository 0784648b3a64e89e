"""What small models memorise: membership by the number of repetitions, and bits a parameter.

    python benchmarks/memory.py [--part membership|capacity|both] [--out runs/memory]

Two tables and two figures, some 20 minutes on one core.

**Membership.** A GPT-2 is trained on a text in which equal parts of different sentences stand 1, 4, 16 and 64 times
(`truesource.evaluation.memory.measure.repeated`), and measured on them and on as many fresh sentences of the same
language: AUROC of the ratio of its probability to the exact one, and memorised bits. The truth as a model is beside it.

**Capacity** (Morris et al. 2025). N strings of 16 words, each of 64 with equal probability, so that the entropy is
known: 96 bits a string. Nothing can be learned of others. Memorised bits are N H - sum of -log2 q(x) after training;
no more than N (H - log2 N), since N strings in any order can be told by which of them comes next. For growing N the
bits rise and then stay: the plateau, in bits a parameter, is beside the 3.6 of Morris et al. A run of twice as many
steps at the plateau says how far from converged it is.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np

from truesource.evaluation.core.oracle import Oracle
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.memory.measure import Memorisation, memory, repeated
from truesource.evaluation.show.figures import MODEL, QUIET, SERIES, TRUTH, figure, to_svg, write_figure
from truesource.generator.language_model import LanguageModel, ScoringFrame
from truesource.generator.sampler import Sampler
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.languages import parse
from truesource.grammar.pcfg import PCFG
from truesource.grammar.pcfg import language as language_of
from truesource.grammar.support.arrays import random_state
from truesource.lmtrain.config import TrainConfig
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.models import load_model
from truesource.lmtrain.training import train

SEED = 1
TIMES = (1, 4, 16, 64)
PART = 300  #: different sentences of each number of repetitions, and fresh ones
LENGTHS = LengthRange(6, 15)
WORDS, LENGTH = 64, 16  #: of random strings
ENTROPY = LENGTH * np.log2(WORDS)  #: bits of a string
WIDTHS = (8, 12, 16)
NUMBERS = (16, 32, 64, 128, 256, 512, 1024)
MORRIS = 3.6  #: bits a parameter
Sentences = Sequence[Sequence[str]]


def trained(text: Sentences, width: int, training: TrainConfig, longest: int) -> tuple[LanguageModel, int]:
    """A GPT-2 of two layers, and its parameters."""
    shape: dict[str, Any] = {"layers": 2, "dim": width, "heads": 2, "dropout": 0.0, "init_std": width**-0.5}
    with tempfile.TemporaryDirectory() as folder:
        out = Path(folder) / "model"
        train(text, model_settings(architecture="gpt2", max_positions=longest + 2, **shape), training, out, seed=SEED)
        parameters = json.loads((out / "training.json").read_text("utf-8"))["parameters"]
        return load_model(str(out)), int(parameters)


def schedule(rate: float, **duration: Any) -> TrainConfig:
    """No weight decay, which forgets; a rate that ends at 0."""
    rare = {"eval_every": 10**6, "checkpoint_every": 10**6}
    return TrainConfig(batch_tokens=2048, learning_rate=rate, weight_decay=0.0, **rare, **duration)


def membership(name: str, epochs: float, out: Path) -> None:
    """Print AUROC and bits by repetitions, and draw them."""
    chosen, settings = parse(name)
    pcfg = language_of(chosen, **settings.model_dump(mode="json", exclude_none=True))
    assert isinstance(pcfg, PCFG)
    sampler = Sampler(pcfg, LENGTHS)
    drawn = sampler.sentences(sampler.draw(20 * PART, random_state(SEED)))
    different = list(dict.fromkeys(map(tuple, drawn)))
    order = np.random.default_rng(SEED).permutation(len(different))[: (len(TIMES) + 1) * PART].tolist()
    fresh, *own = ([different[i] for i in order[at : at + PART]] for at in range(0, len(order), PART))  # drawn alike
    text = repeated([sentence for part in own for sentence in part], TIMES, SEED)
    began = time.process_time()
    model, parameters = trained(text.sentences, 64, schedule(3e-3, epochs=epochs), LENGTHS.high)
    seconds = time.process_time() - began
    setting = Setting(pcfg, fresh, LENGTHS, seed=SEED)
    found = memory(model, setting, text.sentences)
    truth = memory(Oracle(pcfg, lengths=LENGTHS, vocabulary=model.vocabulary), setting, text.sentences)
    print(f"\nMembership: {model.name} of {parameters:,} parameters, {name} given {LENGTHS}, {epochs:g} epochs of")
    print(f"{len(text.sentences):,} sentences ({seconds:.0f} s of CPU); {PART} fresh sentences, mean ratio")
    print(f"{found.scores['ratio_fresh'].value:.2f} bits\n")
    heads = ("sentences", "AUROC", "95%", "memorised", "gap", "AUROC, truth")
    print(f"{'repetitions':12}", *(f"{head:>14}" for head in heads))
    for part, scores in found.groups.items():
        area, kept, gap = scores["auroc"], scores["memorised"], scores["gap"]
        known = f"{area.low:.3f}..{area.high:.3f}" if area.low is not None else "-"
        exact = f"{truth.groups[part]['auroc'].value:14.3f}"
        counted = f"{found.repetitions[part]:14d} {area.value:14.3f} {known:>14}"
        print(f"{part:12} {counted} {kept.value:14.2f} {gap.value:14.2f} {exact}")
    print(f"{'fresh':12} {PART:14d} {0.5:14.3f} {'':14} {found.scores['memorised_fresh'].value:14.2f} {0.0:14.2f}")
    write_figure(out / "memory_membership.svg", lambda: membership_figure(found, truth))


def membership_figure(found: Memorisation, truth: Memorisation) -> str:
    """AUROC by repetitions, and memorised bits."""
    with figure(8.4, 3.4, "membership") as drawn:
        attack, bits = drawn.subplots(1, 2)
        names, places = list(found.groups), list(range(len(found.groups)))
        scores = [group["auroc"] for group in found.groups.values()]
        attack.vlines(places, [s.low for s in scores], [s.high for s in scores], color=MODEL, alpha=0.6)
        attack.plot(places, [s.value for s in scores], color=MODEL, marker="o", markersize=4, label="GPT-2")
        exact = [group["auroc"].value for group in truth.groups.values()]
        attack.plot(places, exact, color=TRUTH, marker="o", markersize=4, label="the truth")
        attack.set_ylabel("AUROC, training against fresh")
        attack.set_ylim(0.4, 1.03)
        scores = [group["memorised"] for group in found.groups.values()]
        bits.vlines(places, [s.low for s in scores], [s.high for s in scores], color=MODEL, alpha=0.6)
        bits.plot(places, [s.value for s in scores], color=MODEL, marker="o", markersize=4, label="training sentences")
        floor = found.scores["memorised_fresh"].value
        bits.axhline(floor, color=QUIET, linestyle=(0, (4, 3)), linewidth=1.2, label="fresh sentences")
        bits.set_ylim(bottom=0.0)
        bits.set_ylabel("memorised, bits a sentence")
        for axes in (attack, bits):
            axes.set_xticks(places, names)
            axes.set_xlabel("repetitions in the training text")
            axes.grid(axis="y")
            axes.legend(loc="upper left", bbox_to_anchor=(0.0, 0.95))
        return to_svg(drawn, "membership", "AUROC and memorised bits by the number of repetitions")


def stored(width: int, number: int, steps: int) -> tuple[float, int]:
    """Bits that a model memorises of so many random strings, and its parameters."""
    rng = np.random.default_rng([SEED, number])
    strings = [[f"w{i}" for i in row] for row in rng.integers(0, WORDS, (number, LENGTH)).tolist()]
    model, parameters = trained(strings, width, schedule(2e-2, max_steps=steps), LENGTH)
    scores = model.score(strings, ScoringFrame())
    assert len(scores.impossible) == 0
    return number * ENTROPY + float(scores.log_prob.sum()) / np.log(2.0), parameters


def capacity(steps: int, widths: Sequence[int], numbers: Sequence[int], out: Path) -> None:
    """Print memorised bits by the number of strings, and draw them."""
    print(f"\nCapacity: N strings of {ENTROPY:.0f} bits, GPT-2 of two layers, {steps:,} steps of 2,048 tokens or all\n")
    print(f"{'N':>6} {'most':>9}", *(f"{f'width {width}':>10}" for width in widths), flush=True)
    curves: dict[int, list[float]] = {width: [] for width in widths}
    parameters: dict[int, int] = {}
    for number in numbers:
        for width in widths:
            bits, parameters[width] = stored(width, number, steps)
            curves[width].append(bits)
        row = (f"{curves[width][-1]:10,.0f}" for width in widths)
        print(f"{number:6,d} {number * (ENTROPY - np.log2(number)):9,.0f}", *row, flush=True)
    print(
        f"\n{'width':>6} {'parameters':>11} {'plateau':>9} {'at N':>6} {'bits a parameter':>17} {'twice the steps':>16}"
    )
    for width in widths:
        best = int(np.argmax(curves[width]))
        longer = stored(width, numbers[best], 2 * steps)[0] / parameters[width]
        each = curves[width][best] / parameters[width]
        counts = f"{parameters[width]:11,d} {curves[width][best]:9,.0f} {numbers[best]:6,d}"
        print(f"{width:6d} {counts} {each:17.2f} {longer:16.2f}", flush=True)
    print(f"Morris et al. (2025): {MORRIS} bits a parameter")
    write_figure(out / "memory_capacity.svg", lambda: capacity_figure(numbers, curves, parameters))


def capacity_figure(numbers: Sequence[int], curves: dict[int, list[float]], parameters: dict[int, int]) -> str:
    """Memorised bits, and bits a parameter, by the number of strings."""
    with figure(8.8, 3.6, "capacity") as drawn:
        bits, each = drawn.subplots(1, 2)
        x = np.array(numbers, dtype=np.float64)
        top = 1.6 * max(max(values) for values in curves.values())
        bits.plot(
            x, x * (ENTROPY - np.log2(x)), color=QUIET, linestyle=(0, (4, 3)), linewidth=1.3, label="most possible"
        )
        for number, (width, values) in enumerate(curves.items()):
            label = f"{parameters[width]:,} parameters"
            bits.plot(x, values, color=SERIES[number], marker="o", markersize=4, label=label)
            each.plot(x, np.array(values) / parameters[width], color=SERIES[number], marker="o", markersize=4)
        bits.set_yscale("log")
        bits.set_ylim(0.8 * min(min(values) for values in curves.values()), top)
        ticks = [tick for tick in (1000, 2000, 5000, 10_000, 20_000, 50_000, 100_000) if tick < top]
        bits.set_yticks(ticks, [f"{tick:,}" for tick in ticks])
        bits.set_ylabel("memorised, bits")
        bits.legend(loc="lower right")
        each.axhline(MORRIS, color=TRUTH, linestyle=(0, (4, 3)), linewidth=1.3, label="Morris et al. (2025)")
        each.set_ylim(0.0, 1.1 * MORRIS)
        each.set_ylabel("memorised, bits a parameter")
        each.legend(loc="lower right", bbox_to_anchor=(1.0, 0.78))
        for axes in (bits, each):
            axes.set_xscale("log", base=2)
            axes.set_xticks(x, [f"{n:,}" for n in numbers])
            axes.minorticks_off()
            axes.set_xlabel("random strings")
            axes.grid(axis="y")
        return to_svg(drawn, "capacity", "Memorised bits of random strings by their number")


def main() -> None:
    """Measure, print and draw."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--part", choices=["membership", "capacity", "both"], default="both")
    parser.add_argument("--language", default="english:size=small", help="of membership")
    parser.add_argument("--epochs", type=float, default=2.0, help="of membership")
    parser.add_argument("--steps", type=int, default=4000, help="of capacity")
    parser.add_argument("--widths", type=int, nargs="+", default=WIDTHS, help="of capacity")
    parser.add_argument("--numbers", type=int, nargs="+", default=NUMBERS, help="strings of capacity")
    parser.add_argument("--out", type=Path, default=Path("runs/memory"))
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    if options.part != "capacity":
        membership(options.language, options.epochs, options.out)
    if options.part != "membership":
        capacity(options.steps, options.widths, options.numbers, options.out)


if __name__ == "__main__":
    main()
