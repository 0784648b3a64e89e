"""Scores in parts: the same as in one go, resumable, shared out, and never mixed with others."""

from __future__ import annotations

from pathlib import Path

import pyarrow.parquet as pq
import pytest

from truesource.evaluation.core import scores_on_disk as parts
from truesource.evaluation.core.exact_bound import bound_records
from truesource.evaluation.core.scores_on_disk import score_in_parts
from truesource.evaluation.core.sentence_records import sentence_records
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.parallel import Share

GRAMMAR = PCFG.from_text("S -> S S 0.2 | a 0.5 | b 0.3")
SENTENCES = [["a"], ["a", "b"], ["never-seen", "b"], ["b", "a", "a"], ["b"], ["a", "a"], ["b", "b", "a", "a"]]
LENGTHS = LengthRange(1, 3)


def score(folder: Path, share: str = "0/1", **options: object) -> list[dict[str, object]] | None:
    settings: dict[str, object] = {"lengths": LENGTHS, "part_size": 2, "share": Share.parse(share)}
    return score_in_parts(GRAMMAR, SENTENCES, folder, **{**settings, **options})  # type: ignore[arg-type]


@pytest.mark.long
@pytest.mark.parametrize("kinds", ["causal masked", "causal", "masked any_order", "any_order"])
def test_parts_give_the_records_of_one_go(tmp_path: Path, kinds: str) -> None:
    asked = {kind: kind in kinds.split() for kind in ("causal", "masked", "any_order")}
    wanted = sentence_records(GRAMMAR, SENTENCES, lengths=LENGTHS, **asked)  # type: ignore[arg-type]
    found = score(tmp_path / "s", **asked)
    assert found is not None
    assert [set(r) for r in found] == [set(r) for r in wanted]
    for one, other in zip(found, wanted, strict=True):
        assert (one["tokens"], one["possible"]) == (other["tokens"], other["possible"])
        for key in other.keys() - {"tokens", "possible"}:
            values = [x if isinstance(x, list) else [x] for x in (one[key], other[key])]
            known = [[x for x in row if x is not None] for row in values]
            assert [x is None for x in values[0]] == [x is None for x in values[1]]
            assert known[0] == pytest.approx(known[1], rel=1e-12, abs=1e-12)
    for one, other in zip(
        bound_records(GRAMMAR, found, lengths=LENGTHS), bound_records(GRAMMAR, wanted, lengths=LENGTHS), strict=True
    ):
        assert (one.name, one.signature) == (other.name, other.signature)
        assert one.value == pytest.approx(other.value, rel=1e-12)


def test_the_files_are_one_row_a_token(tmp_path: Path) -> None:
    score(tmp_path / "s")
    files = sorted(p.name for p in (tmp_path / "s").iterdir())
    assert files == [f"part-0000{k}.parquet" for k in range(4)] + ["record.json"]
    table = pq.read_table(tmp_path / "s" / "part-00001.parquet").to_pydict()
    assert list(table) == ["sentence", "position", "token", "surprisal", "masked_logprob"]
    assert table["sentence"] == [2, 2, 2, 3, 3, 3, 3]
    assert table["position"] == [0, 1, 2, 0, 1, 2, 3]
    assert table["token"] == ["never-seen", "b", "</s>", "b", "a", "a", "</s>"]
    assert table["surprisal"][:3] == [None, None, None]
    assert table["masked_logprob"][6] is None and table["masked_logprob"][5] is not None


def test_what_stands_there_is_kept_and_what_is_missing_is_made(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    whole = score(tmp_path / "s")
    (tmp_path / "s" / "part-00002.parquet").unlink()
    asked: list[int] = []

    def counted(pcfg: PCFG, sentences: list[list[str]], **options: object) -> list[dict[str, object]]:
        asked.append(len(sentences))
        return sentence_records(pcfg, sentences, **options)  # type: ignore[arg-type]

    monkeypatch.setattr(parts, "sentence_records", counted)
    assert score(tmp_path / "s") == whole
    assert asked == [2]


def test_jobs_share_the_parts_and_the_last_one_has_all(tmp_path: Path) -> None:
    whole = score(tmp_path / "one")
    assert score(tmp_path / "s", "1/2") is None
    assert sorted(p.stem for p in (tmp_path / "s").glob("part-*")) == ["part-00001", "part-00003"]
    assert score(tmp_path / "s", "0/2") == whole


@pytest.mark.parametrize("change", [{"masked": False}, {"lengths": None}, {"dtype": "float32"}, {"part_size": 3}])
def test_parts_of_other_settings_are_refused(tmp_path: Path, change: dict[str, object]) -> None:
    score(tmp_path / "s")
    with pytest.raises(InputError, match="other settings; name another"):
        score(tmp_path / "s", **change)


def test_a_folder_of_something_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "s").mkdir()
    (tmp_path / "s" / "letter.txt").write_text("dear", encoding="utf-8")
    with pytest.raises(InputError, match="holds no unfinished scores"):
        score(tmp_path / "s")


def test_a_damaged_part_is_named(tmp_path: Path) -> None:
    score(tmp_path / "s")
    (tmp_path / "s" / "part-00001.parquet").write_bytes(b"PAR1 cut short")
    with pytest.raises(InputError, match=r"is damaged: .*; delete it and run again \(.*part-00001"):
        score(tmp_path / "s")
