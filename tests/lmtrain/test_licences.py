"""The licence goes from the corpus to the model, and from the model to its samples, unless one is given."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import language
from truesource.grammar.support.errors import InputError
from truesource.lmtrain.decoding.sample_builder import make_samples
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.model_registry import model_settings
from truesource.lmtrain.training import train

TRIGRAMS = model_settings(architecture="ngram", order=3)


def header(folder: Path) -> dict[str, object]:
    found: dict[str, object] = yaml.safe_load((folder / "README.md").read_text(encoding="utf-8").split("---\n")[1])
    return found


@pytest.mark.long
@pytest.mark.parametrize(("given", "licence"), [(None, "apache-2.0"), ("CC-BY-SA-4.0", "cc-by-sa-4.0")])
def test_the_licence_is_handed_on(given: str | None, licence: str, tmp_path: Path) -> None:
    corpus = Corpus.sample(language("dyck"), {"train": 200}, seed=1, path=tmp_path / "c")
    assert (header(corpus.path)["license"], header(corpus.path)["language"]) == ("apache-2.0", "art")
    train(corpus, TRIGRAMS, None, tmp_path / "m", seed=1, license=given)
    make_samples(tmp_path / "m", 10, Decoding(), tmp_path / "s", seed=1)
    for folder in (tmp_path / "m", tmp_path / "s"):
        assert (header(folder)["license"], header(folder)["language"]) == (licence, "art")
    make_samples(tmp_path / "m", 10, Decoding(), tmp_path / "own", seed=1, license="MIT")
    assert header(tmp_path / "own")["license"] == "mit"


def test_a_text_without_a_licence_leaves_it_unknown(tmp_path: Path) -> None:
    train([["a", "b"]], TRIGRAMS, None, tmp_path / "m", seed=1)
    assert header(tmp_path / "m")["license"] == "unknown" and "language" not in header(tmp_path / "m")
    with pytest.raises(InputError, match="SPDX identifier"):
        train([["a", "b"]], TRIGRAMS, None, tmp_path / "other", seed=1, license="no licence")
