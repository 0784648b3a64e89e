"""The dataset card of a corpus: the ``README.md`` that describes it and lets `datasets` load it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from truesource.generator.corpus_record import Call, Condition, CorpusRecord, HeightCap, SplitRecord, TransformRecord
from truesource.grammar.support.hub_card import dataset_card
from truesource.grammar.support.printable import markdown, markdown_code

_ROWS = {
    "split": "| `split` | string | the name of the split |",
    "ids trees": "| `tree` | list of int16 or int32 | nodes of the derivation in preorder, `3 * symbol + children`:"
    " symbols are numbered as in `symbols.json`, children are 2, 1, or 0 for a node above a word |",
    "text trees": "| `tree` | string | the derivation as a Penn bracketing with treebank labels; in words and labels,"
    r" brackets, white space and `\\` before `x` are escaped by their code, `\\x28` for an opening bracket |",
    "string_logprob": "| `string_logprob` | float64 | log probability of the sentence, summed over its derivations,"
    " not conditioned on length, nats |",
    "language": "| `language` | int32 | number, from 0 on, of the language of the document in `languages` of the truth;"
    " if it may change within a document, the language of the last string |",
    "ids": "| `ids` | list of int32 | the tokens, numbered as `words` of `symbols.json` |",
}
_BRACKETS = """trees = corpus.brackets("{split}")                                  # Penn brackets, treebank labels
"""
_SYMBOLS = """trees = corpus.brackets("{split}", coarse=False, binarised=True)    # symbols of the grammar
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


def corpus_card(name: str, record: CorpusRecord, *, license: str | None = None) -> str:  # noqa: A002
    """Return the card of a corpus.

    Args:
        name: name of the folder.
        record: content of ``record.json``.
        license: an SPDX identifier; None: the licence of the record, if any.
    """
    splits = record["splits"]
    return dataset_card(
        name,
        _text(name, record),
        rows=sum(split["sentences"] for split in splits.values()),
        splits=[*splits],
        license=record.get("license") if license is None else license,
        tasks=["text-generation", "fill-mask"],
        tags=["synthetic", *([] if "process" in record["grammar"] else ["pcfg"])],
        language=record.get("language"),
    )


