"""Folders of samples: the same bytes again, in processes, by jobs and after a kill; what others read in them."""

from __future__ import annotations

import json
import os
import pickle
import signal
import subprocess
import sys
import textwrap
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
import yaml
from saved_models import save_model

from truesource.generator.language_model import ScoringFrame
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.support.parallel import Share
from truesource.lmtrain.decoding import sample_builder
from truesource.lmtrain.decoding.folder import SampleFolder, is_sample_folder
from truesource.lmtrain.decoding.sample_builder import make_samples
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.word_models import CausalModel

NUCLEUS = Decoding(scheme="nucleus", top_p=0.9)


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return save_model(tmp_path_factory.mktemp("models") / "m")


@pytest.fixture(scope="module")
def samples(model: Path, tmp_path_factory: pytest.TempPathFactory) -> SampleFolder:
    made = make_samples(model, 130, NUCLEUS, tmp_path_factory.mktemp("samples") / "s", seed=3, shard_size=40)
    assert made is not None
    return made


def files(folder: Path) -> dict[str, str]:
    return {f.relative_to(folder).as_posix(): digest_file(f) for f in folder.rglob("*") if f.is_file()}


@pytest.mark.long
def test_the_record_says_it_all(samples: SampleFolder, model: Path) -> None:
    record = samples.record
    assert record["call"]["decoding"] == {"scheme": "nucleus", "temperature": 1.0, "top_p": 0.9, "max_tokens": 9}
    assert (record["call"]["sentences"], record["call"]["seed"], record["call"]["shard_size"]) == (130, 3, 40)
    assert samples.decoding == NUCLEUS.within(9)
    assert record["model"]["name"] == "m"
    assert record["versions"].keys() >= {"truesource", "torch", "transformers", "python"}
    assert [shard["sentences"] for shard in record["shards"]] == [40, 40, 40, 10]
    counts = record["counts"]
    finished = samples.finished()
    lengths = np.array([len(s) for s in samples.sentences()])
    assert (counts["sentences"], counts["tokens"]) == (130, lengths.sum())
    assert (counts["finished"], counts["finished_tokens"]) == (finished.sum(), lengths[finished].sum())
    assert samples.n_finished == finished.sum() < 130
    assert 0.0 < counts["special"] / counts["contexts"] < 1.0
    assert (lengths[~finished] == 9).all()
    samples.verify()


@pytest.mark.long
def test_log_probabilities_and_sentences_belong_together(samples: SampleFolder, model: Path) -> None:
    sentences = samples.sentences(cut=False)
    scores = CausalModel.load(model, device="cpu").score(sentences, ScoringFrame())
    expected = np.bincount(scores.sentence, weights=scores.log_prob, minlength=len(sentences))
    assert samples.log_probs()[samples.finished()] == pytest.approx(expected, abs=1e-4)
    assert len(sentences) == samples.n_finished
    assert np.array_equal(samples.groups(), np.arange(130))


def test_others_read_it_too(samples: SampleFolder) -> None:
    from datasets import load_dataset

    frame = pd.read_parquet(samples.path / "data")
    assert list(frame.columns) == ["text", "n_tokens", "finished", "logprob"]
    assert [text.split() for text in frame["text"]] == samples.sentences()
    assert frame["n_tokens"].tolist() == [len(s) for s in samples.sentences()]
    loaded = load_dataset(str(samples.path), cache_dir=str(samples.path.parent / "cache"))
    assert loaded["samples"].to_dict()["text"] == frame["text"].tolist()
    card = (samples.path / "README.md").read_text(encoding="utf-8")
    header = yaml.safe_load(card.split("---\n")[1])
    assert header["configs"][0]["data_files"][0]["split"] == "samples"
    assert "nucleus|temperature:1|top_p:0.9|max_tokens:9" in card


