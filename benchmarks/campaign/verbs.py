"""The calls of the command that a campaign makes: every verb that reads or writes, with every kind of file.

``cite`` reads and writes nothing.
"""

from __future__ import annotations

from dataclasses import dataclass

CHANGED = "head-final=all"
SMALL = "--preset tiny --set model.layers=1 --set model.dim=8 --set training.max_steps=6 --set training.eval_every=3"
WORDS = f"{SMALL} --set model.min_count=1"
HEADS = "--set model.heads=2"
PIECES = "--set model.tokenizer=bpe --set model.vocab_size=60"


@dataclass(frozen=True)
class Verb:
    """A call of the command on the world."""

    name: str
    args: tuple[str, ...]  #: relative to the world
    reads: tuple[str, ...]  #: files or folders whose damage may show, unless another verb shows it
    made: tuple[str, ...]  #: what it makes, below ``out/``


def verb(name: str, line: str, reads: str, made: str = "") -> Verb:
    """A verb from one line of words."""
    return Verb(name, tuple(line.split()), tuple(reads.split()), tuple(made.split()))


#: folders that a refused call leaves as they are, to go on from
KEPT = ("out/toy", "out/why", "out/bench", "out/sweep", "runs/toy", "runs/toy/report.html")
#: beginnings of the names of verbs that start threads or processes, or keep a model in memory: a fork lacks the former
THREADED = ("train", "generate", "probing", "scaling", "run", "sample-workers")

