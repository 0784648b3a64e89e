"""The folder that a campaign works on: every kind of file that the command reads, made by the command itself."""

from __future__ import annotations

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

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
CHANGED = "head-final=all"

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
corpus: {lengths: 2..12, splits: {train: 200, dev: 20, eval: 40}, trees: false}
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
CLASSES = '{"NN": "noun", "NNS": "noun", "VBZ": "verb", "VBP": "verb", "DT": "other", "IN": "other"}\n'
SMALL = "--preset tiny --set model.layers=1 --set model.dim=8 --set training.max_steps=6 --set training.eval_every=3"
WORDS = f"{SMALL} --set model.min_count=1"
HEADS = "--set model.heads=2"
PIECES = "--set model.tokenizer=bpe --set model.vocab_size=60"


@dataclass(frozen=True)
class Verb:
    """A call of the command on the world."""

    name: str
    args: tuple[str, ...]  #: relative to the world
    reads: tuple[str, ...]  #: files or folders whose damage may show
    made: tuple[str, ...]  #: what it makes, below ``out/``
    again: tuple[str, ...] = ()  #: added when the same call is made once more after a kill


def verb(name: str, line: str, reads: str, made: str = "") -> Verb:
    """A verb from one line of words."""
    return Verb(name, tuple(line.split()), tuple(reads.split()), tuple(made.split()))


#: folders that a refused call leaves as they are, to go on from
KEPT = ("out/toy", "out/sweep", "runs/toy", "runs/toy/report.html")

#: how the files of the world are made, in order
RECIPE = [
    "convert g.txt g.npz",
    "convert g.txt g.nltk --to nltk",
    "convert g.txt b.grammar --to berkeley",
    "sample g.txt -n 500 --lengths 2..12 --split train=.8,dev=.08,eval=.12 -o corpus",
    "convert corpus bank.mrg",
    "induce bank.mrg --cycles 1 -o p.npz",
    f"train corpus --model gpt2 {WORDS} {HEADS} --set training.snapshots=log -o net",
    f"train corpus --model bert {WORDS} {HEADS} -o bert",
    f"train corpus --model lstm {WORDS} -o lstm",
    f"train corpus --model gpt2 {SMALL} {HEADS} {PIECES} -o pieces",
    "train corpus --model ngram -o ngram",
    "generate net -n 60 --max-tokens 12 -o samples",
    "evaluate pairs ngram --oracle g.txt -n 10 --lengths 2..12 --pairs pairs.jsonl",
    "run run.yaml",
    "evaluate scaling sweep.yaml",
]