@pytest.mark.long
def test_jobs_draw_the_same(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    call: dict[str, int] = {"seed": 3, "shard_size": 40}
    assert make_samples(model, 130, NUCLEUS, tmp_path / "s", share=Share(1, 2), **call) is None
    done = make_samples(model, 130, NUCLEUS, tmp_path / "s", share=Share(0, 2), **call)
    assert done is not None
    assert files(done.path) == files(samples.path)
    assert make_samples(model, 130, NUCLEUS, tmp_path / "s", share=Share(1, 2), **call) == done


@pytest.mark.slow
def test_workers_draw_the_same(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    """Slow, as each process imports torch."""
    done = make_samples(model, 130, NUCLEUS, tmp_path / "s", seed=3, shard_size=40, workers=2)
    assert done is not None
    assert files(done.path) == files(samples.path)


def test_what_workers_get_is_small_and_does_the_same(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    drawing = sample_builder._ShardSampler(
        model=model, digest="0", device=None, decoding=samples.decoding, partial=tmp_path, seed=3, shard_size=40
    )
    body = pickle.dumps(drawing)
    assert len(body) < 2000
    (tmp_path / "data").mkdir()
    entry = pickle.loads(body).write(sample_builder.plan_shards({"samples": 130}, 40)[2])
    assert entry == samples.record["shards"][2]


@pytest.mark.long
def test_shards_are_independent_of_each_other(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    """The first shards are those of any larger folder; other seeds, and other shards, hold other text."""
    more = make_samples(model, 170, NUCLEUS, tmp_path / "more", seed=3, shard_size=40)
    other = make_samples(model, 130, NUCLEUS, tmp_path / "other", seed=4, shard_size=40)
    assert more is not None and other is not None
    assert more.sentences()[:120] == samples.sentences()[:120]
    assert other.sentences() != samples.sentences()
    assert samples.sentences()[:40] != samples.sentences()[40:80]


@pytest.mark.slow  # the process imports torch; below, the same without a process of its own
def test_a_killed_run_goes_on(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    program = f"""
        import os, signal
        from pathlib import Path
        from truesource.lmtrain.decoding import sample_builder
        from truesource.lmtrain.decoding.settings import Decoding
        write, done = sample_builder._ShardSampler.write, []
        def killed(*args):
            if len(done) == 2:
                os.kill(os.getpid(), signal.SIGKILL)
            done.append(write(*args))
            return done[-1]
        sample_builder._ShardSampler.write = killed
        sample_builder.make_samples({str(model)!r}, 130, Decoding(scheme="nucleus", top_p=0.9), {str(tmp_path / "s")!r},
                                    seed=3, shard_size=40)
    """
    env = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    run = subprocess.run([sys.executable, "-c", textwrap.dedent(program)], env=env)
    assert run.returncode == -signal.SIGKILL
    goes_on(samples, model, tmp_path)


@pytest.mark.long
def test_an_interrupted_run_goes_on(
    samples: SampleFolder, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write = sample_builder._ShardSampler.write

    def stopped(self: sample_builder._ShardSampler, shard: sample_builder.Shard) -> dict[str, object]:
        if shard.number == 2:
            raise KeyboardInterrupt
        return write(self, shard)

    with monkeypatch.context() as patch, pytest.raises(KeyboardInterrupt):
        patch.setattr(sample_builder._ShardSampler, "write", stopped)
        make_samples(model, 130, NUCLEUS, tmp_path / "s", seed=3, shard_size=40)
    goes_on(samples, model, tmp_path)


def goes_on(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    """Two shards are there; the same call makes the others, and they alone."""
    partial = tmp_path / ".s.partial"
    before = {f.name: f.stat().st_mtime_ns for f in (partial / "data").iterdir()}
    assert len(before) == 2
    assert not (tmp_path / "s").exists()
    done = make_samples(model, 130, NUCLEUS, tmp_path / "s", seed=3, shard_size=40)
    assert done is not None
    assert files(done.path) == files(samples.path)
    assert {name: (done.path / "data" / name).stat().st_mtime_ns for name in before} == before
    assert not partial.exists()


@pytest.mark.long
def test_a_changed_model_does_not_go_on(model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """What another model drew before the kill is drawn anew."""
    write = sample_builder._ShardSampler.write

    def stopped(self: sample_builder._ShardSampler, shard: sample_builder.Shard) -> dict[str, object]:
        if shard.number == 1:
            raise KeyboardInterrupt
        return write(self, shard)

    other = save_model(tmp_path / "m", seed=1)
    monkeypatch.setattr(sample_builder._ShardSampler, "write", stopped)
    with pytest.raises(KeyboardInterrupt):
        make_samples(other, 60, NUCLEUS, tmp_path / "s", seed=3, shard_size=40)
    monkeypatch.undo()
    for file in other.iterdir():
        file.write_bytes((model / file.name).read_bytes())
    changed = make_samples(other, 60, NUCLEUS, tmp_path / "s", seed=3, shard_size=40)
    straight = make_samples(model, 60, NUCLEUS, tmp_path / "t", seed=3, shard_size=40)
    assert changed is not None and straight is not None
    assert changed.sentences() == straight.sentences()


def test_all_hypotheses_of_a_beam_are_told_apart(model: Path, tmp_path: Path) -> None:
    decoding = Decoding(scheme="beam_sampling_fairseq", beams=3, keep="all")
    made = make_samples(model, 70, decoding, tmp_path / "s", seed=1, shard_size=30)
    assert made is not None
    assert made.n_sentences == len(made.sentences()) == 70
    groups, sizes = np.unique(made.groups(), return_counts=True)
    assert sizes.tolist() == [3] * 23 + [1]
    assert groups.tolist() == [*range(10), *range(30, 40), *range(60, 64)]


def test_bad_input(model: Path, samples: SampleFolder, tmp_path: Path) -> None:
    new = tmp_path / "new"
    with pytest.raises(InputError, match="cannot draw 0 sentences"):
        make_samples(model, 0, NUCLEUS, new, seed=1)
    with pytest.raises(InputError, match="max_tokens is 10, but the model takes 1 to 9 words"):
        make_samples(model, 5, Decoding(max_tokens=10), new, seed=1)
    with pytest.raises(InputError, match="beam search draws nothing"):
        make_samples(model, 2, Decoding(scheme="beam"), new, seed=1)
    with pytest.raises(InputError, match="a seed must be a whole number"):
        make_samples(model, 2, NUCLEUS, new, seed=-1)
    with pytest.raises(InputError, match="no such model folder"):
        make_samples(tmp_path / "missing", 2, NUCLEUS, new, seed=1)
    with pytest.raises(InputError, match="a masked model cannot generate"):
        make_samples(save_model(tmp_path / "bert", "bert"), 2, NUCLEUS, new, seed=1)
    with pytest.raises(InputError, match="will not overwrite"):
        make_samples(model, 2, NUCLEUS, samples.path, seed=1)
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "thesis.tex").write_text("all of it")
    with pytest.raises(InputError, match="not a folder of samples, so it will not be replaced"):
        make_samples(model, 2, NUCLEUS, tmp_path / "full", seed=1, force=True)
    assert not new.exists()
    assert (tmp_path / "full" / "thesis.tex").exists()


@pytest.mark.long
def test_a_damaged_folder_is_refused(samples: SampleFolder, model: Path, tmp_path: Path) -> None:
    made = make_samples(model, 50, NUCLEUS, tmp_path / "s", seed=1, shard_size=40)
    assert made is not None
    assert is_sample_folder(made.path)
    assert not is_sample_folder(model)
    file = made.path / "data" / "samples-00001-of-00002.parquet"
    good = file.read_bytes()
    file.write_bytes(good[:-1] + bytes([good[-1] ^ 1]))
    with pytest.raises(InputError, match="has changed"):
        SampleFolder.load(made.path).verify()
    file.write_bytes(good[:-1])
    with pytest.raises(InputError, match="missing or damaged"):
        SampleFolder.load(made.path)
    record = json.loads((made.path / "record.json").read_text())
    (made.path / "record.json").write_text(json.dumps({**record, "format_version": 99}))
    with pytest.raises(InputError, match="format version 1, got 99"):
        SampleFolder.load(made.path)
    with pytest.raises(InputError, match="no finished samples"):
        SampleFolder.load(model)
    replaced = make_samples(model, 3, Decoding(), made.path, seed=1, force=True)
    assert replaced is not None
    assert replaced.n_sentences == 3
