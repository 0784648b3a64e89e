"""Cards: the metadata that the hub reads."""

from __future__ import annotations

from typing import Any

import pytest
import yaml
from huggingface_hub import DatasetCard, EvalResult, ModelCard
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.support.errors import InputError
from truesource.grammar.support.hub_card import checked_license, dataset_card, license_fields, model_card
from truesource.grammar.support.printable import one_line

DATASET: dict[str, Any] = {"rows": 1000, "splits": ["train", "dev"], "tasks": ["text-generation"], "tags": ["pcfg"]}


@pytest.mark.long
@given(st.text(st.characters(codec=None, categories=None)))
def test_a_name_stays_what_it_is_and_adds_no_field(name: str) -> None:
    card = dataset_card(name, "# text\n", license=None, **DATASET)
    _, header, body = card.split("---\n")
    assert yaml.safe_load(header) == {
        "license": "unknown",
        "pretty_name": one_line(name),
        "task_categories": ["text-generation"],
        "tags": ["pcfg", "truesource"],
        "size_categories": ["1K<n<10K"],
        "configs": [
            {
                "config_name": "default",
                "data_files": [{"split": s, "path": f"data/{s}-*.parquet"} for s in ("train", "dev")],
            }
        ],
    }
    assert body == "\n# text\n"
    assert str(DatasetCard(card)) == card


def test_a_text_is_no_template() -> None:
    assert "{{ 7 * 7 }} {% if %}\n" in dataset_card("a", "{{ 7 * 7 }} {% if %}\n", license="MIT", **DATASET)


@pytest.mark.parametrize(
    ("rows", "size"), [(999, "n<1K"), (1000, "1K<n<10K"), (10**9 - 1, "100M<n<1B"), (10**9, "n>1B")]
)
def test_sizes(rows: int, size: str) -> None:
    card = DatasetCard(dataset_card("a", "", license=None, **{**DATASET, "rows": rows}))
    assert card.data["size_categories"] == [size]


@pytest.mark.parametrize(
    ("given", "fields"),
    [
        (None, {"license": "unknown"}),
        ("unknown", {"license": "unknown"}),
        ("Apache-2.0", {"license": "apache-2.0"}),
        ("GPL-3.0-or-later", {"license": "gpl-3.0"}),
        ("ODC-By-1.0", {"license": "odc-by"}),
        ("LicenseRef-LDC", {"license": "other", "license_name": "licenseref-ldc"}),
        ('mit"\ntags: [evil]', {"license": "other"}),
    ],
)
def test_licences_are_those_of_the_hub(given: str | None, fields: dict[str, str]) -> None:
    assert license_fields(given) == fields


def test_a_licence_is_an_identifier() -> None:
    assert checked_license("CC-BY-4.0") == "CC-BY-4.0"
    for text in ("", "my licence", "MIT\n", "-MIT"):
        with pytest.raises(InputError, match="SPDX identifier"):
            checked_license(text)


def test_results_are_a_model_index() -> None:
    results = [
        EvalResult("text-generation", "corpus", "corpus (eval)", name, value, dataset_split="eval")
        for name, value in (("perplexity", 71.5), ("relative-perplexity", 1.16))
    ]
    about: dict[str, Any] = {"license": "MIT", "tags": ["synthetic"], "library": "transformers", "task": "fill-mask"}
    card = model_card("bert", "# bert\n", results=results, **about)
    header = yaml.safe_load(card.split("---\n")[1])
    (index,) = header["model-index"]
    assert index["name"] == "bert"
    ((found,), metrics) = index["results"], index["results"][0]["metrics"]
    assert found["dataset"] == {"name": "corpus (eval)", "type": "corpus", "split": "eval"}
    assert [(m["type"], m["value"]) for m in metrics] == [("perplexity", 71.5), ("relative-perplexity", 1.16)]
    assert ModelCard(card).data.eval_results == results
    assert "model-index" not in yaml.safe_load(model_card("bert", "", **about).split("---\n")[1])
