"""Every hot job beside its peer, and beside an earlier commit: one table from one run.

``pip install genlm-grammar pcfg``, then ``python benchmarks/limits.py TREEBANK SENTENCES [--jar BerkeleyParser-1.7.jar]
[--before CHECKOUT] [--shares roofline.json] [--rows NAME,...] [--json FILE]``. The trees of TREEBANK train a grammar of
5 cycles, by ours and by the released trainer (Petrov et al. 2006; a Java program). Each parser reads SENTENCES, a
treebank too, with the grammar of its own. Grammars and corpora stay in the folder ``--work``.

Each figure is CPU seconds of a process of its own, on one core. Of ours they are those of the whole command on many
items less those on a few, when kernels are compiled already; of the released parser likewise. Training has both
programs from start to end. Memory is the most that a process held. The ratios are of times of equally many items.
CHECKOUT is a folder with an earlier commit: its code runs the same commands.

``--shares`` is what ``benchmarks/roofline.py --json`` wrote: how near the kernel comes to the machine's limit.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Sequence
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import induction
from parsing import LONGEST, ONE_THREAD, released

HERE = Path(__file__).resolve().parent
CYCLES = "5"
JAVA = ("java", "-XX:+UseSerialGC", "-Xmx8g")


class Cost(NamedTuple):
    """What some work took."""

    seconds: float  #: of CPU time
    items: int
    megabytes: float

    @property
    def each(self) -> float:
        """CPU seconds an item."""
        return self.seconds / self.items


class Side(NamedTuple):
    """One version of ours: where its code is, and where it keeps what it makes."""

    code: Path
    work: Path


def measured(command: Sequence[str | Path], code: Path | None = None) -> tuple[float, float]:
    """CPU seconds of a command on one core, run by some code of ours, and the most MB it held."""
    environment = os.environ | ONE_THREAD | ({"PYTHONPATH": str(code)} if code else {})
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    return induction.measured(command, environment)[1:]


def command(side: Side, *words: str | Path) -> tuple[float, float]:
    """`measured` of one of our commands; the checkout that this is called from does not come before the side's."""
    return measured([sys.executable, "-P", "-m", "truesource", *words, "--force"], side.code)


def difference(run: Callable[[int], tuple[float, float]], few: int, many: int) -> Cost:
    """What ``many - few`` items take: ``run`` is measured on both numbers."""
    run(many)  # compiles
    least, _ = run(few)
    seconds, megabytes = run(many)
    return Cost(seconds - least, many - few, megabytes)


def whole(found: tuple[float, float]) -> Cost:
    """The cost of a command that does one thing."""
    return Cost(found[0], 1, found[1])


def child(side: Side, given: Given, name: str) -> Cost:
    """One of `CHILDREN`, in a process of its own that says how long the work itself took."""
    made = side.work / "child.json"
    words = [given.treebank, given.dev, "--work", given.work, *(["--quick"] if given.quick else [])]
    _, megabytes = measured([sys.executable, __file__, *words, "--child", name, "--json", made], side.code)
    seconds, items = json.loads(made.read_text("utf-8"))
    return Cost(seconds, items, megabytes)


# -- the rows -----------------------------------------------------------------------------------------------------


class Given(NamedTuple):
    """What the rows are measured on."""

    treebank: Path
    dev: Path
    jar: Path | None
    work: Path  #: folder of what is not ours
    quick: bool

    @property
    def peer_grammar(self) -> Path:
        """Of the released trainer."""
        return self.work / "released.gr"


def lines(path: Path, n: int) -> Path:
    """The first ``n`` lines of a file of trees or sentences, as a file beside it."""
    some = path.with_name(f"{path.stem}.{n}{path.suffix}")
    some.write_text("".join(path.read_text("utf-8").splitlines(keepends=True)[:n]), "utf-8")
    return some


