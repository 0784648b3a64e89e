"""Measure the cost of a tokeniser: GPT-2 with byte-level BPE, Unigram and characters, over several seeds.

All models read the same sentences equally often. Each is measured against the exact truth of its pieces; the
divergence per word is taken apart into the language, words that are none, other segmentations, and what summing over
segmentations gives back. Trained models and their numbers are kept in the folder.

    python benchmarks/tokeniser_costs.py --folder costs/ --seeds 5
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path
from typing import Any

import numpy as np
import torch
from scipy import stats
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import truesource as ts
from truesource.evaluation.show.figures import MODEL, QUIET, SECOND, TRUTH, to_svg, write_figure
from truesource.evaluation.show.figures import figure as new_figure
from truesource.grammar.support.atomic_files import write_json

KINDS = ("bytelevel-1000", "unigram-300", "characters")
DIM, LAYERS, BATCH, RATE = 64, 2, 64, 6e-3


def tokeniser(kind: str, texts: list[str]) -> PreTrainedTokenizerFast:
    """Train a tokeniser of one of `KINDS`."""
    special = ["<s>", "</s>", "<unk>"]
    if kind == "unigram-300":
        backend = Tokenizer(models.Unigram())
        backend.pre_tokenizer, backend.decoder = pre_tokenizers.Metaspace(), decoders.Metaspace()
        trainer = trainers.UnigramTrainer(vocab_size=300, special_tokens=special, unk_token="<unk>")
    else:
        backend = Tokenizer(models.BPE())
        backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
        backend.decoder = decoders.ByteLevel()
        size = 1000 if kind == "bytelevel-1000" else len(special) + 256
        trainer = trainers.BpeTrainer(
            vocab_size=size, special_tokens=special, initial_alphabet=pre_tokenizers.ByteLevel.alphabet()
        )
    backend.train_from_iterator(texts, trainer)
    tokens = {f"{name}_token": AddedToken(token) for name, token in zip(("bos", "eos", "unk"), special, strict=True)}
    return PreTrainedTokenizerFast(tokenizer_object=backend, pad_token="</s>", **tokens)


def trained(tokenizer: PreTrainedTokenizerFast, texts: list[str], seed: int, epochs: int) -> GPT2LMHeadModel:
    """Train a GPT-2 on texts, each read ``epochs`` times."""
    torch.manual_seed(seed)
    begin, end = tokenizer.bos_token_id, tokenizer.eos_token_id
    rows = [[begin, *ids, end] for ids in tokenizer(texts, add_special_tokens=False)["input_ids"]]
    longest = max(map(len, rows))
    config = GPT2Config(
        vocab_size=len(tokenizer), n_positions=longest + 8, n_embd=DIM, n_layer=LAYERS, n_head=4,
        bos_token_id=begin, eos_token_id=end, resid_pdrop=0.0, embd_pdrop=0.0, attn_pdrop=0.0,
    )  # fmt: skip
    network = GPT2LMHeadModel(config)
    steps = epochs * len(rows) // BATCH
    optimiser = torch.optim.AdamW(network.parameters(), lr=RATE, betas=(0.9, 0.95), weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.OneCycleLR(optimiser, RATE, total_steps=steps, pct_start=0.1)
    rng = np.random.default_rng(seed)
    order = np.concatenate([rng.permutation(len(rows)) for _ in range(epochs)])
    for step in range(steps):
        batch = [rows[i] for i in order[step * BATCH : (step + 1) * BATCH].tolist()]
        width = max(map(len, batch))
        ids = torch.tensor([row + [end] * (width - len(row)) for row in batch])
        labels = torch.tensor([row + [-100] * (width - len(row)) for row in batch])
        loss = network(input_ids=ids, labels=labels).loss
        optimiser.zero_grad()
        loss.backward()
        torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
        optimiser.step()
        schedule.step()
        if step % 200 == 0:
            print(f"  step {step} of {steps}: loss {loss.item():.4f}", flush=True)
    return network


def measured(folder: Path, corpus: Path, sentences: int, sums: int) -> dict[str, float]:
    """Return the parts of the divergence of a model, nats per word, and bits per byte of it and of the truth."""
    file = folder / "costs.json"
    if file.exists():
        values: dict[str, float] = json.loads(file.read_text("utf-8"))
        return values
    model: Any = ts.load_model(folder)
    of = ts.evaluate("divergence", model, corpus, sentences=sentences, by=(), sums=sums)
    names = ("kl_per_word", "kl_language", "kl_nonwords", "kl_segmentation", "gain_of_sums", "kl_summed")
    values = {name: of[name].value for name in names}
    texts = ts.Corpus.load(corpus)["eval"][:sentences]
    scores = model.score(texts)
    n_bytes = sum(len(" ".join(text).encode()) for text in texts)
    words = sum(len(text) + 1 for text in texts)
    values["bits_per_byte"] = float(-scores.log_prob.sum() / np.log(2.0) / n_bytes)
    values["bits_summed"] = values["bits_per_byte"] - values["gain_of_sums"] * words / np.log(2.0) / n_bytes
    bound = ts.bound(corpus, sentences=sentences, masked=False, tokenizer="bytes")
    values["bits_of_truth"] = bound["bits_per_byte"].value
    write_json(file, values)
    return values


def interval(values: np.ndarray) -> str:
    """Return a mean with a 95% interval of Student's t over seeds."""
    if len(values) < 2:
        return f"{values.mean():.4f}"
    half = stats.t.ppf(0.975, len(values) - 1) * values.std(ddof=1) / np.sqrt(len(values))
    return f"{values.mean():.4f} ±{half:.4f}"


