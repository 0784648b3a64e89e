"""Contents of ``record.json`` and ``symbols.json`` of a corpus, checked when they are read; and its card.

The card is the ``README.md`` that says what the corpus is and lets `datasets` load it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired

from pydantic import AfterValidator, Field, with_config
from typing_extensions import TypedDict

from truesource.generator.plan import Overlap, Trees, parse_transform
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_json
from truesource.grammar.support.hub_card import dataset_card
from truesource.grammar.support.printable import markdown, markdown_code
from truesource.grammar.support.records import (
    STRICT,
    Count,
    FileName,
    Positive,
    Probability,
    decode_record,
    read_record,
)

FORMAT = "truesource corpus"
FORMAT_VERSION = 4
_WHAT, _REMEDY = "the record of this corpus", "sample the corpus again"
_ROWS = {
    "split": "| `split` | string | the name of the split |",
    "ids trees": "| `tree` | list of int16 or int32 | nodes of the derivation in preorder, `3 * symbol + children`:"
    " symbols are numbered as in `symbols.json`, children are 2, 1, or 0 where a word stands under the node |",
    "text trees": "| `tree` | string | the derivation as a Penn bracketing with treebank labels; in words and labels,"
    r" brackets, white space and `\\` before `x` are written as their number, `\\x28` for an opening bracket |",
    "string_logprob": "| `string_logprob` | float64 | log probability of the sentence, all its derivations together,"
    " not conditioned on length, nats |",
    "language": "| `language` | int32 | number, from 0 on, of the language of the document in `languages` of the truth;"
    " where it may change within a document, that of the last string |",
    "ids": "| `ids` | list of int32 | the tokens, numbered as `words` of `symbols.json` |",
}
_BRACKETS = """trees = corpus.brackets("{split}")                                  # Penn brackets, treebank labels
"""
_SYMBOLS = """trees = corpus.brackets("{split}", coarse=False, binarised=True)    # as the grammar has them
"""
_DATASETS = """
from datasets import load_dataset
dataset = load_dataset("path/to/this/folder")
"""
_ALL_SPLITS = """
from pathlib import Path
import pandas
frame = pandas.read_parquet(sorted(Path("path/to/this/folder/data").glob("{split}-*.parquet")))
"""
_ONE_SPLIT = """
import pandas
frame = pandas.read_parquet("path/to/this/folder/data", filters=[("split", "==", "{split}")])
"""


def _length_range(text: str) -> str:
    LengthRange.parse(text)
    return text


def _transform(text: str) -> str:
    return str(parse_transform(text))


Lengths = Annotated[str, AfterValidator(_length_range)]  #: such as ``4..30``
Transform = Annotated[str, AfterValidator(_transform)]  #: such as ``block-shuffle:size=3,seed=7``


@with_config(STRICT)
class Call(TypedDict):
    """Settings that were asked for; see `truesource.generator.plan.Plan`."""

    splits: dict[str, Positive]
    seed: Annotated[int, Field(ge=0)]
    lengths: Lengths | None
    overlap: Overlap
    max_height: Positive | None
    trees: Trees
    string_logprob: bool
    ids: bool
    split: bool
    shard_size: Positive
    transform: NotRequired[Transform]
    start: NotRequired[str]


@with_config(STRICT)
class Condition(TypedDict):
    """The length range, and the probability that the grammar gives it."""

    low: Count
    high: Count
    probability: Probability
    log_probability: float


@with_config(STRICT)
class HeightCap(TypedDict):
    """The highest trees, their probability, and mean lengths with and without the cap."""

    max_height: Positive
    probability: Probability
    log_probability: float
    mean_tokens: float
    mean_tokens_without: float


@with_config(STRICT)
class TransformRecord(TypedDict):
    """Order of the words of the text, which probabilities are exact, and of which text the trees are."""

    spec: Transform
    exact: list[Literal["sentence", "masked token", "causal token"]]
    trees: Literal["original order"]


@with_config(STRICT)
class Excluded(TypedDict):
    """Mass that a disjoint split leaves out; see `truesource.generator.shard_writer`."""

    probability: Probability
    interval: tuple[float, float] | None
    exact: bool
    drawn: Count
    log_correction: float


@with_config(STRICT)
class Shares(TypedDict):
    """How much of a split also occurs in the reference split: of its different sentences, and of all."""

    types: Probability
    tokens: Probability


@with_config(STRICT)
class SplitRecord(TypedDict):
    """Counts of one split."""

    sentences: Positive
    tokens: Count
    different: NotRequired[Positive]
    overlap: NotRequired[Shares | None]
    excluded: NotRequired[Excluded | None]


@with_config(STRICT)
class ShardEntry(TypedDict):
    """One file."""

    file: FileName
    split: str
    sentences: Positive
    tokens: Count
    drawn: Count
    bytes: Count
    sha256: str


@with_config(STRICT)
class Unique(TypedDict):
    """Counts of unique splits: sentences drawn, and how many of them repeated an earlier one."""

    drawn: Count
    repeated: Count


@with_config(STRICT)
class GrammarOfCorpus(TypedDict):
    """Digest and sizes of the grammar; of a process its reference too."""

    digest: str
    process: NotRequired[str]
    sizes: NotRequired[dict[str, Count]]


@with_config(STRICT)
class _Head(TypedDict):
    """Keys that records of all versions have."""

    format: Literal["truesource corpus"]
    format_version: int


@with_config(STRICT)
class CorpusRecord(TypedDict):
    """``record.json``."""

    format: Literal["truesource corpus"]
    format_version: int
    call: Call
    grammar: GrammarOfCorpus
    drawn_by: str
    license: NotRequired[str]
    language: NotRequired[str]
    versions: dict[str, str]
    transform: NotRequired[TransformRecord]
    condition: NotRequired[Condition | None]
    height_cap: NotRequired[HeightCap | None]
    unique: NotRequired[Unique]
    splits: dict[str, SplitRecord]
    overlap_with: NotRequired[str]
    shards: list[ShardEntry]
    digest: str
    symbols_digest: NotRequired[str]


@with_config(STRICT)
class SymbolKey(TypedDict):
    """``symbols.json``: symbols by number with their treebank labels, and what is spelled differently in the files."""

    symbols: list[str]
    labels: list[str]
    original_symbols: dict[str, str]
    original_words: dict[str, str]
    words: NotRequired[list[str]]


def read_corpus_record(file: Path) -> dict[str, Any]:
    """Read ``record.json``; optional entries that it lacks are None.

    Raises:
        InputError: it is missing, damaged, of another version, or contradicts itself.
    """
    absent = "this is not a finished corpus, record.json is missing; name the folder of one, or sample it again"
    head = read_record(file, _Head, what=_WHAT, remedy=_REMEDY, absent=absent)
    _check_version(head["format_version"], file)
    return _completed(read_record(file, CorpusRecord, what=_WHAT, remedy=_REMEDY), file)


def check_corpus_record(record: Mapping[str, Any]) -> dict[str, Any]:
    """Check a record that is in memory, as `read_corpus_record` does."""
    text = json.dumps(dict(record))
    _check_version(decode_record(text, _Head, what=_WHAT, remedy=_REMEDY)["format_version"], None)
    return _completed(decode_record(text, CorpusRecord, what=_WHAT, remedy=_REMEDY), None)


def read_symbol_key(file: Path, digest: str | None) -> SymbolKey:
    """Read ``symbols.json``.

    Args:
        file: its path.
        digest: its digest, as the record of the corpus has it; None: the record has none.

    Raises:
        InputError: it is missing or damaged.
    """
    key = read_record(file, SymbolKey, what="the table of symbols", remedy=_REMEDY)
    if digest not in (None, digest_json(key)):
        raise InputError(f"the table of symbols is damaged: it is not the one of record.json; {_REMEDY}", file)
    if len(key["symbols"]) != len(key["labels"]):
        raise InputError(f"the table of symbols is damaged: not one label a symbol; {_REMEDY}", file)
    return key


def _check_version(version: int, file: Path | None) -> None:
    if version != FORMAT_VERSION:
        raise InputError(f"expecting format version {FORMAT_VERSION} of a corpus, got {version}; {_REMEDY}", file)


def _completed(record: CorpusRecord, file: Path | None) -> dict[str, Any]:
    """The record with None for what is absent; its counts must agree."""
    result = dict.fromkeys(record["splits"], (0, 0))
    for shard in record["shards"]:
        sentences, tokens = result.get(shard["split"], (0, 0))
        result[shard["split"]] = sentences + shard["sentences"], tokens + shard["tokens"]
    if result != {name: (split["sentences"], split["tokens"]) for name, split in record["splits"].items()}:
        raise InputError(f"{_WHAT} is damaged: its shards do not add up to its splits; {_REMEDY}", file)
    if len({shard["file"] for shard in record["shards"]}) != len(record["shards"]):
        raise InputError(f"{_WHAT} is damaged: it names a file twice; {_REMEDY}", file)
    optional = {"different": None, "overlap": None, "excluded": None}
    splits = {name: {**optional, **split} for name, split in record["splits"].items()}
    call = {"split": record["call"]["split"], **record["call"]}  # in the order of JSON results
    absent = {"condition": None, "height_cap": None, "overlap_with": None, "symbols_digest": None}
    return {**absent, **record, "call": call, "splits": splits}


def corpus_card(name: str, record: dict[str, Any]) -> str:
    """The card of a corpus.

    Args:
        name: of the folder.
        record: content of ``record.json``.
    """
    splits = record["splits"]
    return dataset_card(
        name,
        _text(name, record),
        rows=sum(split["sentences"] for split in splits.values()),
        splits=[*splits],
        license=record.get("license"),
        tasks=["text-generation", "fill-mask"],
        tags=["synthetic", *([] if "process" in record["grammar"] else ["pcfg"])],
        language=record.get("language"),
    )


def _text(name: str, record: dict[str, Any]) -> str:
    call, splits, condition = record["call"], record["splits"], record["condition"]
    rows = [
        f"| {split} | {n['sentences']:,} | {n['tokens']:,} | {n['different']:,} | {_share(n, 'types')} |"
        f" {_share(n, 'tokens')} |"
        for split, n in splits.items()
    ]
    reference = record["overlap_with"]
    present = {name for name in ("split", "string_logprob", "ids") if call[name]} | {f"{call['trees']} trees"}
    if "languages" in record["grammar"].get("sizes", {}):
        present.add("language")
    kind = "a process" if "process" in record["grammar"] else "a probabilistic context-free grammar (PCFG)"
    return f"""# {markdown(name)}

