"""What a tokeniser costs: GPT-2 with byte-level BPE, Unigram and characters on one language, over several seeds.

All models read the same sentences equally often. Each is measured against the exact truth of its pieces; the
divergence per word is taken apart into the language, words that are none, other segmentations, and what summing over
segmentations gives back. With --measure the models of an earlier run are measured again.

    python benchmarks/tokeniser_costs.py --folder costs/ --seeds 5
"""

from __future__ import annotations

import argparse
import time
from pathlib import Path

import numpy as np
import torch
from tokenizers import AddedToken, Tokenizer, decoders, models, pre_tokenizers, trainers
from transformers import GPT2Config, GPT2LMHeadModel, PreTrainedTokenizerFast

import truesource as ts

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


if __name__ == "__main__":
    main()