def drawing(table: dict[str, dict[str, np.ndarray]]) -> str:
    """Draw the parts of each tokeniser as bars, a dot for each seed."""
    parts = {
        "kl_language": ("language", MODEL),
        "kl_nonwords": ("no words", SECOND),
        "kl_segmentation": ("other segmentations", TRUTH),
    }
    with new_figure(7.2, 2.6, "tokenisers") as canvas:
        axes: Any = canvas.subplots()
        for row, values in enumerate(table.values()):
            left = 0.0
            for name, (label, colour) in parts.items():
                width = values[name].mean()
                axes.barh(row, width, left=left, height=0.5, color=colour, label=label if row == 0 else None)
                left += width
            axes.plot(values["kl_per_word"], np.full(len(values["kl_per_word"]), row), "k.", markersize=4)
        axes.set_yticks(range(len(table)), list(table))
        axes.invert_yaxis()
        axes.set_xlabel("KL(P‖Q), nats per word; dots are seeds", color=QUIET)
        canvas.legend(*axes.get_legend_handles_labels(), loc="outside upper center", ncols=3)
        return to_svg(canvas, "tokenisers", "Divergence of models by tokeniser, in parts")


def main() -> None:
    """Train what is missing, and measure."""
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--folder", type=Path, required=True, help="of corpus and models")
    parser.add_argument("--language", default="english")
    parser.add_argument("--lengths", default="3..15")
    parser.add_argument("--sentences", type=int, default=12000, help="of training")
    parser.add_argument("--epochs", type=int, default=3)
    parser.add_argument("--seeds", type=int, default=5)
    parser.add_argument("--kinds", nargs="+", default=KINDS)
    parser.add_argument("--test", type=int, default=200, help="sentences to measure on")
    parser.add_argument("--sums", type=int, default=50, help="sentences to sum over all segmentations")
    parser.add_argument("--figure", type=Path)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    torch.set_num_threads(arguments.threads)
    corpus_folder = arguments.folder / "corpus"
    if not corpus_folder.exists():
        total = round(arguments.sentences / 0.9)
        shares = {"train": 0.9, "eval": 0.1}
        ts.sample(arguments.language, total, lengths=arguments.lengths, shares=shares, path=corpus_folder)
    corpus = ts.Corpus.load(corpus_folder)
    texts = [" ".join(sentence) for sentence in corpus["train"]]
    for seed in range(1, arguments.seeds + 1):
        for kind in arguments.kinds:
            folder = arguments.folder / f"{kind}-seed{seed}"
            if folder.exists():
                continue
            begun = time.perf_counter()
            tokenizer = tokeniser(kind, texts)
            network = trained(tokenizer, texts, seed, arguments.epochs)
            network.save_pretrained(folder)
            tokenizer.save_pretrained(folder)
            print(f"{folder}: {time.perf_counter() - begun:.0f} s", flush=True)
    table = {}
    for kind in arguments.kinds:
        folders = [arguments.folder / f"{kind}-seed{seed}" for seed in range(1, arguments.seeds + 1)]
        rows = [measured(folder, corpus_folder, arguments.test, arguments.sums) for folder in folders]
        table[kind] = {name: np.array([row[name] for row in rows]) for name in rows[0]}
    print(f"| nats per word | {' | '.join(table)} |\n|---|{'---|' * len(table)}")
    for name in next(iter(table.values())):
        print(f"| {name} | {' | '.join(interval(values[name]) for values in table.values())} |")
    if arguments.figure is not None:
        write_figure(arguments.figure, lambda: drawing(table))


if __name__ == "__main__":
    main()