Sentences drawn from {kind} by truesource: artificial text whose
distribution is known exactly.

{_condition(condition)}{_height_cap(record["height_cap"])}{_transform_text(record.get("transform"))}
{_overlap(record)}
| split | sentences | tokens | different sentences | of them in {reference} too | sentences in {reference} too |
| --- | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

## Columns
| column | type | meaning |
| --- | --- | --- |
| `text` | string | the tokens, separated by one space |
| `n_tokens` | int32 | how many tokens, end of sentence not counted |
| `logprob` | float64 | log probability of sentence and derivation together, not conditioned on length, nats |
{"".join(row + chr(10) for name, row in _ROWS.items() if name in present)}
## Where it comes from
- {_truth(record)}; SHA-256
  `{record["grammar"]["digest"]}`
- seed: {call["seed"]}, in shards of {call["shard_size"]:,} sentences
- made with: {", ".join(f"{tool} {version}" for tool, version in record["versions"].items())}
- digest of the corpus: `{record["digest"]}`

`record.json` holds the whole call and the digest of every file; `Corpus.replay` makes the same bytes{_file(record)}

## Loading
```python
from truesource import Corpus
corpus = Corpus.load("path/to/this/folder")
{_loading(call, next(iter(splits)))}```
"""


def _truth(record: dict[str, Any]) -> str:
    grammar = record["grammar"]
    if "process" in grammar:
        return f"process {markdown_code(grammar['process'])}, {_sizes(grammar['sizes'])}"
    return f"grammar: start symbol {markdown_code(record['call']['start'])}, {_sizes(grammar['sizes'])}"


def _file(record: dict[str, Any]) -> str:
    if "process" in record["grammar"] and "language" not in record:
        return " again.\nThe process is code of one's own, which is no file of this folder."
    if "process" in record["grammar"]:
        return " again. `load_truth` of\n`truesource.grammar.truth` reads `grammar.npz`, which names the process."
    return " again. The grammar\nitself is `grammar.npz`."


def _loading(call: dict[str, Any], split: str) -> str:
    brackets = "" if call["trees"] == "none" else _BRACKETS.format(split=split)
    symbols = _SYMBOLS.format(split=split) if call["trees"] == "ids" else ""
    pandas = _ONE_SPLIT if call["split"] else _ALL_SPLITS
    return brackets + symbols + _DATASETS + pandas.format(split=split)


def _condition(condition: dict[str, Any] | None) -> str:
    if condition is None:
        return "Sentences of every length are in, as the grammar makes them: it is exactly `P(sentence)`.\n"
    low, high = condition["low"], condition["high"]
    return (
        f"Only sentences of {low} to {high} tokens (both inclusive) are in: the distribution is exactly\n"
        f"`P(sentence | {low} <= tokens <= {high})`, drawn without rejection. The grammar gives this range\n"
        f"the probability {condition['probability']:.10g} (log {condition['log_probability']:.12g} nats).\n"
    )


def _height_cap(cap: dict[str, Any] | None) -> str:
    if cap is None:
        return ""
    return (
        f"\nTrees higher than {cap['max_height']} (binarised, words counted) were thrown away and drawn again, as\n"
        f"in the published pipeline: {1.0 - cap['probability']:.3g} of the probability. The mean length is\n"
        f"{cap['mean_tokens']:.4f} tokens, {cap['mean_tokens_without']:.4f} without the cap. An oracle without it\n"
        f"gives every sentence up to {-cap['log_probability']:.3g} nats too little.\n"
    )


def _transform_text(transform: dict[str, Any] | None) -> str:
    if transform is None:
        return ""
    tokens = (
        "Each token given those before it has\nthe probability that the mirrored grammar gives it."
        if "causal token" in transform["exact"]
        else "The probability of a token given those\nbefore it is not known."
    )
    return (
        "\nThe words of each sentence of n words stand in an order that depends on n alone, the transform\n"
        f"{markdown_code(transform['spec'])} of the sentence that the grammar made. A sentence has exactly the\n"
        "probability of its original, and a token given all others has exactly that of the same word there.\n"
        f"{tokens} The columns `tree` and `logprob` are those of the original, in the order of the\n"
        "grammar: the leaves of a tree are not the words of `text` from left to right (`Corpus.trees` and\n"
        "`Corpus.originals` restore them).\n"
    )


def _overlap(record: dict[str, Any]) -> str:
    kind = record["call"]["overlap"]
    if kind == "iid":
        return (
            "Splits are independent samples of this one distribution; a sentence may occur more than once, and in\n"
            "several splits.\n"
        )
    if kind == "unique":
        drawn, repeated = record["unique"]["drawn"], record["unique"]["repeated"]
        return (
            f"No sentence occurs twice. {drawn:,} sentences were drawn; the {repeated:,} that repeated an earlier one\n"
            f"({repeated / drawn:.2%}) were left out, and the others dealt to the splits at random. So frequent\n"
            "sentences are rarer here than in the language, and the probabilities above are not those of this sample.\n"
        )
    lines = [
        "No split has a sentence of an earlier one (within a split, sentences may repeat). A split that leaves out a\n"
        "set S of sentences follows `P(sentence) / (1 - P(S))`: that is a constant to add to every log probability.\n\n"
        "| split | P(S) | add, nats per sentence |\n| --- | ---: | ---: |\n"
    ]
    for split, n in record["splits"].items():
        result = n["excluded"]
        if result:
            ends = result["interval"]
            estimated = "few sentences, no interval" if ends is None else "95% interval {:.6g} to {:.6g}".format(*ends)
            how = "exact" if result["exact"] else estimated
            lines.append(f"| {split} | {result['probability']:.8g} ({how}) | {result['log_correction']:.8g} |\n")
    return "".join(lines)


def _share(split: dict[str, Any], kind: str) -> str:
    return f"{split['overlap'][kind]:.2%}" if split["overlap"] else "-"


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sizes.items())
