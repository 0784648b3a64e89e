"""`truesource generate`, and its samples where other verbs expect sentences."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from command_line import Command
from saved_models import WORDS, save_model

from truesource.grammar.pcfg import PCFG
from truesource.lmtrain.decoding.folder import SampleFolder


@pytest.fixture(scope="module")
def models(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("models")
    save_model(folder / "gpt2")
    save_model(folder / "bert", "bert")
    return folder


@pytest.fixture
def here(models: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Working directory with the models, and a grammar of their words."""
    for name in ("gpt2", "bert"):
        (tmp_path / name).symlink_to(models / name)
    rules = " | ".join(f"{word} {1 / len(WORDS)}" for word in WORDS)
    PCFG.from_text(f"S -> W S 0.5 | W W 0.5\nW -> {rules}\n").save(tmp_path / "g.npz")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_samples_of_a_model(here: Path, command: Command) -> None:
    done = command("generate", "gpt2", "-n", 300, "--scheme", "nucleus", "--top-p", 0.9, "-o", "samples/")
    assert done.code == 0, done.err
    samples = SampleFolder.load(here / "samples")
    assert samples.n_sentences == 300
    assert str(samples.decoding) == "nucleus|temperature:1|top_p:0.9|max_tokens:9"
    assert f"decoding    {samples.decoding}" in done.out
    cut = 300 - samples.n_finished
    assert 0 < cut < 300
    assert re.search(rf"unfinished  {cut} of 300 sentences .* mean length of the others \d", done.out)
    assert re.search(r"special     0\.\d+ of the probability, never sampled", done.out)
    assert re.fullmatch(r"Wrote samples: 300 sentences, [\d,]+ tokens\. Next: truesource evaluate .*", done.last)
    plain = command("generate", "gpt2", "-n", 5, "-o", "plain/")
    assert plain.last.endswith("evaluate divergence gpt2 CORPUS --oracle GRAMMAR --model-samples plain")
    again = command("generate", "gpt2", "-n", 300, "--scheme", "nucleus", "--top-p", 0.9, "-o", "samples/")
    assert (again.code, "will not overwrite" in again.err) == (2, True)


@pytest.mark.long
def test_every_option_reaches_the_decoding(here: Path, command: Command) -> None:
    calls = {
        "ancestral": "--temperature .8 --max-tokens 4",
        "top_k": "--top-k 3 --temperature 2",
        "typical": "--typical-p .7",
        "eta": "--eta .01",
        "epsilon": "--epsilon .01",
        "beam_sampling": "--beams 3 --length-penalty 0 --no-dedupe --keep all",
        "beam_sampling_fairseq": "--beams 2 --keep best",
        "beam_sampling_hf": "--length-penalty .5",
    }
    signatures = {}
    for scheme, options in calls.items():
        done = command("generate", "gpt2", "-n", 20, "--scheme", scheme, *options.split(), "-o", scheme)
        assert done.code == 0, done.err
        signatures[scheme] = str(SampleFolder.load(here / scheme).decoding)
    assert signatures == {
        "ancestral": "ancestral|temperature:0.8|max_tokens:4",
        "top_k": "top_k|temperature:2|top_k:3|max_tokens:9",
        "typical": "typical|temperature:1|typical_p:0.7|max_tokens:9",
        "eta": "eta|temperature:1|eta:0.01|max_tokens:9",
        "epsilon": "epsilon|temperature:1|epsilon:0.01|max_tokens:9",
        "beam_sampling": "beam_sampling|beams:3|length_penalty:0|keep:all|dedupe:false|max_tokens:9",
        "beam_sampling_fairseq": "beam_sampling_fairseq|beams:2|length_penalty:1|keep:best|max_tokens:9",
        "beam_sampling_hf": "beam_sampling_hf|beams:5|length_penalty:0.5|keep:best|max_tokens:9",
    }


@pytest.mark.long
def test_one_seed_one_text_and_jobs_share_the_work(here: Path, command: Command) -> None:
    for name, seed in (("a", 5), ("b", 5), ("c", 6)):
        assert command("generate", "gpt2", "-n", 50, "--seed", seed, "-o", name).code == 0
    a, b, c = (SampleFolder.load(here / name) for name in "abc")
    assert a.sentences() == b.sentences() != c.sentences()
    part = command("generate", "gpt2", "-n", 50, "--seed", 5, "-o", "jobs", "--shard", "1/2")
    assert part.last.startswith("Wrote this job's shards of jobs. Next: run the other jobs")
    assert command("generate", "gpt2", "-n", 50, "--seed", 5, "-o", "jobs", "--shard", "0/2").code == 0
    assert SampleFolder.load(here / "jobs").digest == a.digest


def test_samples_are_sentences_to_other_verbs(here: Path, command: Command) -> None:
    """Those that were cut are left out, and that is said."""
    assert command("generate", "gpt2", "-n", 80, "-o", "samples").code == 0
    samples = SampleFolder.load(here / "samples")
    cut = 80 - samples.n_finished
    assert cut > 0
    done = command("score", "gpt2", "samples", "--oracle", "g.npz", "--lengths", "none")
    assert done.code == 0, done.err
    assert f"{cut} of 80 sentences of samples were truncated at max_tokens and are left out" in done.err
    assert "sampled from another grammar" not in done.err
    finished = samples.sentences(cut=False)
    assert f"{finished.count([])} of 80 sentences of samples have no words" in done.err
    impossible = [s for s in finished if len(s) == 1 or "<unk>" in s]
    scored = len(finished) - finished.count([])
    assert f"{len(impossible)} of {scored} sentences have probability 0 and are excluded" in done.err


@pytest.mark.parametrize(
    ("call", "message"),
    [
        ("gpt2 -n 0", "--number"),
        ("gpt2 --scheme nucleus", "the scheme nucleus needs top_p, such as 0.9"),
        ("gpt2 --scheme nucleus --top-p 0", "--top-p: expected more than 0, not 0"),
        ("gpt2 --scheme nucleus --top-p 1.5", "--top-p"),
        ("gpt2 --top-p .9", "the scheme ancestral has no setting top_p"),
        ("gpt2 --no-dedupe", "the scheme ancestral has no setting dedupe"),
        ("gpt2 --scheme magic", "magic"),
        ("gpt2 --max-tokens 10", "max_tokens is 10, but the model takes 1 to 9 words"),
        ("gpt2 --scheme beam -n 2", "beam search draws nothing"),
        ("gpt2 --shard 2/2", "expecting a shard i/n"),
        ("bert", "a masked model cannot generate"),
        ("missing", "there is no model 'missing'"),
        ("folder", "no trained model here"),
    ],
)
def test_bad_input_is_one_sentence(here: Path, command: Command, call: str, message: str) -> None:
    (here / "folder").mkdir()
    before = sorted(p.name for p in here.iterdir())
    done = command("generate", *call.split(), "-o", "new")
    assert done.code == 2
    assert message in done.err
    assert "Traceback" not in done.err
    assert sorted(p.name for p in here.iterdir()) == before


def test_a_full_folder_is_not_replaced(here: Path, command: Command) -> None:
    (here / "full").mkdir()
    (here / "full" / "thesis.tex").write_text("all of it")
    for force in ([], ["--force"]):
        done = command("generate", "gpt2", "-n", 5, "-o", "full", *force)
        assert done.code == 2
        assert (here / "full" / "thesis.tex").read_text() == "all of it"