VERBS = [
    verb("inspect-npz", "inspect g.npz --json out/i.json", "g.npz", "out/i.json"),
    verb("inspect-text", "inspect g.txt text.txt --json out/i.json", "g.txt text.txt", "out/i.json"),
    verb("convert-npz", "convert g.npz out/c.txt", "g.npz", "out/c.txt"),
    verb("convert-nltk", "convert g.nltk out/c.npz --from nltk", "g.nltk", "out/c.npz"),
    verb("convert-berkeley", "convert b.grammar out/c.npz --from berkeley", "b.grammar b.lexicon", "out/c.npz"),
    verb("convert-two", "convert g.npz out/c.grammar --to berkeley", "g.npz", "out/c.grammar out/c.lexicon"),
    verb("convert-packed", "convert g.gz out/c.gz --from earleyx --to text", "g.gz", "out/c.gz"),
    verb("convert-corpus", "convert corpus out/c.mrg", "corpus", "out/c.mrg"),
    verb("convert-sentences", "convert corpus out/c.txt", "corpus", "out/c.txt"),
    verb("vary", f"vary g.txt --variant {CHANGED} --variant zipf=1.2 --lengths 2..8 -o out/v", "g.txt", "out/v"),
    verb(
        "vary-heads",
        "vary g.txt --variant head-initial=all --heads heads.txt --lengths 2..8 -o out/v --json out/v.json",
        "g.txt heads.txt",
        "out/v out/v.json",
    ),
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
        "sample g.npz -n 100 --lengths 2..12 --shares train=1 --variant zipf=1.2 -o out/c",
        "g.npz",
        "out/c",
    ),
    verb(
        "sample-disjoint",
        "sample g.npz -n 120 --lengths 2..12 --overlap disjoint --string-logprob --ids -o out/c",
        "g.npz",
        "out/c",
    ),
    verb(
        "sample-workers", "sample g.npz -n 300 --lengths 2..12 --shard-size 50 --workers 2 -o out/c", "g.npz", "out/c"
    ),
    verb("parse", "parse p.npz text.txt -o out/t.mrg", "p.npz text.txt", "out/t.mrg"),
    verb("parse-folder", "parse p.npz corpus -o out/t --shard-size 2 --json out/t.json", "corpus", "out/t out/t.json"),
    verb("parse-gold", "parse p.npz text.txt --gold gold.mrg -o out/t.mrg", "p.npz gold.mrg", "out/t.mrg"),
    verb("bound", "bound g.npz corpus --json out/b.json", "g.npz corpus", "out/b.json"),
    verb("bound-text", "bound g.txt text.txt --json out/b.json", "g.txt text.txt", "out/b.json"),
    verb("bound-parts", "bound g.npz corpus -o out/b --json out/b.json", "g.npz corpus", "out/b out/b.json"),
    verb(
        "bound-published",
        "bound --token-scores released.json --vocabulary words.json --frame paper --json out/b.json",
        "released.json words.json",
        "out/b.json",
    ),
    verb("bound-masked", "bound --token-scores released.txt --json out/b.json", "released.txt", "out/b.json"),
    verb("train", f"train corpus --model gpt2 {WORDS} {HEADS} -o out/m", "corpus", "out/m"),
    verb("train-ngram", "train corpus --model ngram -o out/m", "corpus", "out/m"),
    verb("train-text", f"train text.txt --model lstm {WORDS} -o out/m", "text.txt", "out/m"),
    verb(
        "train-oracle",
        f"train corpus --model gpt2 {WORDS} {HEADS} --oracle g.npz --oracle-monitor-sentences 10 -o out/m",
        "g.npz",
        "out/m",
    ),
    verb("score", "score net corpus --oracle g.npz --json out/s.json", "net corpus g.npz", "out/s.json"),
    verb("score-masked", "score bert corpus --oracle g.npz --json out/s.json", "bert corpus", "out/s.json"),
    verb("score-lstm", "score lstm corpus --oracle g.npz --json out/s.json", "lstm", "out/s.json"),
    verb("score-ngram", "score ngram corpus --oracle g.npz --json out/s.json", "ngram", "out/s.json"),
    verb("score-foreign", "score hf corpus --oracle g.npz --json out/s.json", "hf", "out/s.json"),
    verb("score-pieces", "score pieces corpus --oracle g.npz --json out/s.json", "pieces", "out/s.json"),
    verb(
        "compare",
        "compare a=net a=lstm ngram corpus --oracle g.npz --json out/s.json --table out/s.csv --table out/s.tex"
        " --figure out/s.svg",
        "net lstm ngram corpus g.npz",
        "out/s.json out/s.csv out/s.tex out/s.svg",
    ),
    verb(
        "explain",
        "explain ngram corpus --oracle g.npz --starts 1 --levers context,data -o out/why --json out/why.json",
        "ngram corpus",
        "out/why out/why.json",
    ),
    verb(
        "benchmark", "benchmark --suite suite.yaml --model bigram --workers 1 -o out/bench", "suite.yaml", "out/bench"
    ),
    verb("generate", "generate net -n 40 --max-tokens 12 -o out/s", "net", "out/s"),
    verb("generate-ngram", "generate ngram -n 40 --max-tokens 12 -o out/s", "ngram", "out/s"),
    verb(
        "divergence",
        "evaluate divergence net corpus --oracle g.npz --json out/d.json --figure out/d.svg",
        "net corpus g.npz",
        "out/d.json out/d.svg",
    ),
    verb(
        "divergence-samples",
        "evaluate divergence net corpus --oracle g.npz --model-samples samples --by class --classes classes.json"
        " --json out/d.json",
        "samples classes.json",
        "out/d.json",
    ),
    verb(
        "dynamics",
        "evaluate dynamics net corpus --oracle g.npz --classes classes.json --json out/d.json --figure out/d.svg",
        "net corpus classes.json",
        "out/d.json out/d.svg",
    ),
    verb(
        "naturalness",
        "evaluate naturalness corpus --split eval --reference bank.mrg --json out/n.json --figure out/n.svg",
        "corpus bank.mrg",
        "out/n.json out/n.svg",
    ),
    *(
        verb(f"lattice-{of}", f"evaluate tokenisation {of} text.txt --lattice --json out/l.json", of, "out/l.json")
        for of in ("pieces", "sp.model")
    ),
    verb(
        "tokenisation",
        "evaluate tokenisation pieces corpus --oracle g.npz --estimators one-best,nbest,dpf"
        " --samples 8 --sentences 2 --json out/t.json"
        " --document-table out/t.parquet --word-table out/w.parquet --figure out/t.svg",
        "pieces corpus",
        "out/t.json out/t.parquet out/w.parquet out/t.svg",
    ),
    verb(
        "pairs",
        "evaluate pairs net --oracle g.npz --file pairs.jsonl --lengths 2..12 --json out/p.json --figure out/p.svg",
        "net pairs.jsonl",
        "out/p.json out/p.svg",
    ),
    verb(
        "pairs-made",
        "evaluate pairs --oracle g.txt -n 10 --lengths 2..12 --forms forms.txt -o out/p.jsonl",
        "g.txt forms.txt",
        "out/p.jsonl",
    ),
    verb("pplu", "evaluate pplu net corpus --oracle g.npz --json out/p.json", "net corpus", "out/p.json"),
    verb(
        "pplu-reference",
        "evaluate pplu net corpus --unigram train --counted text.txt --reduce --json out/p.json --figure out/p.svg",
        "net text.txt",
        "out/p.json out/p.svg",
    ),
    verb(
        "probing",
        "evaluate probing net corpus --oracle g.npz --layers 0 --no-mdl --no-correlations --control none"
        " --sentences 20 --json out/p.json --figure out/p.svg",
        "net corpus g.npz",
        "out/p.json out/p.svg",
    ),
    verb(
        "tendencies",
        "evaluate tendencies samples --oracle g.npz --vocabulary net --chance 19 --stopwords stopwords.txt"
        " --json out/t.json --figure out/t.svg",
        "samples g.npz stopwords.txt",
        "out/t.json out/t.svg",
    ),
    verb("scaling", "run sweep.yaml --runs out", "sweep.yaml g.txt", "out/sweep"),
    verb("report-sweep", "report runs/sweep", "runs/sweep", "runs/sweep/scaling.json"),
    verb("run", "run run.yaml --runs out", "run.yaml bank.mrg", "out/toy"),
    verb("run-again", "run run.yaml", "runs/toy", "runs/toy"),
    verb("report", "report runs/toy", "runs/toy", "runs/toy/report.html"),
    verb("figure", "report runs/toy --figure forest -o out/f.pdf", "runs/toy", "out/f.pdf"),
    verb("language", "language dyck:k=2 -o out/d.npz --json out/d.json", "", "out/d.npz out/d.json"),
]