def prepare(given: Given) -> None:
    """Plain trees for the released trainer, and the sentences to parse: what our reader makes of both files."""
    from truesource.grammar.treebank import Normalisation, Treebank

    trees = Treebank.read(given.treebank, Normalisation()).trees[: 300 if given.quick else None]
    (given.work / "trees.mrg").write_text("".join(f"({tree})\n" for tree in trees), "utf-8")
    dev = [tree.leaves() for tree in Treebank.read(given.dev, Normalisation()).trees]
    text = [f"{' '.join(words)}\n" for words in dev if len(words) <= LONGEST][: 20 if given.quick else None]
    (given.work / "sentences.txt").write_text("".join(text), "utf-8")


def training(name: str, settings: Sequence[str], side: Side, given: Given) -> Cost:
    """Training, reading and writing included."""
    trees = given.work / "trees.mrg"
    words = (
        "induce",
        trees,
        "--cycles",
        CYCLES,
        "--lexicon",
        "parse",
        *induction.options(settings),
        "-o",
        side.work / name,
    )
    command(side, "induce", lines(trees, 50), "--cycles", "2", "--lexicon", "parse", "-o", side.work / "small.npz")
    return whole(command(side, *words))


@cache
def released_training(given: Given) -> Cost:
    """The released trainer with its defaults."""
    files = ("-path", str(given.work / "trees.mrg"), "-treebank", "SINGLEFILE", "-out", str(given.peer_grammar))
    program = ("-cp", str(given.jar), "edu.berkeley.nlp.PCFGLA.GrammarTrainer")
    return whole(measured([*JAVA, *program, *files, "-SMcycles", CYCLES]))


def parsing(side: Side, given: Given) -> Cost:
    """Max-rule-product trees of all sentences."""
    text = given.work / "sentences.txt"
    run = partial(_parse, side, text)
    return difference(run, 4, len(text.read_text("utf-8").splitlines()))


def _parse(side: Side, text: Path, n: int) -> tuple[float, float]:
    return command(side, "parse", side.work / "grammar.npz", lines(text, n), "-o", side.work / "parsed.mrg")


def released_parsing(given: Given) -> Cost:
    """The released parser, with the grammar of the released trainer."""
    sentences = [line.split() for line in (given.work / "sentences.txt").read_text("utf-8").splitlines()]
    found = released(str(given.jar), str(given.peer_grammar), sentences)
    return Cost(found.cpu, len(sentences) - 1, found.megabytes)


def bound(which: str, precision: str, side: Side, given: Given) -> Cost:
    """Exact scores of sampled sentences under the trained grammar."""
    few, many = (2, 20) if given.quick else (4, 400)
    grammar, corpus = side.work / "grammar.npz", side.work / "sampled"
    options = ["--no-masked" if which != "masked" else "--no-causal", "--precision", precision, "--split", "eval"]
    options += ["--lengths", "6..25" if which == "conditioned" else "none"]
    if not corpus.exists():
        command(side, "sample", grammar, "-n", "1000", "--lengths", "6..25", "--shares", "eval=1", "-o", corpus)

    def run(n: int) -> tuple[float, float]:
        scores = side.work / f"{which}-{precision}-{n}"
        shutil.rmtree(scores, ignore_errors=True)
        return command(side, "bound", grammar, corpus, "--sentences", str(n), *options, "-o", scores)

    return difference(run, few, many)


def sampling(side: Side, given: Given) -> Cost:
    """A corpus with trees on the disk."""
    few, many = (100, 1_000) if given.quick else (1_000, 500_000)

    def run(n: int) -> tuple[float, float]:
        options = ("--lengths", "6..25", "--shares", "train=1", "-o", side.work / "corpus")
        return command(side, "sample", side.work / "grammar.npz", "-n", str(n), *options)

    return difference(run, few, many)


# -- work done in a process of this script: whole packages as peers, or calls without a command -------------------


def next_words(given: Given) -> tuple[float, int]:
    """Full next-word distributions under the unsplit grammar of the trees; seconds and tokens."""
    import peer

    pcfg, sentences, tokens = peer.setting(given.work / "trees.mrg", 1000)
    return peer.ours(pcfg, sentences), tokens


