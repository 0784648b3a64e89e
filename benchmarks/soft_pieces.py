"""Exact soft targets of pieces against hard targets, at equal steps on equal sentences, over several seeds.

    python benchmarks/soft_pieces.py --seeds 5

A GPT-2 of BPE pieces is trained twice per seed from the same weights on the same sentences: on the pieces that
occurred, and on the exact distribution of each next piece. The divergence per word is on held-out sentences.
"""

from __future__ import annotations

import argparse
import time
from typing import Any

import numpy as np
import torch
from scipy import stats
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import truesource as ts
from truesource.evaluation.core.setting import Setting
from truesource.evaluation.divergence.compare import compare_distributions
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.truth import Truth
from truesource.lmtrain.in_memory import model_of
from truesource.lmtrain.subwords import build_subword_tokenizer
from truesource.lmtrain.truth import ExactTargets, endless, kl_to_truth

LENGTHS = LengthRange(4, 15)
BATCH, DIM = 32, 64


def network(tokenizer: PreTrainedTokenizerFast, seed: int) -> GPT2LMHeadModel:
    """Return an untrained GPT-2."""
    torch.manual_seed(seed)
    return GPT2LMHeadModel(
        GPT2Config(
            vocab_size=len(tokenizer), n_positions=128, n_embd=DIM, n_layer=2, n_head=2, resid_pdrop=0.0,
            embd_pdrop=0.0, attn_pdrop=0.0, bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id,
        )
    )  # fmt: skip


def train(model: GPT2LMHeadModel, targets: ExactTargets, truth: Truth, seed: int, steps: int, soft: bool) -> None:
    """Train on exact distributions, or on the pieces that occurred."""
    optimiser = torch.optim.AdamW(model.parameters(), lr=6e-3, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, 6e-3, total_steps=steps, pct_start=0.1)
    for _, sentences in zip(range(steps), endless(truth, batch=BATCH, seed=seed, lengths=LENGTHS), strict=False):
        batch = targets.batch(sentences)
        output = model(input_ids=batch["input_ids"], labels=None if soft else batch["labels"])
        loss = kl_to_truth(output.logits, batch["target_probs"]) if soft else output.loss
        optimiser.zero_grad()
        loss.backward()
        optimiser.step()
        schedule.step()


def main() -> None:
    """Train, measure and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--language", default="english:size=small")
    parser.add_argument("--pieces", type=int, default=300)
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seeds", type=int, default=5)
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    truth: Any = ts.language(arguments.language)
    text = next(endless(truth, batch=4000, seed=99, lengths=LENGTHS))
    tokenizer = build_subword_tokenizer(text, "bpe", arguments.pieces)
    setting = Setting(truth, text[:200], lengths=LENGTHS)
    targets = ExactTargets(truth, (), tokenizer, lengths=LENGTHS)
    rows = []
    for seed in range(1, arguments.seeds + 1):
        for soft in (False, True):
            begun = time.perf_counter()
            trained = network(tokenizer, seed)
            train(trained, targets, truth, seed, arguments.steps, soft)
            kl = compare_distributions(model_of(trained, tokenizer), setting).scores["kl"].value
            rows.append((seed, soft, kl))
            seconds = time.perf_counter() - begun
            print(f"seed {seed}, {'soft' if soft else 'hard'}: KL {kl:.4f} nats per word, {seconds:.0f} s", flush=True)
    hard, exact = (np.array([kl for _, soft, kl in rows if soft is wanted]) for wanted in (False, True))
    gain = hard - exact
    half = stats.t.ppf(0.975, len(gain) - 1) * gain.std(ddof=1) / np.sqrt(len(gain))
    print("| hard | soft | gain, nats per word |\n|---|---|---|")
    print(f"| {hard.mean():.4f} | {exact.mean():.4f} | {gain.mean():.4f} ±{half:.4f} |")


if __name__ == "__main__":
    main()
