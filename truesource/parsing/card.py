"""The card of a folder of trees, which also lets `datasets` load its tables."""

from __future__ import annotations

from typing import Any

from truesource.grammar.support.hub_card import dataset_card
from truesource.grammar.support.printable import markdown
from truesource.parsing.settings import ParseOutcome

_MEANINGS = {
    ParseOutcome.PARSED: "it has a tree",
    ParseOutcome.IMPOSSIBLE: "the grammar cannot make it",
    ParseOutcome.TOO_LONG: "its chart does not fit into memory",
    ParseOutcome.SKIPPED: "it has more words than the call allowed",
    ParseOutcome.EMPTY: "it has no words",
}
_LISTS = """- `data/best-*.jsonl.gz` or `data/samples-*.jsonl.gz`: several trees of each sentence that has one, with
  `score` and `log_p`, the log probability of tree and sentence (nats)
"""
_LOADING = """
`record.json` holds the whole call and the digest of every file.

## Loading
```python
from truesource.parsing.parsed import ParsedCorpus
for row, tree in ParsedCorpus.load("path/to/this/folder").trees():
    ...

from truesource.grammar.treebank import Treebank
bank = Treebank.read("path/to/this/folder")
```
"""
_RAW = """| `line` | int64 | line of the raw text on which the sentence starts, from 1 on |
| `starts`, `ends` | lists of int64 | where each word starts and ends in the raw text, in characters |
"""


def trees_card(name: str, record: dict[str, Any]) -> str:
    """README of a folder of trees.

    Args:
        name: of the folder.
        record: content of ``record.json``.
    """
    counts, settings = record["counts"], record["settings"]
    outcomes = counts["outcomes"]
    rows = "\n".join(f"| `{kind}` | {_MEANINGS[kind]} | {outcomes[kind]:,} |" for kind in ParseOutcome)
    missing = "`()`" if settings["keep_missing"] else "no line"
    text = f"""# {markdown(name)}

{outcomes[ParseOutcome.PARSED]:,} trees of {counts["sentences"]:,} sentences ({counts["words"]:,} words), parsed by
truesource: trees of a parser, not of annotators.

- `data/trees-*.mrg.gz`: Penn bracketings, one a line; a sentence without a tree has {missing}
- `data/rows-*.parquet`: one row a sentence, with or without a tree
{_LISTS if "lists" in record["shards"][0] else ""}
| column | type | meaning |
| --- | --- | --- |
| `number` | int64 | of the sentence in the input, from 1 on; of text, the number of its line |
| `words` | int32 | how many words |
| `unknown` | int32 | how many of them the lexicon of the grammar lacks |
| `outcome` | string | what became of it, see below |
| `search` | string | part of its chart that was searched: `pruned`, `looser` (with lower thresholds) or `exact` (all) |
| `score` | float64 | what the method maximises: nats, or of `max-span` expected correct spans; null without a tree |
| `logprob` | float64 | log probability of the derivation, nats; null unless the method is `viterbi` |
{_RAW if settings["raw"] else ""}
| outcome | the sentence | sentences |
| --- | --- | ---: |
{rows}

## Where it comes from
- grammar: digest `{record["grammar"]["digest"]}`
- sentences: SHA-256 `{record["input"]["digest"]}`
- settings: {", ".join(f"{key} {value}" for key, value in settings.items())}
- made with: {", ".join(f"{tool} {version}" for tool, version in record["versions"].items())}
- digest of the trees: `{record["digest"]}`
{_LOADING}"""
    return dataset_card(
        name,
        text,
        rows=counts["sentences"],
        splits=["rows"],
        license=record.get("license"),
        tasks=["token-classification"],
        tags=["treebank"],
    )