def next_words_of_peer(given: Given) -> tuple[float, int]:
    """The same of fewer sentences, after the peer's set-up."""
    import peer

    pcfg, sentences, tokens = peer.setting(given.work / "trees.mrg", 2)
    model = peer.EarleyLM(peer.peer_grammar(pcfg))
    begun = time.perf_counter()
    for sentence in sentences:
        for j in range(len(sentence) + 1):
            model.p_next(tuple(f"w:{word}" for word in sentence[:j]))
    return time.perf_counter() - begun, tokens


def drawn(given: Given) -> tuple[float, int]:
    """Sentences that the package ``pcfg`` draws from the trained grammar, after its set-up."""
    from sampling import peer

    from truesource.grammar.pcfg import PCFG

    _, n, _, seconds, _ = peer(PCFG.load(given.work / "ours" / "grammar.npz"), 20 if given.quick else 300)
    return seconds, n


def lattices(length: int, given: Given, *, of_peer: bool) -> tuple[float, int]:
    """Log Z and entropy of the tokenisations of stretches of text, short ones in a list; the least of 7 times."""
    import lattice
    from lattice_setting import Row, Work, grammar_text, make_setting, measure

    from truesource.evaluation.tokenisation.ambiguity import sums_of_stretches

    setting = make_setting(grammar_text(2_000 if given.quick else 20_000), 1000 if given.quick else 8000)
    documents = setting.documents(length, 100 if length >= 100 else 2000)
    if length >= 100:
        each: Work = partial(lattice.peer_entropy if of_peer else lattice.build_and_sum, setting)
        return measure(Row("", documents, each, None), 7).ours * len(documents), len(documents)

    def listed(_: object) -> object:
        if of_peer:
            return setting.processor.calculate_entropy([document.raw for document in documents], 1.0)
        return sums_of_stretches(setting.builder, Counter(document.spelling for document in documents))

    return measure(Row("", documents[:1], listed, None), 7).ours, len(documents)


STRETCHES = (10, 100, 1000)  #: characters
CHILDREN: dict[str, Callable[[Given], tuple[float, int]]] = {
    "next-words": next_words,
    "next-words-peer": next_words_of_peer,
    "sampling-peer": drawn,
    **{f"lattice-{n}": partial(lattices, n, of_peer=False) for n in STRETCHES},
    **{f"lattice-{n}-peer": partial(lattices, n, of_peer=True) for n in STRETCHES},
}


class Row(NamedTuple):
    """One job."""

    work: str  #: what one item is
    peer_name: str
    ours: Callable[[Side, Given], Cost]
    peer: Callable[[Given], Cost] | None
    kernel: str  #: row of the roofline that has its kernel; empty where there is none
    new: bool = False  #: an earlier commit cannot do it


def _own(name: str, side: Side, given: Given) -> Cost:
    child(side, given, name)  # compiles
    return child(side, given, name)


def _other(name: str, given: Given) -> Cost:
    return child(Side(HERE.parent, given.work), given, f"{name}-peer")


ROWS = {
    "induction": Row(
        "a treebank, 5 cycles", "released trainer", partial(training, "grammar.npz", ()), released_training, "em"
    ),
    "relaxed": Row(
        "the same, over-relaxed EM",
        "released trainer",
        partial(training, "relaxed.npz", ("relaxation=1.8", "em_split=25", "em_merge=10")),
        released_training,
        "em",
        new=True,
    ),
    "parsing": Row("a sentence, max-rule", "released parser", parsing, released_parsing, "parsing"),
    "causal": Row("a sentence", "", partial(bound, "causal", "float64"), None, "causal-float64"),
    "masked": Row("a sentence", "", partial(bound, "masked", "float64"), None, "masked-float64"),
    "conditioned": Row(
        "a sentence, 6..25 words", "", partial(bound, "conditioned", "float64"), None, "conditioned-float64"
    ),
    "causal-float32": Row("a sentence", "", partial(bound, "causal", "float32"), None, "causal-float32"),
    "next-words": Row(
        "a token, all words, unsplit", "genlm-grammar", partial(_own, "next-words"), partial(_other, "next-words"), ""
    ),
    "sampling": Row("a sentence, tree, to disk", "pcfg", sampling, partial(_other, "sampling"), "corpus"),
    **{
        f"lattice-{n}": Row(
            f"a text of {n:,} characters",
            "SentencePiece",
            partial(_own, f"lattice-{n}"),
            partial(_other, f"lattice-{n}"),
            "",
        )
        for n in STRETCHES
    },
}
JAVA_ROWS = ("induction", "relaxed", "parsing")


