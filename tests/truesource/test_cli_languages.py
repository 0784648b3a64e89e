"""`truesource language`, and what inspect and cite say of a language."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from command_line import Command

from truesource.generator.corpus import Corpus
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.inference.expected import derivational_entropy
from truesource.grammar.languages import grammars, languages, parameters, presets, short_citation
from truesource.grammar.pcfg import PCFG, language

HEWITT = "Hewitt, Hahn, Ganguli, Liang and Manning (2020)"


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_languages_lists_all_in_100_columns(command: Command) -> None:
    found = command("language")
    assert found.code == 0
    assert max(map(len, found.out.split("\n"))) <= 100
    for name in [*languages(), *presets()]:
        assert name in found.out
    assert "k=2 depth=4" in found.out
    assert "Hewitt et al. (2020)" in found.out


@pytest.mark.long
@pytest.mark.parametrize("name", grammars())
def test_every_language_describes_itself(name: str, command: Command) -> None:
    found = command("language", name, "-n", "2")
    assert found.code == 0, found.err
    grammar, chosen = language(name), languages()[name]
    said = " ".join(found.out.split())
    assert f"{name}: {chosen.title}" in said
    assert f"cite {chosen.citation}" in said
    assert f"mean length {grammar.exact.mean_length:.3f} tokens" in said
    assert f"derivational entropy {derivational_entropy(grammar):.3f} nats" in said
    assert all(each.key in said for each in parameters(chosen.settings()))


def test_a_language_is_written_with_its_settings(command: Command, folder: Path) -> None:
    found = command("language", "dyck:k=3", "--set", "depth=2", "-o", "dyck.npz", "-n", "0")
    assert found.code == 0
    assert "Wrote dyck.npz" in found.out
    assert PCFG.load("dyck.npz").identity == language("dyck", k=3, depth=2).identity
    before = (folder / "dyck.npz").read_bytes()
    refused = command("language", "dyck", "-o", "dyck.npz")
    assert (refused.code, (folder / "dyck.npz").read_bytes()) == (2, before)
    assert "will not overwrite dyck.npz" in refused.err
    assert command("language", "dyck", "-o", "dyck.npz", "--force").code == 0
    assert PCFG.load("dyck.npz") == language("dyck")
    assert command("language", "dyck", "-o", "dyck.txt").code == 0
    assert PCFG.load("dyck.txt").vocabulary == language("dyck").vocabulary


def test_samples_are_strings_of_the_language_with_a_tree(command: Command) -> None:
    found = command("language", "dyck", "-n", "7", "--seed", "3")
    lines = found.out.split("\n")
    end = lines.index("tree of the shortest:")
    strings = [line.split() for line in lines[end - 7 : end]]
    grammar = language("dyck")
    assert all(score > -np.inf for score in grammar.exact.string_log_probs(strings))
    assert lines[end + 1].strip() == "S"
    assert command("language", "dyck", "-n", "7", "--seed", "3").out == found.out
    assert command("language", "dyck", "-n", "7", "--seed", "4").out != found.out


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("dick", "there is no language 'dick'"),
        ("dyck --set k", "write --set key=value"),
        ("dyck --set k=1 --set k=2", "each key once"),
        ("dyck --set k=0", "language dyck: k: expected 1 or more, not 0"),
        ("--set k=2", "name it, as in truesource language dyck"),
        ("-n 3", "name it, as in truesource language dyck"),
        ("-o new.npz", "name it, as in truesource language dyck"),
        ("dyck:q=1", "language dyck: q: unknown key"),
        ("dyck --set k=1000000000 --set depth=1000000000 -o new.npz", "more than the 2,000,000 that fit in memory"),
    ],
)
def test_mistakes_are_one_sentence(line: str, message: str, command: Command, folder: Path) -> None:
    found = command("language", *line.split())
    assert (found.code, found.out, list(folder.iterdir())) == (2, "", [])
    assert message in found.err
    assert found.err.count("\n") == 1


def test_inspect_and_cite_name_the_language_of_a_grammar_and_of_a_corpus(command: Command) -> None:
    grammar = language("dyck")
    grammar.save("dyck.npz")
    assert f"language {grammar.identity}; cite {HEWITT}" in command("inspect", "dyck.npz").out
    Corpus.sample(grammar, {"eval": 5}, seed=1, lengths=LengthRange(2, 6), path="corpus")
    (Path("run") / "grammar").mkdir(parents=True)
    grammar.collapse(["(1"]).save(Path("run") / "grammar" / "grammar.npz")
    for subject, named in (
        ("dyck", "dyck:k=2,depth=4"),
        ("dyck.npz", grammar.identity),
        ("corpus", grammar.identity),
        ("run", "changed dyck:k=2,depth=4"),
    ):
        said = command("cite", subject).out.split("\n")[0]
        assert said.startswith(f"For the language {named}") and HEWITT in said


def test_cite_lists_the_sources_of_all_languages(command: Command, folder: Path) -> None:
    plain = command("cite").out
    assert all(each.citation in plain for each in languages().values())
    PCFG.from_text("S -> a 1").save("own.npz")
    assert "cite its source" in command("cite", "own.npz").out
    assert "language" not in command("inspect", "own.npz").out
    (folder / "empty").mkdir()
    for wrong in ("empty", "dick:k=2", "none.npz"):
        assert command("cite", wrong).code == 2


def test_a_damaged_record_of_a_language_is_refused(command: Command) -> None:
    language("dyck").save("dyck.npz")
    loaded = dict(np.load("dyck.npz"))
    head = json.loads(loaded["head"].tobytes())
    head["meta"]["language"] = 3
    loaded["head"] = np.frombuffer(json.dumps(head).encode(), dtype=np.uint8)
    np.savez("dyck.npz", **loaded)
    found = command("inspect", "dyck.npz")
    assert found.code == 2 and "damaged: meta.language" in found.err


@pytest.mark.parametrize(
    ("citation", "short"),
    [
        (f"{HEWITT}, RNNs can generate", "Hewitt et al. (2020)"),
        ("White and Cotterell (2021), Examining", "White and Cotterell (2021)"),
        ("Clark (2018), Testing", "Clark (2018)"),
        ("formal-language tradition", "formal-language tradition"),
        ("the developers, A grammar of English", "the developers"),
    ],
)
def test_short_citations(citation: str, short: str) -> None:
    assert short_citation(citation) == short