VERBS = [
    verb("inspect-npz", "inspect g.npz --json out/i.json", "g.npz", "out/i.json"),
    verb("inspect-text", "inspect g.txt text.txt --json out/i.json", "g.txt text.txt", "out/i.json"),
    verb("convert-npz", "convert g.npz out/c.txt", "g.npz", "out/c.txt"),
    verb("convert-nltk", "convert g.nltk out/c.npz --from nltk", "g.nltk", "out/c.npz"),
    verb("convert-berkeley", "convert b.grammar out/c.npz --from berkeley", "b.grammar b.lexicon", "out/c.npz"),
    verb("convert-two", "convert g.npz out/c.grammar --to berkeley", "g.npz", "out/c.grammar out/c.lexicon"),
    verb("convert-corpus", "convert corpus out/c.mrg", "corpus", "out/c.mrg"),
    verb("vary", f"vary g.txt --variant {CHANGED} --variant zipf=1.2 --lengths 2..8 -o out/v", "g.txt", "out/v"),
    verb(
        "induce",
        "induce bank.mrg --cycles 1 -o out/p.npz --trace out/t.jsonl",
        "bank.mrg",
        "out/p.npz out/t.jsonl",
    ),
    verb(
        "induce-frequency",
        "induce bank.mrg --method relative-frequency -o out/p.txt",
        "bank.mrg",
        "out/p.txt",
    ),
    verb(
        "reestimate",
        "induce --start-from g.npz --unbracketed corpus --iterations 3 -o out/p.npz",
        "g.npz corpus",
        "out/p.npz",
    ),
    verb("sample", "sample g.npz -n 300 --lengths 2..12 -o out/c", "g.npz", "out/c"),
    verb(
        "sample-variant",
        "sample g.npz -n 100 --lengths 2..12 --split train=1 --variant zipf=1.2 -o out/c",
        "g.npz",
        "out/c",
    ),
    verb("parse", "parse p.npz text.txt -o out/t.mrg", "p.npz text.txt", "out/t.mrg"),
    verb("bound", "bound g.npz corpus --json out/b.json", "g.npz corpus", "out/b.json"),
    verb("bound-text", "bound g.txt text.txt --json out/b.json", "g.txt text.txt", "out/b.json"),
    verb("bound-parts", "bound g.npz corpus -o out/b --json out/b.json", "g.npz corpus", "out/b out/b.json"),
    verb("train", f"train corpus --model gpt2 {WORDS} {HEADS} -o out/m", "corpus", "out/m"),
    verb("train-ngram", "train corpus --model ngram -o out/m", "corpus", "out/m"),
    verb("train-text", f"train text.txt --model lstm {WORDS} -o out/m", "text.txt", "out/m"),
    verb("score", "score net corpus --oracle g.npz --json out/s.json", "net corpus g.npz", "out/s.json"),
    verb("score-masked", "score bert corpus --oracle g.npz --json out/s.json", "bert corpus", "out/s.json"),
    verb("score-lstm", "score lstm corpus --oracle g.npz --json out/s.json", "lstm", "out/s.json"),
    verb("score-ngram", "score ngram corpus --oracle g.npz --json out/s.json", "ngram", "out/s.json"),
    verb("score-pieces", "score pieces corpus --oracle g.npz --json out/s.json", "pieces", "out/s.json"),
    verb("generate", "generate net -n 40 --max-tokens 12 -o out/s", "net", "out/s"),
    verb("generate-ngram", "generate ngram -n 40 --max-tokens 12 -o out/s", "ngram", "out/s"),
    verb(
        "divergence",
        "evaluate divergence net corpus --oracle g.npz --json out/d.json --plot out/d.svg",
        "net corpus g.npz",
        "out/d.json out/d.svg",
    ),
    verb(
        "dynamics",
        "evaluate dynamics net corpus --oracle g.npz --classes classes.json --json out/d.json",
        "net corpus classes.json",
        "out/d.json",
    ),
    verb(
        "naturalness",
        "evaluate naturalness corpus --split eval --reference bank.mrg --json out/n.json",
        "corpus bank.mrg",
        "out/n.json",
    ),
    verb("lattice", "evaluate lattice pieces text.txt --json out/l.json", "pieces text.txt", "out/l.json"),
    verb(
        "tokenisation",
        "evaluate tokenisation pieces corpus --oracle g.npz --estimators one-best,nbest,dpf"
        " --samples 8 --documents 2 --json out/t.json",
        "pieces corpus",
        "out/t.json",
    ),
    verb(
        "pairs",
        "evaluate pairs net --oracle g.npz --given pairs.jsonl --lengths 2..12 --json out/p.json --figure out/p.svg",
        "net pairs.jsonl",
        "out/p.json out/p.svg",
    ),
    verb("pplu", "evaluate pplu net corpus --oracle g.npz --json out/p.json", "net corpus", "out/p.json"),
    verb(
        "probe",
        "evaluate probe net corpus --oracle g.npz --layers 0 --no-mdl --no-correlations --control none"
        " --sentences 20 --json out/p.json",
        "net corpus g.npz",
        "out/p.json",
    ),
    verb(
        "tendencies",
        "evaluate tendencies samples --oracle g.npz --vocabulary net --chance 19 --json out/t.json",
        "samples g.npz",
        "out/t.json",
    ),
    verb("scaling", "evaluate scaling sweep.yaml --runs out", "sweep.yaml g.txt", "out/sweep"),
    verb("scaling-folder", "evaluate scaling runs/sweep --json out/s.json", "runs/sweep", "out/s.json"),
    verb("run", "run run.yaml --runs out", "run.yaml bank.mrg", "out/toy"),
    verb("run-again", "run run.yaml", "runs/toy", "runs/toy"),
    verb("report", "report runs/toy", "runs/toy", "runs/toy/report.html"),
]


def environment() -> dict[str, str]:
    """Of the commands: one thread each, no terminal."""
    return {**os.environ, "OMP_NUM_THREADS": "1", "NUMBA_NUM_THREADS": "1", "COLUMNS": "120", "TERM": "dumb"}


def build(folder: Path) -> None:
    """Make the world, unless it stands there already."""
    if (folder / "complete").is_file():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in (("g.txt", GRAMMAR), ("run.yaml", RUN), ("sweep.yaml", SCALING), ("classes.json", CLASSES)):
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
        if line.startswith("convert corpus"):
            (folder / "text.txt").write_text(_plain(folder / "bank.mrg"), encoding="utf-8")
        mark.touch()
    (folder / "complete").touch()


def _plain(bank: Path) -> str:
    """The words of the first trees, one sentence a line."""
    lines = bank.read_text(encoding="utf-8").splitlines()[:40]
    return "".join(" ".join(part.rstrip(")") for part in line.split() if part.endswith(")")) + "\n" for line in lines)
