"""Words and labels that a terminal, markup or a browser would obey are shown by every verb, and obeyed by none."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
import yaml
from command_line import Command, Outcome

from truesource.generator.corpus import Corpus
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.printable import one_line

NOUNS = (
    *("\x1b[31mred", "\x07bell", "[/red]", "$x$"),
    *("<script>alert(1)</script>", "]]>", "rtl\u202eltr", "{{7*7}}"),
)
VERBS = ("w" * 10_000, ":dog:", "\x9b31m", "|pipe|")
ENDS = ("---", "`tick`", "&amp;", "\\")
N, V, D = "<N\x1b[32m>", "<V[/b]>", "<D$>"
EVALUATE = ("--oracle", "g.npz", "--json", "found.json", "--force")


def grammar_text() -> str:
    def row(label: str, words: tuple[str, ...]) -> str:
        quoted = ("'" + word.replace("\\", "\\\\") + "'" for word in words)
        return f"{label} -> " + " | ".join(f"{word} {1 / len(words)}" for word in quoted)

    rules = (f"S -> {N} {V} 0.5 | {N} VP 0.5", f"VP -> {V} {N} 0.5 | VP {D} 0.5")
    return "\n".join((*rules, row(N, NOUNS), row(V, VERBS), row(D, ENDS))) + "\n"


def hostile(text: str) -> set[str]:
    """Characters that a terminal obeys or that reorder what is around them."""
    return {c for c in text if c != "\n" and (unicodedata.category(c) in ("Cc", "Cs") or c in "\u202e\u2066")}


def check(found: Outcome, code: int = 0) -> str:
    said = found.out + found.err
    assert found.code == code, said
    assert not hostile(said)
    return said


@pytest.fixture(scope="module")
def place(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A grammar, a corpus, a model of n-grams and a network of such words."""
    folder = tmp_path_factory.mktemp("hostile")
    (folder / "g.txt").write_text(grammar_text(), encoding="utf-8")
    return folder


@pytest.fixture(autouse=True)
def here(place: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.chdir(place)
    yield place


def made(command: Command) -> None:
    """What the other verbs read, where it is not there yet."""
    if Path("c").is_dir():
        return
    check(command("convert", "g.txt", "g.npz"))
    shares = "train=.75,dev=.1,eval=.15"
    check(command("sample", "g.npz", "-n", "300", "--shares", shares, "--lengths", "2..6", "-o", "c"))
    check(command("train", "c", "--model", "ngram", "-o", "[/b]m"))


@pytest.mark.long
def test_grammars(command: Command) -> None:
    made(command)
    assert "\\x1b" in check(command("inspect", "g.txt", "c/../\x1b[31mtext.txt"), 2)
    check(command("inspect", "g.npz", "c"))
    check(command("vary", "g.npz", "--variant", "zipf=1.2", "--lengths", "2..6", "-o", "v"))
    check(command("bound", "g.npz", "c"))
    check(command("convert", "c", "trees.mrg"))
    check(command("induce", "trees.mrg", "--method", "relative-frequency", "-o", "i.npz"))


def test_unknown_words_are_named_and_not_obeyed(command: Command) -> None:
    made(command)
    Path("text.txt").write_text("\x1b[31mred \x1b]0;title\x07 [/red]\n" + "[/red] :dog:\n", encoding="utf-8")
    said = check(command("inspect", "g.npz", "text.txt"))
    assert "\\x1b]0;title\\x07 (1)" in said


@pytest.mark.long
@pytest.mark.parametrize(
    "call",
    [
        ("score", "[/b]m", "c"),
        ("evaluate", "divergence", "[/b]m", "c", "--by", "class,position", "--figure", "found.svg"),
        ("evaluate", "pplu", "[/b]m", "c", "--rank", "2", "--reduce", "--figure", "found.svg"),
    ],
    ids=lambda call: call[1],
)
def test_evaluations(call: tuple[str, ...], command: Command) -> None:
    made(command)
    check(command(*call, *EVALUATE))
    if "found.svg" in call:
        drawn = Path("found.svg").read_text(encoding="utf-8")
        ElementTree.fromstring(drawn)
        assert not hostile(drawn)
    json.loads(Path("found.json").read_text(encoding="utf-8"))


@pytest.mark.long
def test_pairs_of_markup(command: Command) -> None:
    made(command)
    pair = {"sentence_good": "[/red] :dog:", "sentence_bad": ":dog: [/red]", "phenomenon": "[/red]\x1b[31m :dog:"}
    Path("own.jsonl").write_text(json.dumps(pair) + "\n", encoding="utf-8")
    said = check(
        command(
            "evaluate",
            "pairs",
            "[/b]m",
            "--file",
            "own.jsonl",
            "--lengths",
            "2..6",
            *EVALUATE,
            "--figure",
            "found.svg",
        )
    )
    assert "[/red]\\x1b[31m " in said
    ElementTree.parse("found.svg")


def test_a_licence_or_a_name_adds_no_line_to_a_card(command: Command, here: Path) -> None:
    pcfg = PCFG.from_text(grammar_text())
    plain = pcfg.meta.get("license", "unknown")
    headers, lines = [], set()
    for licence, name in ((plain, "plain"), ('mit"\ntags: [evil]\n---\n# evil', 'a"\nlicense: evil `|\x1b')):
        pcfg = PCFG.from_text(grammar_text())
        pcfg.meta["license"] = licence
        Corpus.sample(pcfg, {"train": 20}, seed=1, path=here / "cards" / name)
        card = (here / "cards" / name / "README.md").read_text(encoding="utf-8")
        assert not hostile(card)
        header = yaml.safe_load(card.split("\n---\n")[0].removeprefix("---\n"))
        assert (header["license"], header["pretty_name"]) == (
            "unknown" if licence == plain else "other",
            one_line(name),
        )
        lines.add(len(card.splitlines()))
        headers.append({key: value for key, value in header.items() if key not in ("license", "pretty_name")})
    assert headers[0] == headers[1] and len(lines) == 1


class Page(HTMLParser):
    """Elements and attributes of a page, and its ``<svg>`` elements as text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.feed(text)
        self.figures = re.findall(r"<svg.*?</svg>", text, flags=re.DOTALL)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}


@pytest.mark.long
def test_the_report(command: Command, here: Path) -> None:
    config: dict[str, Any] = {
        "name": "toy",
        "title": "<script>alert(2)</script> {{7*7}} \x1b[31m \u202e",
        "grammar": {"method": "file", "file": "g.txt"},
        "corpus": {"lengths": "2..6", "splits": {"train": 200, "eval": 40}},
        "models": [{"name": "two", "model": {"architecture": "ngram", "order": 2}}],
        "evaluation": {"divergence": {}},
    }
    (here / "toy.yaml").write_text(yaml.safe_dump(config), encoding="utf-8")
    check(command("run", "toy.yaml"))
    text = (here / "runs" / "toy" / "report.html").read_text(encoding="utf-8")
    assert not hostile(text)
    scripts = re.findall("<script>.*?</script>", text, flags=re.DOTALL)
    assert len(scripts) == 2 and all("alert" not in script for script in scripts)
    text = re.sub("<script( type[^>]*)?>[^<]*</script>", "", text.replace(scripts[0], "").replace(scripts[1], ""))
    page = Page(text)
    assert "script" not in page.tags and not any(name.startswith("on") for name in page.attributes)
    assert "{{7*7}}" in text and "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    assert len(page.figures) >= 4
    for drawn in page.figures:
        ElementTree.fromstring(drawn)
