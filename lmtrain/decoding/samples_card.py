"""The dataset card of a folder of samples."""

from __future__ import annotations

from pathlib import Path

from truesource.grammar.support.hub_card import dataset_card
from truesource.grammar.support.printable import markdown
from truesource.grammar.support.records import read_record
from truesource.lmtrain.decoding.folder import SamplesRecord
from truesource.lmtrain.decoding.settings import Decoding

_LOADING = """
`record.json` holds the whole call and the digest of every file.

## Loading
```python
from truesource.lmtrain.decoding.folder import SampleFolder
samples = SampleFolder.load("path/to/this/folder").sentences()

from datasets import load_dataset
dataset = load_dataset("path/to/this/folder")

import pandas
frame = pandas.read_parquet("path/to/this/folder/data")
```
"""
_GROUP = "| `group` | int64 | number of the beam: sentences of one beam are not independent |\n"


def samples_card(name: str, folder: Path, split: str) -> str:
    """Return the README of a folder of samples.

    Args:
        name: of the folder.
        folder: at present, with ``record.json``.
        split: name that the files begin with.

    Raises:
        InputError: the record is damaged.
    """
    record = read_record(folder / "record.json", SamplesRecord, remedy="draw them again")
    call, counts, model = record["call"], record["counts"], record["model"]
    cut = counts["sentences"] - counts["finished"]
    mean = f"{counts['finished_tokens'] / counts['finished']:.4f}" if counts["finished"] else "-"
    special = counts["special"] / counts["contexts"]
    decoding = Decoding.from_record(call["decoding"])
    text = f"""# {markdown(name)}

{counts["sentences"]:,} sentences drawn by truesource from the language model {markdown(model["name"])}.

- decoding: `{decoding}`
- cut after {decoding.max_tokens} tokens, not ended by the model: {cut:,} ({cut / counts["sentences"]:.3%}); mean
  length of the others: {mean} words
- mean probability that the model gave to tokens that no sentence contains, left to the others in proportion:
  {special:.3g}

| column | type | meaning |
| --- | --- | --- |
| `text` | string | the words, separated by one space |
| `n_tokens` | int32 | how many words, end of sentence not counted |
| `finished` | bool | whether the model ended the sentence; if not, it was cut, and has no length of its own |
| `logprob` | float64 | log probability under the model itself, whatever the decoding; with the end if finished; nats |
{_GROUP if decoding.keep == "all" else ""}
## Provenance
- model: SHA-256 `{model["digest"]}`
- seed: {call["seed"]}, in shards of {call["shard_size"]:,} sentences, {call["rows"]:,} rows at a time
- drawn on: {record["device"]}
- made with: {", ".join(f"{tool} {version}" for tool, version in record["versions"].items())}
- digest of the samples: `{record["digest"]}`
{_LOADING}"""
    return dataset_card(
        name,
        text,
        rows=counts["sentences"],
        splits=[split],
        license=record.get("license"),
        tasks=["text-generation"],
        tags=["synthetic"],
        language=record.get("language"),
    )
