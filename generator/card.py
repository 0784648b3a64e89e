"""The dataset card: the ``README.md`` that says what a corpus is and lets `datasets` load it."""

from __future__ import annotations

from typing import Any

_SIZES = {
    10**3: "n<1K",
    10**4: "1K<n<10K",
    10**5: "10K<n<100K",
    10**6: "100K<n<1M",
    10**7: "1M<n<10M",
    10**8: "10M<n<100M",
    10**9: "100M<n<1B",
}
_TREE_ROW = "| `tree` | string | the derivation: Penn brackets, the grammar's own symbols, binarised |\n"


def dataset_card(name: str, record: dict[str, Any], licence: str) -> str:
    """The card of a corpus, with the YAML header of the Hugging Face hub."""
    call, splits, condition = record["call"], record["splits"], record["condition"]
    total = sum(split["sentences"] for split in splits.values())
    size = next((text for limit, text in _SIZES.items() if total < limit), "n>1B")
    header = [
        "---",
        f"license: {_quoted(licence)}",
        f"pretty_name: {_quoted(name)}",
        "task_categories:",
        "- text-generation",
        "- fill-mask",
        "tags:",
        "- synthetic",
        "- pcfg",
        "- truesource",
        "size_categories:",
        f"- {size}",
        "configs:",
        "- config_name: default",
        "  data_files:",
        *(f"  - split: {split}\n    path: data/{split}-*.parquet" for split in splits),
        "---",
    ]
    rows = [
        f"| {split} | {n['sentences']:,} | {n['tokens']:,} | {_share(n, 'types')} | {_share(n, 'tokens')} |"
        for split, n in splits.items()
    ]
    reference = record["overlap_with"]
    return (
        "\n".join(header)
        + f"""

# {name}

Sentences drawn from a probabilistic context-free grammar (PCFG) by truesource: artificial text whose
distribution is known exactly.

{_condition(condition)}
Splits are independent samples of this one distribution; a sentence may occur more than once, and in
several splits.

| split | sentences | tokens | different sentences also in {reference} | sentences also in {reference} |
| --- | ---: | ---: | ---: | ---: |
{chr(10).join(rows)}

## Columns
| column | type | meaning |
| --- | --- | --- |
| `text` | string | the tokens, separated by one space |
| `n_tokens` | int32 | how many tokens, end of sentence not counted |
| `logprob` | float64 | log probability of sentence and derivation together, not conditioned on length, nats |
{_TREE_ROW if call["trees"] else ""}
## Where it comes from
- grammar: start symbol `{call["start"]}`, {_sizes(record["grammar"]["sizes"])}; SHA-256
  `{record["grammar"]["digest"]}`
- seed: {call["seed"]}, in shards of {call["shard_size"]:,} sentences
- made with: {", ".join(f"{tool} {version}" for tool, version in record["versions"].items())}
- digest of the corpus: `{record["digest"]}`

`record.json` holds the whole call and the digest of every file; `Corpus.replay` makes the same bytes again.

## Loading
```python
from truesource import Corpus
corpus = Corpus.load("path/to/this/folder")

from datasets import load_dataset
dataset = load_dataset("path/to/this/folder")

import pandas
frame = pandas.read_parquet("path/to/this/folder/data")
```
"""
    )


def _condition(condition: dict[str, Any] | None) -> str:
    if condition is None:
        return "Sentences of every length are in, as the grammar makes them: it is exactly `P(sentence)`.\n"
    low, high = condition["low"], condition["high"]
    return (
        f"Only sentences of {low} to {high} tokens (both inclusive) are in: the distribution is exactly\n"
        f"`P(sentence | {low} <= tokens <= {high})`, drawn without rejection. The grammar gives this range\n"
        f"the probability {condition['probability']:.10g} (log {condition['log_probability']:.12g} nats).\n"
    )


def _share(split: dict[str, Any], kind: str) -> str:
    return f"{split['overlap'][kind]:.2%}" if split["overlap"] else "-"


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sizes.items())


def _quoted(name: str) -> str:
    return '"' + name.replace("\\", "\\\\").replace('"', '\\"') + '"'
