"""Does what few words tell of the next one predict how well a language is learned? The gallery, by exact losses.

``python benchmarks/local_entropy.py train [LANGUAGE ...]`` trains an LSTM on each language as ``gallery.py`` does a
GPT-2 (minutes each; a run that was stopped continues). ``python benchmarks/local_entropy.py`` prints, for every
language, the loss L_k of the best predictor that sees k words (its (k+1)-local entropy, Someya et al. 2025), the
entropy L and the exact KL of both models; then Spearman correlations of KL with L_k, and with L_k - L, with 95%
intervals from resampled languages.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path

import numpy as np
from scipy.stats import spearmanr

from truesource import PCFG
from truesource.generator.sampler import Sampler
from truesource.grammar.inference.windows import Windows
from truesource.grammar.languages import parse
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.atomic_files import write_json
from truesource.run import experiment

ROOT = Path(__file__).resolve().parents[1]
NUMBERS = ROOT / "docs" / "gallery" / "numbers.json"
LSTM = ROOT / "docs" / "gallery" / "lstm.json"  #: KL of the LSTM on each language
WORDS = 5  #: 0 to 4 words
LONGEST = 200  #: longer strings of a language without a length condition are left out
REPLICATES = 5000


def train(names: list[str], runs: Path) -> None:
    """Train an LSTM on each language, and keep its KL."""
    numbers = json.loads(NUMBERS.read_text())
    for name in names or numbers:
        settings = parse(name)[1].model_dump(mode="json", exclude_none=True)
        changes = [
            f"name=lstm-{name}",
            f"grammar={json.dumps({'language': parse(name)[0], **settings})}",
            'models.0={"name": "lstm", "preset": "tiny", "model": {"architecture": "lstm"},'
            ' "training": {"max_steps": 2000, "eval_every": 1000}}',
        ]
        config = experiment.load_config(ROOT / "data" / "gallery.yaml", changes)
        folder = experiment.execute(config, base=ROOT, runs=runs).parent
        records = json.loads((folder / "divergence" / "lstm.json").read_text())["records"]
        kept = json.loads(LSTM.read_text()) if LSTM.is_file() else {}
        kept[name] = next(record["value"] for record in records if record["name"] == "kl")
        write_json(LSTM, dict(sorted(kept.items())))


def losses(reference: str) -> list[float]:
    """L_0 to L_4 and the entropy, nats a token, on 300 strings of a language."""
    pcfg = PCFG.load(reference)
    sampler = Sampler(pcfg, None)
    drawn = [s for s in sampler.sentences(sampler.draw(300, random_state(1))) if len(s) <= LONGEST]
    windows = Windows(pcfg)
    rows = [windows.log_probs(drawn, k) for k in range(WORDS)] + [pcfg.exact.causal_log_probs(drawn)]
    return [-float(np.concatenate(row).mean()) for row in rows]


def correlation(x: np.ndarray, y: np.ndarray) -> str:
    """Spearman's rho with percentiles of resampled languages."""
    rng = np.random.default_rng(1)
    drawn = rng.integers(0, len(x), (REPLICATES, len(x)))
    rho = [spearmanr(x[i], y[i]).statistic for i in drawn if len(set(i.tolist())) > 2]
    low, high = np.nanpercentile(rho, [2.5, 97.5])
    return f"{spearmanr(x, y).statistic:5.2f} [{low:5.2f}, {high:5.2f}]"


def table() -> None:
    """Print losses, divergences and correlations."""
    numbers = json.loads(NUMBERS.read_text())
    lstm = json.loads(LSTM.read_text()) if LSTM.is_file() else {}
    found = {name: losses(record["language"]) for name, record in numbers.items()}
    heads = [*(f"L_{k}" for k in range(WORDS)), "L", "GPT-2", "LSTM"]
    print(f"{'language':18}", *(f"{head:>7}" for head in heads))
    for name, row in found.items():
        kl = numbers[name]["kl"]["value"], lstm.get(name, np.nan)
        print(f"{name:18}", *(f"{value:7.3f}" for value in row), *(f"{value:7.4f}" for value in kl))
    for model, kls in (("GPT-2", {n: r["kl"]["value"] for n, r in numbers.items()}), ("LSTM", lstm)):
        names = [name for name in found if name in kls]
        if len(names) < 5:
            continue
        y, values = np.array([kls[name] for name in names]), np.array([found[name] for name in names])
        print(f"\n{model}, {len(names)} languages: Spearman's rho of KL and")
        for k in range(WORDS):
            print(
                f"  L_{k}: {correlation(values[:, k], y)}   L_{k} - L: {correlation(values[:, k] - values[:, -1], y)}"
            )


def main() -> None:
    """Train, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", nargs="?", choices=["train", "table"], default="table")
    parser.add_argument("languages", nargs="*")
    parser.add_argument("--runs", type=Path, default=Path("runs"))
    given = parser.parse_args()
    if given.what == "train":
        train(given.languages, given.runs)
    else:
        table()


if __name__ == "__main__":
    main()
