"""Every verb and evaluator on fixed inputs, and digests of all that they write: a licence to rearrange the code.

    python tests/oracles/golden.py FOLDER            run everything in a new folder, and say what is not as expected
    python tests/oracles/golden.py FOLDER --write    and expect these digests from now on

To see what changed, run it before and after into two folders, and compare them with ``diff -r``.

`tests/truesource/test_golden.py` runs the parts one by one. Numbers that networks and kernels compute depend on how the
processor rounds; `machine` tells whether this one rounds as that of the digests.
"""

from __future__ import annotations

import hashlib
import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Iterator
from contextlib import redirect_stderr, redirect_stdout
from importlib.metadata import version
from io import StringIO
from pathlib import Path
from platform import platform
from typing import Any

import numpy as np
import pyarrow.parquet as pq
import torch
from tiny_benchmark import SUITE
from tiny_run import BANK

DIGESTS = Path(__file__).resolve().parents[1] / "golden.json"
#: keys of records that say when, how fast, where and with what something was made
VOLATILE = {"versions", "commit", "command", "started", "finished", "sentences_per_second"}
VOLATILE |= {"packages", "platform", "processor", "cores"}
VOLATILE |= {"seconds", "seconds_of_training", "worker_seconds"}
#: files of times, and pictures, which are also in the report
LEFT_OUT = {"times.jsonl", ".png", ".svg", ".pdf", ".lock"}
LIBRARIES = ("numpy", "scipy", "torch", "transformers", "tokenizers", "matplotlib", "pyarrow", "rich")
RUN = """\
name: toy
seeds: [3, 4]
treebank: {files: bank.mrg, held_out: 0.4}
grammar: {method: relative_frequency}
corpus: {lengths: 2..9, splits: {train: 120, dev: 20, eval: 40}}
models:
  - {name: counts, model: {architecture: ngram}}
  - {name: gpt2, model: {dim: 8, heads: 2, layers: 1}, training: {max_steps: 2, snapshots: log}}
  - {name: bert, model: {architecture: bert, dim: 8, heads: 2, layers: 1}, training: {max_steps: 2}}
  - {name: pieces, model: {architecture: ngram, order: 2, tokenizer: bpe, vocab_size: 30}}
evaluation:
  naturalness: {sentences: 100, definitions: paper}
  divergence: {sentences: 30, top_k: 3, by: [position]}
  pairs: {number: 5, phenomena: [word-order]}
  pplu: {unigram: train, smoothing: 1, reduce: true, split_words: [dog, the], beta: 0.3, rank: 2}
  dynamics: {sentences: 30, contexts: 40, by: [class, depth], measure: median}
  tendencies: {schemes: [ancestral], number: 60, chance: 19}
  tokenisation: {estimators: [wor1, dpf], samples: 4, candidates: 3, sentences: 12, out_of_domain: [respell=0.5],
    grid: true, curves: true, caching: true, canonical: true, equal_cost: 1}
  probing: {targets: [tag, span], mdl: false, control: none, split_by: position, right: sampled}
  treebank_baseline: true
"""
SWEEP = """\
name: toy
grammar: g.npz
corpus: {lengths: 2..8, splits: {train: 80, dev: 20, eval: 60}, trees: none}
base:
  model: {layers: 1, heads: 2, dim: 8, dropout: 0.0, max_positions: 12}
  training: {max_steps: 4, batch_tokens: 60, eval_every: 4, snapshots: log, warmup_steps: 1}
axes: {sentences: [10, 20, 80], model: [{dim: 4}, {dim: 8}], seeds: [1]}
evaluation: {replicates: 100}
"""
ORACLE = "--oracle runs/toy/grammar/grammar.npz"
MODEL = f"runs/toy/models/counts runs/toy/corpus {ORACLE}"
#: by part of the suite: files that stand there before, and calls, in order; an indented line goes on with one
PARTS: dict[str, tuple[dict[str, str], str]] = {
    "run": (
        {"bank.mrg": 8 * BANK, "toy.yaml": RUN},
        f"""
run toy.yaml
report runs/toy
compare runs/toy --json compare.json --table compare.csv --table compare.tex --table compare.md --table
    compare.parquet
score {MODEL} --json score.json --table score.csv --token-table tokens.parquet --word-table words.csv
score runs/toy/models/bert-seed3 runs/toy/corpus --json masked.json --token-table masked.csv
score runs/toy/models/pieces runs/toy/corpus --frame paper --json pieces.json
compare runs/toy/models/counts runs/toy/models/gpt2-seed3 runs/toy/models/gpt2-seed4 runs/toy/corpus {ORACLE}
    --exact-kl 12 --json models.json
evaluate divergence {MODEL} --sentences 30 --json divergence.json --table divergence.md
evaluate pairs runs/toy/models/counts {ORACLE} --lengths 2..9 -n 5 --json pairs.json --table pairs.md
evaluate pplu {MODEL} --json pplu.json --table pplu.md
evaluate dynamics runs/toy/models/gpt2-seed3 runs/toy/corpus {ORACLE} --sentences 30 --contexts 40 --json
    dynamics.json --table dynamics.md
evaluate tokenisation runs/toy/models/pieces eval=runs/toy/corpus {ORACLE} --sentences 8 --samples 4 --json
    tokenisation.json --table tokenisation.md
evaluate probing runs/toy/models/gpt2-seed3 runs/toy/corpus {ORACLE} --targets tag --json probing.json --table
    probing.md
evaluate tendencies sample=runs/toy/samples/counts/ancestral {ORACLE} --chance 19 --json tendencies.json --table
    tendencies.md
evaluate naturalness corpus=runs/toy/corpus --reference held=runs/toy/treebank/held_out.mrg.gz --sentences 100
    --json naturalness.json --table naturalness.md
generate runs/toy/models/counts -n 40 --seed 5 -o samples --json samples.json
cite runs/toy --bibtex
evaluate memory {MODEL} --sentences 30 --json memory.json --table memory.md
explain {MODEL} -o why --sentences 30 --levers data,context --json explain.json --table explain.md
evaluate beliefs runs/toy/models/gpt2-seed3 runs/toy/corpus {ORACLE} --pairs 10 --json beliefs.json --table beliefs.md
evaluate beliefs runs/toy/models/bert-seed3 runs/toy/corpus {ORACLE} --json masked_beliefs.json
convert runs/toy/corpus shards --to bin
""",
    ),
    "grammars": (
        {"bank.mrg": 8 * BANK, "heads.txt": "VP -> *V NP\n", "text.txt": "the dog sees a cat\nthe man walks\n"},
        """
split bank.mrg -o real --held-out .3 --dev .1 --json split.json
induce bank.mrg -o g.npz --cycles 1 --json induce.json --trace trace.jsonl
induce --start-from g.npz --unbracketed text.txt --iterations 3 -o em.npz --json em.json
inspect g.npz text.txt --json inspect.json --table inspect.csv
sample g.npz -n 200 --lengths 2..8 --shares train=.5,dev=.1,eval=.4 --overlap disjoint --exact-correction --ids
    --string-logprob --seed 4 -o corpus --json sample.json
sample g.npz -n 60 --lengths 2..8 --shares eval=1 --transform reversal --seed 4 -o turned
sample g.npz -n 40 --lengths 2..8 --shares eval=1 --variant mirror=all --variant zipf=1.2 --seed 4 -o variants
bound g.npz corpus --json bound.json --table bound.csv --token-table bound.parquet
bound g.npz text.txt --definitions paper --frame paper --next --json paper.json
parse g.npz text.txt --best 2 -o best.jsonl --json parse.json
parse g.npz text.txt --samples 2 --seed 3 -o sampled.jsonl
parse g.npz real/held_out.txt --gold real/held_out.mrg.gz --method max-rule -o gold.mrg --json gold.json --table
    gold.csv
vary g.npz --variant mirror=all --variant zipf=1.2,temperature=0.8 --variant head-final=VP --heads heads.txt
    --lengths 2..8 -o varied --json vary.json --table vary.tex
convert g.npz g.txt --json convert.json
convert g.npz berkeley --to berkeley
convert corpus trees.mrg --symbols
train corpus --model ngram --set model.order=3 -o models/counts
train corpus --model lstm --set model.dim=8 --set training.max_steps=2 --oracle g.npz -o models/lstm
score models/lstm corpus --oracle g.npz --json lstm.json
language
language dyck:k=2,depth=3 --json dyck.json -o dyck.npz
language english:size=small --json english.json
new --schema run
tilt g.npz --regex ".* the .*" --beta 0.5 -o tilted.npz --json tilt.json --table tilt.md
infill g.npz "the ___ ___ a ___" --top 5 -n 3 --json infill.json --table infill.md
convert corpus lines --to jsonl --split eval --no-bound
""",
    ),
    "grids": (
        {"mini.yaml": SUITE, "toy.yaml": SWEEP, "g.txt": "S -> A S 0.4 | A 0.6\nA -> 'a' 0.5 | 'b' 0.3 | 'c' 0.2\n"},
        """
convert g.txt g.npz
benchmark --suite mini.yaml --model bigram --model small --model masked --seeds 1 --workers 1 -o results --table
    table.csv
benchmark --suite mini.yaml --languages brackets --export-lm-eval tasks
benchmark --suite mini.yaml --model bigram --plan --flops-per-second 1e14
run toy.yaml --json scaling.json --table scaling.md
reproduce --list
new treebank mine
new demo its
""",
    ),
}


