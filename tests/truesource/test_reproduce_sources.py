"""`truesource reproduce`: records of texts, whose source is a model with seeds or none, and the order of rows."""

from __future__ import annotations

import json
from itertools import pairwise
from pathlib import Path

from truesource.cli.reproduce import by_configuration
from truesource.run.config import RunConfig
from truesource.studies.reproduce.quantities import measured
from truesource.studies.reproduce.rows import Quantity, compose, find_rows
from truesource.studies.reproduce.run_records import of_run


def test_the_source_of_a_text_is_a_model_with_its_seed(tmp_path: Path) -> None:
    (row,) = find_rows("mc-table-6")
    (composed,) = compose(row)
    assert isinstance(composed.config, RunConfig)
    values = {"lstm-seed1": 0.1, "lstm-seed2": 0.2, "lstm-seed3": 0.6, "trigram": 0.5, "reference": 0.7}
    records = [
        {"scheme": "ancestral", "source": source, "name": "length_ks", "value": value, "low": None, "high": None}
        for source, value in values.items()
    ]
    (tmp_path / "tendencies").mkdir()
    content = {"against": "sample", "records": records}
    (tmp_path / "tendencies" / "tendencies.json").write_text(json.dumps(content), encoding="utf-8")
    found = of_run(tmp_path, composed.config)
    wanted = {
        "lstm": Quantity(record="length_ks", of="lstm", scheme="ancestral"),
        "trigram": Quantity(record="length_ks", of="trigram", scheme="ancestral"),
        "text": Quantity(record="length_ks", source="reference", scheme="ancestral"),
    }
    read = measured(wanted, {"meister2021": found}, {})
    assert read["lstm"].by_seed == {1: 0.1, 2: 0.2, 3: 0.6}
    assert (read["trigram"].value, read["text"].value) == (0.5, 0.7)


def test_rows_of_one_configuration_follow_each_other() -> None:
    rows = find_rows("meister2021")
    ordered = by_configuration(rows)
    assert sorted(row.name for row in ordered) == sorted(row.name for row in rows)
    runs = [tuple(row.run) for row in ordered]
    changes = sum(one != other for one, other in pairwise(runs))
    assert changes == len(set(runs)) - 1 == 1
    of_text = [row.name for row in rows if row.run == ["meister2021"]]
    assert [row.name for row in ordered][: len(of_text)] == of_text
