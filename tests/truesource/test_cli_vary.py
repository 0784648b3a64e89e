"""`truesource vary`: files, table, numbers, refusals."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from command_line import Command

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.pcfg import PCFG
from truesource.grammar.variants import file_names, parse_variant

TEXT = """
S -> NP VP 1.0
NP -> DT NN 0.7 | NP PP 0.1 | 'he' 0.2
VP -> VBD NP 0.6 | 'slept' 0.4
PP -> IN NP 1.0
DT -> 'the' 1.0
NN -> 'dog' 0.5 | 'cat' 0.3 | 'fish' 0.2
VBD -> 'saw' 1.0
IN -> 'in' 1.0
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "g.txt").write_text(TEXT, encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_files_table_and_numbers(here: Path, command: Command) -> None:
    specs = ["mirror=all", "zipf=1.2", "ablate=NP -> NP PP", "mirror=VP,sharpen=2"]
    options = [part for spec in specs for part in ("--variant", spec)]
    code, out, err = command("vary", "g.txt", *options, "-o", "v", "--lengths", "2..8", "--json", "v.json")
    assert code == 0, err
    original = PCFG.load("v/original.npz")
    assert original == PCFG.from_text(TEXT)
    files = ["mirror-all.npz", "zipf-1.2.npz", "ablate-NP-NP-PP.npz", "mirror-VP-sharpen-2.npz"]
    assert sorted(path.name for path in (here / "v").iterdir()) == sorted(["original.npz", *files])
    record = json.loads((here / "v.json").read_text(encoding="utf-8"))
    assert record["lengths"] == "2..8"
    assert record["digest"] == original.digest
    for spec, file, found in zip(specs, files, record["variants"], strict=True):
        expected = parse_variant(spec)(original, LengthRange(2, 8))
        written = PCFG.load(here / "v" / file)
        assert written == expected.pcfg
        assert written.meta["variant"]["spec"] == spec
        assert found == {"file": file, **json.loads(json.dumps(expected.as_dict()))}
        row = next(line for line in out.splitlines() if f" {spec} " in line)
        for value in (expected.divergence.forward_per_token, expected.divergence.backward_per_token):
            assert (f"{value:.4f}" if value is not None else " - ") in row
    assert "mirror=all: KL(P||Q) is missing: the original uses NP -> DT NN, which the variant does not have" in out
    assert (
        "derivations of P and Q correspond one to one; over corresponding derivations, KL(P||Q) 0.0000, KL(Q||P) 0.0000"
        in out
    )
    assert out.splitlines()[-1].endswith("Next: truesource sample v/mirror-all.npz -n 100000 --lengths 2..8 -o corpus/")


@pytest.mark.parametrize("options", [(), ("--lengths", "none")])
def test_without_a_length_range(options: tuple[str, ...], here: Path, command: Command) -> None:
    code, out, err = command("vary", "g.txt", "--variant", "temperature=0.9", "-o", "v", *options)
    assert code == 0, err
    assert out.splitlines()[-1].endswith("Next: truesource sample v/temperature-0.9.npz -n 100000 -o corpus/")
    expected = parse_variant("temperature=0.9")(PCFG.from_text(TEXT))
    assert f"{expected.divergence.forward_per_token:.4f}" in out
    assert not (here / "v.json").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--variant", "mirrer=NP"], "there is no variant 'mirrer'; near: mirror"),
        (["--variant", "mirror=NPP"], "category 'NPP' is not in the grammar; near: "),
        (["--variant", "zipf=1", "--lengths", "5-9"], "expecting a length range such as 6..25"),
        (["--variant", "zipf=1", "--lengths", "1..1"], "no sentence of this grammar has a length in 1..1"),
        (["--variant", "vocabulary=0"], "vocabulary needs an integer number"),
    ],
)
def test_bad_input_leaves_nothing(arguments: list[str], message: str, here: Path, command: Command) -> None:
    code, _, err = command("vary", "g.txt", *arguments, "-o", "v")
    assert code == 2
    assert message in " ".join(err.split())
    assert not (here / "v").exists()


def test_a_grammar_whose_derivations_may_not_end_is_refused(here: Path, command: Command) -> None:
    (here / "bad.txt").write_text("S -> S S 0.6 | a 0.4\n", encoding="utf-8")
    code, _, err = command("vary", "bad.txt", "--variant", "mirror=all", "-o", "v")
    assert code == 2
    assert "the spectral radius is 1.2" in " ".join(err.split())


def test_what_exists_is_kept(here: Path, command: Command) -> None:
    arguments = ("vary", "g.txt", "--variant", "zipf=1", "-o", "v")
    assert command(*arguments).code == 0
    code, _, err = command(*arguments)
    assert code == 2
    assert "--force" in err
    assert command(*arguments, "--force").code == 0


def test_file_names_differ_whatever_the_file_system() -> None:
    specs = ["ablate=NP -> *", "ablate=np -> *", "ablate=NP -> $", "zipf=1.2", f"mirror={'X+' * 90}Y"]
    names = file_names(specs)
    assert names[:4] == ["ablate-NP", "ablate-np-2", "ablate-NP-3", "zipf-1.2"]
    assert len(names[4]) < 90
    assert len({name.lower() for name in names}) == len(specs)


FISHES = "S -> NPs VPs 1\nNPs -> 'they' 0.6 | 'fish' 0.4\nVPs -> V NPs 0.4 | V 0.6\nV -> 'fish' 0.7 | 'can' 0.3\n"


@pytest.mark.long
def test_heads_are_shown_and_never_guessed(command: Command, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "g.txt").write_text(FISHES)
    call = ("vary", "g.txt", "--variant", "head-final=all", "--variant", "mirror=VPs", "--lengths", "2..3", "-o")
    code, _, err = command(*call, "v")
    assert code == 2
    assert "the head of S -> NPs VPs; VPs -> V NPs is unknown" in " ".join(err.split())
    assert not (tmp_path / "v").exists()
    (tmp_path / "heads.txt").write_text("S -> NPs *VPs\nVPs: V\n")
    code, out, _ = command(*call, "v", "--heads", "heads.txt")
    assert code == 0
    lines = out.splitlines()
    assert "head-final=all: reordered 1 rule: VPs -> *V NPs" in lines
    assert "head-final=all: unchanged 1 rule: S -> NPs *VPs" in lines
    assert "mirror=VPs: reordered 1 rule: VPs -> V NPs" in lines
    found = PCFG.load(tmp_path / "v" / "head-final-all.npz").to_text()
    assert "VPs -> NPs V 0.4" in found
    assert "S -> NPs VPs 1.0" in found
    (tmp_path / "h.txt").write_text("%head S: VPs\n%head VPs: V\n" + FISHES)
    assert command("vary", "h.txt", "--variant", "head-final=all", "--lengths", "2..3", "-o", "w").code == 0
    assert PCFG.load(tmp_path / "w" / "head-final-all.npz").to_text() == found.replace(
        "%start S\n", "%start S\n%head S: VPs\n%head VPs: V\n"
    )
    sample = ("sample", "g.txt", "-n", 20, "--shares", "train=1", "--lengths", "2..3", "--variant", "head-initial=all")
    assert "is unknown; specify it" in command(*sample, "-o", "c").err
    assert command(*sample, "-o", "c", "--heads", "heads.txt").code == 0
    assert (
        "--heads" in command("sample", "g.txt", "-n", 5, "--shares", "train=1", "-o", "d", "--heads", "heads.txt").err
    )
    assert "--heads" in command("vary", "g.txt", "--variant", "zipf=1", "-o", "x", "--heads", "heads.txt").err
