"""The folder that a campaign works on: every kind of file that the command reads, made by the command itself."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

from verbs import HEADS, PIECES, SMALL, WORDS

GRAMMAR = """\
S -> NPs VPs 0.5 | NPp VPp 0.5
NPs -> DT NN 0.8 | NPs PP 0.2
NPp -> DT NNS 0.8 | NPp PP 0.2
PP -> IN NPs 0.5 | IN NPp 0.5
VPs -> VBZ NPp 0.5 | VBZ NPs 0.1 | VBZ 0.4
VPp -> VBP NPs 0.5 | VBP NPp 0.1 | VBP 0.4
DT -> 'the' 0.7 | 'some' 0.3
NN -> 'dog' 0.5 | 'cat' 0.3 | 'man' 0.2
NNS -> 'dogs' 0.4 | 'cats' 0.3 | 'men' 0.3
VBZ -> 'sees' 0.4 | 'likes' 0.3 | 'hears' 0.3
VBP -> 'see' 0.4 | 'like' 0.3 | 'hear' 0.3
IN -> 'of' 0.6 | 'near' 0.4
%label NPs NP
%label NPp NP
%label VPs VP
%label VPp VP
"""

RUN = """\
name: toy
seed: 1
treebank: {files: [bank.mrg], held_out: 0.2}
grammar: {method: split_merge, split_merge: {cycles: 1, em_split: 3, em_merge: 2, em_smooth: 2}}
corpus: {lengths: 2..12, splits: {train: 300, dev: 40, eval: 60}}
models:
  - name: net
    preset: tiny
    model: {architecture: gpt2, layers: 1, heads: 2, dim: 8, min_count: 1}
    training: {max_steps: 6, eval_every: 3, snapshots: log}
  - {name: ngram, model: {architecture: ngram}}
evaluation:
  divergence: {}
  pplu: true
  naturalness: {}
"""
SCALING = """\
name: sweep
seed: 1
grammar: g.txt
corpus: {lengths: 2..12, splits: {train: 200, dev: 20, eval: 40}, trees: none}
base:
  preset: tiny
  model: {architecture: gpt2, layers: 1, heads: 2, min_count: 1}
  training: {max_steps: 4, eval_every: 4}
axes:
  sentences: [50, 100]
  model: [{dim: 4}, {dim: 8}]
  seeds: [1]
evaluation: {split: eval, sentences: 40}
"""
SUITE = """\
name: mini
version: 1
title: A small language
seed: 1
training: {tokens: 1000, batch_tokens: 128, points: 3, parameters: 20000, preset: tiny, seeds: [1]}
sizes: {dev: 10, test: 40, longer: 20, blocks: 10}
languages:
  chain: {language: "ngram:order=2,vocabulary=4,mean_length=5", kind: chain, tests: contexts, lengths: 1..8}
baselines:
  oracle: {}
  unigram: {}
  bigram: {model: {architecture: ngram, order: 2}}
"""
#: files that a person or another program writes
BY_HAND = {
    "g.txt": GRAMMAR,
    "run.yaml": RUN,
    "sweep.yaml": SCALING,
    "suite.yaml": SUITE,
    "classes.json": '{"NN": "noun", "NNS": "noun", "VBZ": "verb", "VBP": "verb", "DT": "other", "IN": "other"}\n',
    "heads.txt": "S -> NP *VP\nNP: NN NNS NP\nPP: IN\nVP: VBZ VBP\n",
    "stopwords.txt": "the\nsome\nof\nnear\n",
    "forms.txt": "noun dog dogs\nnoun cat cats\nnoun man men\nverb sees see\nverb likes like\nverb hears hear\n",
    "released.json": json.dumps({"the dog sees": [1.0, 2.0, 3.5], "some men like the cat": [2.0, 1.5, 1.0, 0.5, 3.0]}),
    "released.txt": "the dog\nToken: 0\n0.5\nToken: 1\n0.25\nno\nToken: 0\n1.0\n",
    "words.json": json.dumps(["the", "dog", "some", "men", "like", "cat", "no"]),
}
#: kinds of files that carry no digest: what stands in them is the input, whatever it is
PLAIN = frozenset((".yaml", ".txt", ".mrg", ".nltk", ".grammar", ".lexicon", ".gz", ".model"))
FOREIGN = "hf"  #: a model folder of another program

#: how the files of the world are made, in order
RECIPE = [
    "convert g.txt g.npz",
    "convert g.txt g.nltk --to nltk",
    "convert g.txt b.grammar --to berkeley",
    "sample g.txt -n 500 --lengths 2..12 --shares train=.8,dev=.08,eval=.12 -o corpus",
    "convert corpus bank.mrg",
    "induce bank.mrg --cycles 1 -o p.npz",
    f"train corpus --model gpt2 {WORDS} {HEADS} --set training.snapshots=log -o net",
    f"train corpus --model bert {WORDS} {HEADS} -o bert",
    f"train corpus --model lstm {WORDS} -o lstm",
    f"train corpus --model gpt2 {SMALL} {HEADS} {PIECES} -o pieces",
    "train corpus --model ngram -o ngram",
    "generate net -n 60 --max-tokens 12 -o samples",
    "evaluate pairs ngram --oracle g.txt -n 10 --lengths 2..12 -o pairs.jsonl",
    "run run.yaml",
    "run sweep.yaml",
    "convert g.txt g.gz --to earleyx",
]


def without_digest(name: str) -> bool:
    """Whether a change of this file of the world, which can be read, is another input and not damage."""
    file = Path(name)
    return name in BY_HAND or file.suffix in PLAIN or file.parts[0] == FOREIGN


def environment() -> dict[str, str]:
    """Of the commands: one thread each, no terminal."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "COLUMNS": "120", "TERM": "dumb"}


def build(folder: Path) -> None:
    """Make the world, unless it stands there already."""
    if (folder / "complete").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in BY_HAND.items():
        (folder / name).write_text(text, encoding="utf-8")
    for number, line in enumerate(RECIPE):
        mark = folder / f".made-{number}"
        if mark.is_file():
            continue
        done = subprocess.run(
            [sys.executable, "-m", "truesource", *line.split()],
            cwd=folder,
            env=environment(),
            capture_output=True,
            text=True,
        )
        if done.returncode:
            raise SystemExit(f"truesource {line}\n{done.stdout}{done.stderr}")
        mark.touch()
    trees = (folder / "bank.mrg").read_text(encoding="utf-8").splitlines(keepends=True)[:40]
    (folder / "gold.mrg").write_text("".join(trees), encoding="utf-8")
    (folder / "text.txt").write_text("".join(map(_plain, trees)), encoding="utf-8")
    _foreign(folder / "net", folder / FOREIGN)
    _sentencepiece(folder)
    (folder / "complete").touch()


def _plain(tree: str) -> str:
    """The words of a tree in one line."""
    return " ".join(part.rstrip(")") for part in tree.split() if part.endswith(")")) + "\n"


def _foreign(model: Path, folder: Path) -> None:
    """A model as others save it: without what this suite writes beside the network and the tokeniser."""
    folder.mkdir(exist_ok=True)
    for name in (
        "config.json",
        "generation_config.json",
        "model.safetensors",
        "tokenizer.json",
        "tokenizer_config.json",
    ):
        shutil.copy(model / name, folder / name)


def _sentencepiece(folder: Path) -> None:
    from sentencepiece import SentencePieceTrainer

    SentencePieceTrainer.train(
        input=str(folder / "text.txt"),
        model_prefix=str(folder / "sp"),
        vocab_size=40,
        hard_vocab_limit=False,
        minloglevel=2,
    )