# -- the table ----------------------------------------------------------------------------------------------------


def shown(seconds: float) -> str:
    """A time in the unit that suits it."""
    unit, scale = next(((u, s) for u, s in (("s", 1.0), ("ms", 1e-3)) if seconds >= s), ("us", 1e-6))
    return f"{seconds / scale:.3g} {unit}"


def line(row: Row, name: str, now: Cost, before: Cost | None, peer: Cost | None, share: float | None) -> str:
    """One row as text."""
    cells = [
        shown(peer.each) if peer else "-",
        shown(before.each) if before else "-",
        shown(now.each),
        f"{peer.each / now.each:,.3g}x" if peer else "-",
        f"{before.each / now.each:.2f}x" if before else "-",
        "-" if share is None else f"{share:.0%}",
        *(f"{cost.megabytes:,.0f}" if cost else "-" for cost in (peer, before, now)),
    ]
    return f"{name:16}{row.work:28}{row.peer_name or '-':18}" + "".join(f"{cell:>10}" for cell in cells)


def table(given: Given, names: Sequence[str], before: Path | None, shares: dict[str, Any]) -> dict[str, Any]:
    """Measure and print all rows."""
    sides = {"now": Side(HERE.parent, given.work / "ours")}
    if before is not None:
        sides["before"] = Side(before.resolve(), given.work / "before")
    for side in sides.values():
        side.work.mkdir(exist_ok=True)
    heads = ("peer", "before", "now", "peer/now", "bef./now", "limit", "peer MB", "bef. MB", "now MB")
    print(f"{'row':16}{'one item':28}{'peer':18}" + "".join(f"{head:>10}" for head in heads), flush=True)
    result: dict[str, Any] = {}
    for name in names:
        row = ROWS[name]
        peer = row.peer(given) if row.peer and (given.jar or name not in JAVA_ROWS) else None
        costs = {which: row.ours(side, given) for which, side in sides.items() if which == "now" or not row.new}
        share = shares.get(row.kernel, {}).get("share")
        print(line(row, name, costs["now"], costs.get("before"), peer, share), flush=True)
        result[name] = {which: cost._asdict() for which, cost in {**costs, "peer": peer}.items() if cost}
        result[name]["share"] = share
    return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("treebank", type=Path)
    parser.add_argument("sentences", type=Path)
    parser.add_argument("--jar", type=Path)
    parser.add_argument("--before", type=Path, metavar="CHECKOUT")
    parser.add_argument("--shares", type=Path, metavar="JSON")
    parser.add_argument("--work", type=Path, default=Path("limits"), help="folder of grammars and corpora")
    parser.add_argument("--rows", default=",".join(ROWS), help=f"of {', '.join(ROWS)}")
    parser.add_argument("--quick", action="store_true", help="small sizes: to see that it runs")
    parser.add_argument("--json", type=Path, help="write all figures here")
    parser.add_argument("--child", choices=CHILDREN, help=argparse.SUPPRESS)
    options = parser.parse_args()
    given = Given(options.treebank, options.sentences, options.jar, options.work.resolve(), options.quick)
    if options.child:
        options.json.write_text(json.dumps(CHILDREN[options.child](given)), "utf-8")
        return
    names = options.rows.split(",")
    if unknown := set(names) - set(ROWS):
        parser.error(f"no such row: {', '.join(sorted(unknown))}")
    given.work.mkdir(parents=True, exist_ok=True)
    prepare(given)
    shares = json.loads(options.shares.read_text("utf-8"))["rows"] if options.shares else {}
    result = table(given, names, options.before, shares)
    if options.json:
        options.json.write_text(json.dumps(result, indent=1), "utf-8")


if __name__ == "__main__":
    main()
