"""The dataset card: the ``README.md`` that says what a corpus is and lets `datasets` load it."""

from __future__ import annotations

from typing import Any

from truesource.grammar.support.printable import markdown, markdown_code, yaml_string

_SIZES = {
    10**3: "n<1K",
    10**4: "1K<n<10K",
    10**5: "10K<n<100K",
    10**6: "100K<n<1M",
    10**7: "1M<n<10M",
    10**8: "10M<n<100M",
    10**9: "100M<n<1B",
}
_ROWS = {
    "trees": "| `tree` | list of int16 or int32 | nodes of the derivation in preorder, `3 * symbol + children`:"
    " symbols are numbered as in `symbols.json`, children are 2, 1, or 0 where a word stands under the node |",
    "string_logprob": "| `string_logprob` | float64 | log probability of the sentence, all its derivations together,"
    " not conditioned on length, nats |",
    "ids": "| `ids` | list of int32 | the tokens, numbered as `words` of `symbols.json` |",
}
_TREES = """trees = corpus.brackets("{split}")                                  # Penn brackets, treebank labels
trees = corpus.brackets("{split}", coarse=False, binarised=True)    # as the grammar has them
"""


def size_category(sentences: int) -> str:
    """What the Hugging Face hub calls a dataset of so many rows."""
    return next((text for limit, text in _SIZES.items() if sentences < limit), "n>1B")


def _header(name: str, splits: dict[str, Any], licence: str) -> str:
    """The YAML header that the Hugging Face hub reads."""
    lines = [
        "---",
        f"license: {yaml_string(licence)}",
        f"pretty_name: {yaml_string(name)}",
        "task_categories:",
        "- text-generation",
        "- fill-mask",
        "tags:",
        "- synthetic",
        "- pcfg",
        "- truesource",
        "size_categories:",
        f"- {size_category(sum(split['sentences'] for split in splits.values()))}",
        "configs:",
        "- config_name: default",
        "  data_files:",
        *(f"  - split: {split}\n    path: data/{split}-*.parquet" for split in splits),
        "---",
    ]
    return "\n".join(lines)


def dataset_card(name: str, record: dict[str, Any], licence: str) -> str:
    """The card of a corpus, with the YAML header of the Hugging Face hub."""
    call, splits, condition = record["call"], record["splits"], record["condition"]
    rows = [
        f"| {split} | {n['sentences']:,} | {n['tokens']:,} | {n['different']:,} | {_share(n, 'types')} |"
        f" {_share(n, 'tokens')} |"
        for split, n in splits.items()
    ]
    reference = record["overlap_with"]
    return (
        _header(name, splits, licence)
        + f"""

# {markdown(name)}

Sentences drawn from a probabilistic context-free grammar (PCFG) by truesource: artificial text whose
distribution is known exactly.

{_condition(condition)}{_height_cap(record["height_cap"])}{_transform(record.get("transform"))}
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
{"".join(row + chr(10) for name, row in _ROWS.items() if call[name])}
## Where it comes from
- grammar: start symbol {markdown_code(call["start"])}, {_sizes(record["grammar"]["sizes"])}; SHA-256
  `{record["grammar"]["digest"]}`
- seed: {call["seed"]}, in shards of {call["shard_size"]:,} sentences
- made with: {", ".join(f"{tool} {version}" for tool, version in record["versions"].items())}
- digest of the corpus: `{record["digest"]}`

`record.json` holds the whole call and the digest of every file; `Corpus.replay` makes the same bytes again. The grammar
itself is `grammar.npz`.

## Loading
```python
from truesource import Corpus
corpus = Corpus.load("path/to/this/folder")
{_TREES.format(split=next(iter(splits))) if call["trees"] else ""}
from datasets import load_dataset
dataset = load_dataset("path/to/this/folder")

from pathlib import Path
import pandas
frame = pandas.read_parquet(sorted(Path("path/to/this/folder/data").glob("{next(iter(splits))}-*.parquet")))
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


def _height_cap(cap: dict[str, Any] | None) -> str:
    if cap is None:
        return ""
    return (
        f"\nTrees higher than {cap['max_height']} (binarised, words counted) were thrown away and drawn again, as\n"
        f"in the published pipeline: {1.0 - cap['probability']:.3g} of the probability. The mean length is\n"
        f"{cap['mean_tokens']:.4f} tokens, {cap['mean_tokens_without']:.4f} without the cap. An oracle without it\n"
        f"gives every sentence up to {-cap['log_probability']:.3g} nats too little.\n"
    )


def _transform(transform: dict[str, Any] | None) -> str:
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
        found = n["excluded"]
        if found:
            how = "exact" if found["exact"] else "95% interval {:.6g} to {:.6g}".format(*found["interval"])
            lines.append(f"| {split} | {found['probability']:.8g} ({how}) | {found['log_correction']:.8g} |\n")
    return "".join(lines)


def _share(split: dict[str, Any], kind: str) -> str:
    return f"{split['overlap'][kind]:.2%}" if split["overlap"] else "-"


def _sizes(sizes: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {what}" for what, count in sizes.items())
