"""Models that are code, in every verb that takes a model, and the examples of the documentation."""

from __future__ import annotations

import hashlib
import json
import math
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from command_line import Command

from truesource.generator.abilities import ABILITIES
from truesource.generator.corpus import Corpus
from truesource.generator.language_model import ScoringFrame
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.lmtrain.decoding.folder import SampleFolder
from truesource.lmtrain.decoding.sample_builder import make_samples
from truesource.lmtrain.decoding.settings import Decoding
from truesource.lmtrain.models import load_model

EXAMPLES = Path(__file__).parents[2] / "docs" / "examples"
GRAMMAR = """S -> NP VP 1.0
NP -> D N 1.0
VP -> V NP 0.6 | V 0.4
D -> 'the' 0.6 | 'a' 0.4
N -> 'dog' 0.5 | 'cat' 0.3 | 'bird' 0.2
V -> 'sees' 0.5 | 'hears' 0.5
"""
#: a model with nothing but what every model has, and one with all that can be written in a few lines
MODELS = """
import atexit, os, sys, threading, time
import numpy as np
from truesource.generator.language_model import LogDistributions, assemble_scores
from truesource.lmtrain.decoding.alphabet import Alphabet

WORDS = ("the", "a", "dog", "cat", "bird", "sees", "hears")

class Bare:
    name, objective, vocabulary = "bare", "causal", WORDS
    def score(self, sentences, frame):
        unknown = [np.array([word not in WORDS for word in s], dtype=bool) for s in sentences]
        return assemble_scores([np.full(len(s) + 1, -np.log(9)) for s in sentences], unknown, frame)

class Masked(Bare):
    objective = "masked"
    def score(self, sentences, frame):
        unknown = [np.array([word not in WORDS for word in s], dtype=bool) for s in sentences]
        return assemble_scores([np.full(len(s), -np.log(8)) for s in sentences], unknown, frame)

class Stepper:
    def start(self, n):
        return np.full((n, 9), -np.log(9))
    def extend(self, parents, tokens):
        return self.start(len(tokens))

class Full(Bare):
    name = "full"
    alphabet = Alphabet(9, 8, (), None, lambda numbers: [(*WORDS, "<unk>")[i] for i in numbers])
    def distributions(self, sentences):
        for position in range(len(sentences[0]) + 1):
            yield LogDistributions(position, np.full((len(sentences), 9), -np.log(9)))
    def stepper(self):
        return Stepper()
    def hidden_states(self, sentences):
        numbers = [WORDS.index(word) for sentence in sentences for word in sentence]
        return {0: np.eye(7)[numbers], 1: np.ones((len(numbers), 3))}
    def snapshots(self):
        return [(10, self), (0, Full())]

class Chatty(Full):
    def __init__(self):
        print("loading")
    def score(self, sentences, frame):
        print("scoring")
        return super().score(sentences, frame)
    def distributions(self, sentences):
        for block in super().distributions(sentences):
            print("position", block.position)
            yield block

class Spoiling(Full):
    def score(self, sentences, frame):
        np.seterr(all="raise")
        os.write(1, b"from a descriptor\\n")
        sys.__stdout__.write("from the first stream\\n")
        thread = threading.Thread(target=lambda: (time.sleep(0.2), print("from a thread")))
        thread.start()
        atexit.register(lambda: (thread.join(), print("at the end")))
        return super().score(sentences, frame)

class Nameless(Full):
    name = "half \\udc80"

class HalfWord(Full):
    vocabulary = (*WORDS[:-1], "half\\udc80")

class Below(Full):
    def score(self, sentences, frame):
        raise type("Below", (BaseException,), {"__str__": lambda self: 1 / 0})

class Greater(Full):
    def stepper(self):
        class Unnormalised(Stepper):
            def start(self, n):
                return np.full((n, 9), -0.5)
        return Unnormalised()
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, command: Command) -> Path:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.txt").write_text(GRAMMAR)
    (tmp_path / "models.py").write_text(MODELS)
    for name in ("unigram.py", "subprocess_model.py"):
        shutil.copy(EXAMPLES / name, tmp_path)
    monkeypatch.setenv("WORDS", "the a dog cat bird sees hears")
    assert (
        command("sample", "g.txt", "-n", 60, "-o", "corpus", "--lengths", "3..5", "--shares", "train=.5,eval=.5").code
        == 0
    )
    return tmp_path


CORPUS = ("corpus", "--oracle", "g.txt")
VERBS: dict[str, tuple[object, ...]] = {
    "score": ("score", "MODEL", *CORPUS),
    "divergence": ("evaluate", "divergence", "MODEL", *CORPUS),
    "dynamics": ("evaluate", "dynamics", "MODEL", *CORPUS),
    "pairs": ("evaluate", "pairs", "MODEL", "--oracle", "g.txt", "--lengths", "3..5", "--phenomena", "word-order"),
    "pplu": ("evaluate", "pplu", "MODEL", *CORPUS),
    "reduce": ("evaluate", "pplu", "MODEL", *CORPUS, "--reduce"),
    "probing": ("evaluate", "probing", "MODEL", *CORPUS, "--targets", "tag", "--sentences", "20"),
    "tokenisation": ("evaluate", "tokenisation", "MODEL", *CORPUS),
    "tendencies": ("evaluate", "tendencies", "x=MODEL", "--oracle", "g.txt", "--lengths", "none", "--number", "50"),
    "naturalness": ("evaluate", "naturalness", "MODEL", "--reference", "corpus"),
    "generate": ("generate", "MODEL", "-o", "samples", "-n", "40"),
}
SCORED = {"score", "pairs", "pplu"}
OF_WORDS = {*SCORED, "divergence", "reduce", "tendencies", "naturalness", "generate"}


@pytest.mark.long
@pytest.mark.parametrize(
    ("model", "works"),
    [
        ("unigram.py:unigram", OF_WORDS),
        ("models.py:Bare", SCORED),
        ("models.py:Masked", SCORED),
        ("models.py:Full", {*OF_WORDS, "dynamics", "probing"}),
    ],
)
def test_every_verb_takes_code_or_says_what_it_lacks(model: str, works: set[str], here: Path, command: Command) -> None:
    for verb, call in VERBS.items():
        found = command(*(str(part).replace("MODEL", model) for part in call))
        assert found.code == (0 if verb in works else 2), (verb, found.err)
        if verb not in works:
            assert found.err.count("truesource: ") == 1


@pytest.mark.parametrize(
    ("example", "share"),
    [
        ("unigram.py:unigram", None),
        ("subprocess_model.py:model", 1 / 9),
    ],
)
def test_examples_have_the_divergence_of_their_closed_form(
    example: str, share: float | None, here: Path, command: Command
) -> None:
    """Mean of ln P - ln Q over tokens, P of the grammar by hand, Q counted here."""
    assert command("score", example, *CORPUS, "--json", "s.json").code == 0
    found = {record["name"]: record["value"] for record in json.loads((here / "s.json").read_text())}
    corpus = Corpus.load("corpus")
    train, text = corpus.sentences("train"), corpus.sentences("eval")
    words = [word for sentence in train for word in sentence]
    total = len(words) + len(train) + 1
    pcfg = PCFG.from_text(GRAMMAR)
    z = math.log(sum(math.exp(pcfg.log_prob(s)) for s in _language()))
    gap = 0.0
    for sentence in text:
        shares = [max(words.count(word), 1) / total for word in sentence] + [len(train) / total]
        gap += pcfg.log_prob(sentence) - z - sum(math.log(share or s) for s in shares)
    tokens = sum(len(sentence) + 1 for sentence in text)
    assert found["kl"] == pytest.approx(gap / tokens, abs=1e-10)


def _language() -> list[list[str]]:
    """All sentences of the grammar; it has lengths 3 and 5 alone."""
    phrases = [[d, n] for d in ("the", "a") for n in ("dog", "cat", "bird")]
    verbs = [[v] for v in ("sees", "hears")]
    return [s + v + o for s in phrases for v in verbs for o in ([], *phrases)]


def test_samples_of_code_have_the_digest_of_its_source(here: Path) -> None:
    made = make_samples("models.py:Full", 4, Decoding(), "samples", seed=1)
    assert made is not None
    assert made.record["model"]["digest"] == hashlib.sha256((here / "models.py").read_bytes()).hexdigest()


@pytest.mark.slow
def test_workers_sample_the_same_from_code(here: Path) -> None:
    one = make_samples("models.py:Full", 40, Decoding(), "one", seed=1, shard_size=10)
    two = make_samples("models.py:Full", 40, Decoding(), "two", seed=1, shard_size=10, workers=2)
    assert one is not None and two is not None
    assert one.record["digest"] == two.record["digest"]


@pytest.mark.long
def test_sampling_from_code_goes_on_where_it_was_killed(here: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from truesource.lmtrain.decoding import sample_builder

    whole = make_samples("models.py:Full", 40, Decoding(), "whole", seed=1, shard_size=10)
    true_draw, calls = sample_builder.draw, []

    def killed(*args: object, **settings: object) -> object:
        calls.append(1)
        if len(calls) == 3:
            raise KeyboardInterrupt
        return true_draw(*args, **settings)  # type: ignore[arg-type]

    monkeypatch.setattr(sample_builder, "draw", killed)
    with pytest.raises(KeyboardInterrupt):
        make_samples("models.py:Full", 40, Decoding(), "killed", seed=1, shard_size=10)
    make_samples("models.py:Full", 40, Decoding(), "killed", seed=1, shard_size=10)
    assert len(calls) == 5  # two shards, the one that was killed, and the two that were left
    assert whole is not None and SampleFolder.load("killed").record["digest"] == whole.record["digest"]


@pytest.mark.parametrize(("verb", "said"), [("score", "scoring"), ("divergence", "position 0")])
def test_what_a_model_prints_does_not_spoil_json(verb: str, said: str, here: Path, command: Command) -> None:
    call = (part.replace("MODEL", "models.py:Chatty") for part in map(str, VERBS[verb]))
    found = command(*call, "--json", "-")
    assert json.loads(found.out) and {"loading", said} <= set(found.err.splitlines())


@pytest.mark.long
def test_what_a_model_prints_in_any_way_does_not_spoil_json(here: Path) -> None:
    """From C, from a thread after the call, when the process ends: all of it goes to standard error."""
    call = [str(part).replace("MODEL", "models.py:Spoiling") for part in VERBS["score"]]
    done = subprocess.run(
        [sys.executable, "-m", "truesource", *call, "--json", "-"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)
    ways = {"from a descriptor", "from the first stream", "from a thread", "at the end"}
    assert ways <= set(done.stderr.splitlines())


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("Nameless", "has half of a character (a lone surrogate)"),
        ("HalfWord", "which has half of a character (a lone surrogate)"),
        ("Below", "full.score raises Below"),
    ],
)
def test_what_cannot_be_printed_or_raises_anything_is_refused_in_one_sentence(
    name: str, said: str, here: Path, command: Command
) -> None:
    found = command(*(str(part).replace("MODEL", f"models.py:{name}") for part in VERBS["score"]))
    assert found.code == 2 and said in found.err and found.err.count("\n") == 1


def test_an_unnormalised_stepper_is_refused(here: Path, command: Command) -> None:
    found = command("generate", "models.py:Greater", "-o", "samples", "-n", "4")
    assert found.code == 2 and "logsumexp" in found.err
    assert not (here / "samples").exists()


def test_a_model_that_is_code_is_loaded_by_name(here: Path) -> None:
    assert load_model("models.py:Full").name == "full"
    assert LengthRange.parse("3..5") == Corpus.load("corpus").lengths


def test_the_guide_shows_the_examples_as_they_are_and_its_models_score(here: Path) -> None:
    guide = (EXAMPLES.parent / "howto" / "own_models.md").read_text()
    ready = guide[guide.index("## A model that is ready") :]
    blocks = [
        block
        for block in re.findall(r"```python\n(.*?)```", ready, flags=re.S)
        if ".arpa" not in block and "from_pretrained" not in block
    ]
    shown = blocks[1][blocks[1].index("def ") :]  # the example has more imports
    assert shown in (EXAMPLES / "subprocess_model.py").read_text()
    for number, (block, name) in enumerate(((blocks[0], "model"), (blocks[2], "Uniform"))):
        (here / f"block{number}.py").write_text(block)
        scores = load_model(f"block{number}.py:{name}").score([["the", "dog"]], ScoringFrame())
        assert scores.log_prob == pytest.approx([-math.log((10, 5)[number])] * 3)


@pytest.mark.long
def test_the_training_loop_of_the_guide_trains_and_its_probabilities_sum_to_one(here: Path, command: Command) -> None:
    guide = (EXAMPLES.parent / "howto" / "own_models.md").read_text()
    loop, pieces = re.findall(r"```python\n(.*?)```", guide[guide.index("## A training loop") :], flags=re.S)[:2]
    (here / "my_loop.py").write_text(loop)
    runpy.run_path("my_loop.py", run_name="__main__")
    mine = load_model("my_loop.py:model")
    known = [*(mine.vocabulary or ()), "<unk>"]
    scores = mine.score([["the", word] for word in known], ScoringFrame()).log_prob.reshape(-1, 3)
    ended = mine.score([["the"]], ScoringFrame()).log_prob[1]
    assert np.exp(scores[:, 1]).sum() + np.exp(ended) == pytest.approx(1.0, abs=1e-5)
    assert np.ptp(scores[:, 0]) < 1e-5 and np.ptp(scores[:, 1]) > 0.1  # the same word, and different ones
    assert command("score", "my_loop.py:model", *CORPUS).code == 0
    assert command("train", "corpus", "-o", "model", "--preset", "tiny", "--set", "training.max_steps=1").code == 0
    (here / "pieces.py").write_text(pieces)
    defined = runpy.run_path("pieces.py")
    inputs, targets = defined["tensors"]([["the", "dog", "sees"], ["a"]])
    assert inputs[:, 1:].tolist()[0] == targets[:, :-1].tolist()[0] and inputs.shape == (2, 4)
    end = defined["tokenizer"].eos_token_id
    assert targets[0, -1] == end and targets[1].tolist()[1:] == [end, -100, -100]


def test_the_guide_names_what_each_ability_needs() -> None:
    guide = (EXAMPLES.parent / "howto" / "own_models.md").read_text()
    table = guide[guide.index("### What each evaluator needs") :]
    for ability in ABILITIES.values():
        for need in ability.needs:
            assert f"`{need}" in table, need