def _text(name: str, record: CorpusRecord) -> str:
    call, splits, condition = record["call"], record["splits"], record["condition"]
    rows = [
        f"| {split} | {n['sentences']:,} | {n['tokens']:,} | {n['different']:,} | {_share(n, 'types')} |"
        f" {_share(n, 'tokens')} |"
        for split, n in splits.items()
    ]
    reference = record["overlap_with"]
    names: tuple[Literal["split", "string_logprob", "ids"], ...] = ("split", "string_logprob", "ids")
    present = {f"{call['trees']} trees", *(name for name in names if call[name])}
    if "languages" in record["grammar"].get("sizes", {}):
        present.add("language")
    kind = "a process" if "process" in record["grammar"] else "a probabilistic context-free grammar (PCFG)"
    return f"""# {markdown(name)}

Sentences drawn from {kind} by truesource: artificial text whose
distribution is known exactly.

{_condition(condition)}{_height_cap(record["height_cap"])}{_transform_text(record.get("transform"))}
{_overlap(record)}
| split | sentences | tokens | different sentences | of them also in {reference} | sentences also in {reference} |
| --- | ---: | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

## Columns
| column | type | meaning |
| --- | --- | --- |
| `text` | string | the tokens, separated by one space |
| `n_tokens` | int32 | number of tokens, without the end of sentence |
| `logprob` | float64 | log probability of sentence and derivation, not conditioned on length, nats |
{"".join(row + chr(10) for name, row in _ROWS.items() if name in present)}
## Source
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


def _truth(record: CorpusRecord) -> str:
    grammar = record["grammar"]
    if "process" in grammar:
        return f"process {markdown_code(grammar['process'])}, {_sizes(grammar['sizes'])}"
    return f"grammar: start symbol {markdown_code(record['call']['start'])}, {_sizes(grammar['sizes'])}"


def _file(record: CorpusRecord) -> str:
    if "process" in record["grammar"] and "language" not in record:
        return " again.\nThe process is custom code, which is not in this folder."
    if "process" in record["grammar"]:
        return " again. `load_truth` of\n`truesource.grammar.truth` reads `grammar.npz`, which names the process."
    return " again. The grammar\nitself is `grammar.npz`."


def _loading(call: Call, split: str) -> str:
    brackets = "" if call["trees"] == "none" else _BRACKETS.format(split=split)
    symbols = _SYMBOLS.format(split=split) if call["trees"] == "ids" else ""
    pandas = _ONE_SPLIT if call["split"] else _ALL_SPLITS
    return brackets + symbols + _DATASETS + pandas.format(split=split)


def _condition(condition: Condition | None) -> str:
    if condition is None:
        return "Sentences have every length of the grammar: the distribution is exactly `P(sentence)`.\n"
    low, high = condition["low"], condition["high"]
    return (
        f"Only sentences of {low} to {high} tokens (both inclusive) are included: the distribution is exactly\n"
        f"`P(sentence | {low} <= tokens <= {high})`, drawn without rejection. The grammar gives this range\n"
        f"the probability {condition['probability']:.10g} (log {condition['log_probability']:.12g} nats).\n"
    )


def _height_cap(cap: HeightCap | None) -> str:
    if cap is None:
        return ""
    return (
        f"\nTrees higher than {cap['max_height']} (binarised, words counted) were rejected and redrawn, as\n"
        f"in the published pipeline: {1.0 - cap['probability']:.3g} of the probability. The mean length is\n"
        f"{cap['mean_tokens']:.4f} tokens, {cap['mean_tokens_without']:.4f} without the cap. An oracle without it\n"
        f"gives every sentence up to {-cap['log_probability']:.3g} nats too little.\n"
    )


def _transform_text(transform: TransformRecord | None) -> str:
    if transform is None:
        return ""
    tokens = (
        "Each token given the previous ones has\nits probability in the mirrored grammar."
        if "causal token" in transform["exact"]
        else "The probability of a token given the\nprevious ones is unknown."
    )
    return (
        "\nThe words of each sentence of n words are in an order that depends only on n, the transform\n"
        f"{markdown_code(transform['spec'])} of a sentence of the grammar. A sentence has exactly the\n"
        "probability of its original, and a token given all others has exactly its probability there.\n"
        f"{tokens} The columns `tree` and `logprob` belong to the original, in the order of the\n"
        "grammar: the leaves of a tree are not the words of `text` from left to right (`Corpus.trees` and\n"
        "`Corpus.originals` restore them).\n"
    )


def _overlap(record: CorpusRecord) -> str:
    kind = record["call"]["overlap"]
    if kind == "iid":
        return (
            "Splits are independent samples of this one distribution; a sentence may occur more than once, and in\n"
            "several splits.\n"
        )
    if kind == "unique":
        sampled, repeated = record["unique"]["drawn"], record["unique"]["repeated"]
        return (
            f"No sentence occurs twice. {sampled:,} sentences were drawn; {repeated:,} repeated an earlier one and\n"
            f"were discarded ({repeated / sampled:.2%}); the others were dealt to the splits at random. So frequent\n"
            "sentences are rarer here than in the language, and the probabilities above do not apply to this sample.\n"
        )
    lines = [
        "No split has a sentence of an earlier one (within a split, sentences may repeat). A split that excludes a\n"
        "set S of sentences follows `P(sentence) / (1 - P(S))`: add this constant to every log probability.\n\n"
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


def _share(split: SplitRecord, kind: Literal["types", "tokens"]) -> str:
    return f"{split['overlap'][kind]:.2%}" if split["overlap"] else "-"


def _sizes(sizes: Mapping[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sizes.items())