def machine() -> str:
    """Digest of sums, products, powers, gradients and versions: how this processor and these libraries round."""
    values = np.random.default_rng(1).random(4096)
    weights = torch.from_numpy(values.astype(np.float32)).reshape(64, 64)
    parts = [np.exp(values), np.log(values), values.reshape(64, 64) @ values.reshape(64, 64), values.cumsum()]
    parts += [torch.softmax(weights @ weights, -1).numpy(), torch.nn.functional.gelu(weights).numpy()]
    parts += [gradient.numpy() for gradient in _gradients()]
    return _digest(*(part.tobytes() for part in parts), *(version(name).encode() for name in LIBRARIES))


def _gradients() -> Iterator[torch.Tensor]:
    """Yield gradients of a small recurrent and a small attention layer, made on one thread."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        words = torch.randn(24, 8, 16)
        for layer in (torch.nn.LSTM(16, 16), torch.nn.TransformerEncoderLayer(16, 2, 32, dropout=0.0)):
            read = layer(words)
            torch.log_softmax(read[0] if isinstance(read, tuple) else read, -1).square().mean().backward()
            yield from (weight.grad for weight in layer.parameters() if weight.grad is not None)
    torch.set_num_threads(threads)


def make(part: str, call: Callable[[list[str]], tuple[int, str, str]]) -> dict[str, str]:
    """Write the files of a part into the working folder, make its calls, and give the digests of all that they leave.

    Args:
        part: key of `PARTS`.
        call: runs the command with arguments; gives its exit code and what it printed.

    Returns:
        By path: of files, and of folders of models and corpora, whose files have one digest together. ``N verb`` is
        what call N printed.
    """
    files, lines = PARTS[part]
    for name, text in files.items():
        Path(name).write_text(text, encoding="utf-8")
    contents: dict[str, list[bytes]] = {}
    for number, line in enumerate(lines.strip().replace("\n    ", " ").splitlines(), start=1):
        arguments = shlex.split(line)
        code, out, err = call(arguments)
        if code:
            raise AssertionError(f"{line}: exit code {code}\n{err}")
        verb = " ".join(word for word in arguments[:2] if word.isalpha())
        contents[f"{number} {verb}"] = [_without_times(out)]
    for path in sorted(Path().rglob("*")):
        if path.is_file() and str(path) not in files and not LEFT_OUT & {path.name, path.suffix}:
            whole = [
                each for each in path.parents if (each / "training.json").is_file() or (each / "record.json").is_file()
            ]
            contents.setdefault(str(whole[-1] if whole else path), []).append(canonical(path))
    return {f"{part}: {name}": _digest(*each) for name, each in contents.items()}


def canonical(path: Path) -> bytes:
    """The content of a file without times, versions and the working folder."""
    if path.suffix == ".parquet":
        table = pq.read_table(path)
        columns = [(name, str(table[name].type), table[name].to_pylist()) for name in table.column_names]
        return repr(columns).encode() + (table.schema.metadata or {}).get(b"truesource", b"")
    if path.suffix == ".npz":
        with np.load(path) as arrays:
            return b"".join(name.encode() + arrays[name].tobytes() for name in sorted(arrays))
    if path.name == "stages.json":  # ids: with other ones, a finished run would be made again
        stages = json.loads(path.read_text("utf-8"))["stages"]
        return json.dumps({name: stage["inputs"] for name, stage in stages.items()}).encode()
    if path.suffix == ".json":
        return _without_times(json.dumps(steady(json.loads(path.read_text("utf-8")))))
    if path.suffix == ".html":
        page, _, _ = path.read_text("utf-8").partition('<section id="provenance">')
        return _without_times(page)
    return path.read_bytes()


def _without_times(text: str) -> bytes:
    text = text.replace(str(Path.cwd()), ".").replace(platform(), "PLATFORM")
    text = re.sub(r"\d{4}-\d\d-\d\d[T ][\d:]+", "DATE", text)
    return re.sub(r"\d[\d.,:]* ?(?:m?s|min|h|/s)\b", "TIME", text).encode()


def _digest(*parts: bytes) -> str:
    return hashlib.sha256(b"".join(parts)).hexdigest()[:12]


def steady(value: Any) -> Any:
    """A record without its volatile keys."""
    if isinstance(value, dict):
        return {key: steady(each) for key, each in value.items() if key not in VOLATILE}
    return [steady(each) for each in value] if isinstance(value, list) else value


def differences(found: dict[str, str], wanted: dict[str, str]) -> Iterator[str]:
    """A line for each file that is new, gone or other than it was."""
    for name in sorted(found.keys() | wanted.keys()):
        if found.get(name) != wanted.get(name):
            yield f"{name}: {'gone' if name not in found else 'new' if name not in wanted else 'changed'}"


def _in_process(arguments: list[str]) -> tuple[int, str, str]:
    from truesource.cli.main import main

    out, err, code = StringIO(), StringIO(), 0
    sys.argv = ["truesource", *arguments]
    with redirect_stdout(out), redirect_stderr(err):
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else 0
    return code, out.getvalue(), err.getvalue()


def write(folder: Path, *, keep: bool) -> None:
    """Make all parts in a new folder."""
    torch.set_num_threads(1)
    os.environ["COLUMNS"] = "100"
    found: dict[str, str] = {}
    for part in PARTS:
        (folder / part).mkdir(parents=True)
        os.chdir(folder / part)
        found |= make(part, _in_process)
    known = json.loads(DIGESTS.read_text("utf-8")) if DIGESTS.is_file() else {"machine": machine(), "digests": {}}
    print(*differences(found, known["digests"]), sep="\n")
    if keep:
        DIGESTS.write_text(json.dumps({"machine": machine(), "digests": found}, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]).resolve(), keep="--write" in sys.argv)
