"""The page of the benchmark: the numbers of the standings, in order, escaped, in one file that needs nothing else."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from collections.abc import Sequence
from html.parser import HTMLParser
from pathlib import Path

import pytest
from made_results import CAUSAL, REFUSAL, MadeModel, made_results, made_suite

from truesource.evaluation.show.table import ABSENT, shown
from truesource.evaluation.show.words import number
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import round_floats
from truesource.studies.benchmark.page import SHADES, answer, heat_map, learning_curves, shade, write_page
from truesource.studies.benchmark.results import REFERENCES, BenchmarkResults, read_results, write_results
from truesource.studies.benchmark.standings import difference_tables, differences_of, standings
from truesource.studies.benchmark.suite import Suite

pytestmark = pytest.mark.long

CHROMIUM = shutil.which("chromium")
EVIL = "<script>document.title='evil'</script>"
VOID = ("meta", "br", "path", "use", "rect")


class Reader(HTMLParser):
    """Rows of tables, elements with their attributes, and the text outside scripts and styles."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.tables: list[list[list[str]]] = []
        self.text = ""
        self._open: list[str] = []
        self.feed(page)
        self.close()
        assert self._open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if tag == "table":
            self.tables.append([])
        if tag == "tr":
            self.tables[-1].append([])
        if tag in ("td", "th"):
            self.tables[-1][-1].append("")

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        if tag not in VOID:
            assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if not {"script", "style"} & set(self._open):
            self.text += data
        if {"td", "th"} & set(self._open):
            self.tables[-1][-1][-1] += "|" + data if "small" in self._open else data


def page_of(results: BenchmarkResults, suite: Suite, path: Path, *, own: Sequence[str] = ()) -> None:
    """The page with all its parts."""
    found = standings(results, list(suite.languages))
    differences = difference_tables(differences_of(results, found, own=own))
    write_page(results, suite, path, found=found, differences=differences, own=own)


@pytest.fixture(scope="module")
def suite() -> Suite:
    return made_suite()


@pytest.fixture(scope="module")
def results(suite: Suite) -> BenchmarkResults:
    return made_results(suite)


@pytest.fixture(scope="module")
def page(suite: Suite, results: BenchmarkResults, tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("page") / "index.html"
    page_of(results, suite, path, own=["gru"])
    return path


@pytest.fixture(scope="module")
def read(page: Path) -> Reader:
    return Reader(page.read_text(encoding="utf-8"))


def test_made_results_are_valid(results: BenchmarkResults, tmp_path: Path) -> None:
    write_results(tmp_path / "results.json", results)
    rounded = round_floats(json.loads(json.dumps(results)))
    assert json.loads(json.dumps(read_results(tmp_path / "results.json"))) == rounded


def test_rows_stand_in_the_order_of_the_standings_with_their_numbers(
    read: Reader, results: BenchmarkResults, suite: Suite
) -> None:
    for table, found in zip(read.tables, standings(results, list(suite.languages)), strict=False):
        head, *rows = table
        assert head[:2] == ["rank", "model"] and len(head) == 6 + len(suite.languages)
        assert [row[1].split("|")[0] for row in rows] == [each.name for each in found.rows]
        for row, each in zip(rows, found.rows, strict=True):
            assert row[4].split("|")[0] == (ABSENT if each.share is None else shown(each.share.value, ".3f"))
            shares = [each.languages[name].share.value if name in each.languages else None for name in suite.languages]
            assert row[6:] == [ABSENT if share is None else shown(share, ".3f") for share in shares]


def test_the_best_of_models_that_are_alike_may_be_best_by_chance(results: BenchmarkResults, suite: Suite) -> None:
    languages = list(suite.languages)
    best = next(
        row.model for row in standings(results, languages)[0].rows if row.model["architecture"] not in REFERENCES
    )
    alike: BenchmarkResults = {**results, "models": [*results["models"], {**best, "name": "copy"}]}
    said = answer(alike, standings(alike, languages))[0]
    chance = r"may be chance \(p 1\.000; Holm: for \d+ pairs of models\)"
    assert re.search(rf"; that it learned more than \S+ {chance}", said)
    assert "copy" in said


def test_references_are_not_counted_as_models(read: Reader, results: BenchmarkResults) -> None:
    n = sum(model["architecture"] not in REFERENCES for model in results["models"])
    assert 0 < n < len(results["models"])
    assert f"· {n} models ·" in read.text


def test_sorting_has_all_digits_and_needs_no_script(page: Path, results: BenchmarkResults, suite: Suite) -> None:
    text = page.read_text(encoding="utf-8")
    best = standings(results, list(suite.languages))[0].rows[1]
    assert best.share is not None
    assert f'data-value="{best.share.value}"' in text
    assert text.count('<table class="results sortable">') == 2
    assert "<button" not in re.sub(r"<script>.*?</script>", "", text, flags=re.DOTALL)


def test_whose_and_what_rows_are_is_said_in_words(read: Reader) -> None:
    names = [row[1] for row in read.tables[0][1:]]
    assert "gru|yours" in names and "oracle|reference" in names and "unigram|reference" in names
    assert names[-1] == "half-done|5 of 8 languages"
    assert "gru (yours)" in read.text and REFUSAL in read.text
    assert "Settings of gru" in read.text and "Settings of oracle" not in read.text


def test_each_language_is_described_with_all_measures(read: Reader, suite: Suite, results: BenchmarkResults) -> None:
    for name, language in suite.languages.items():
        assert ("h3", {"id": f"language-{name}"}) in read.elements
        assert language.tests in read.text and language.language in read.text
    # standings, differences, languages and models; the first two and the languages for both objectives
    assert len(read.tables) == 2 + 2 + 2 * len(suite.languages) + 1
    assert suite.digest in read.text and suite.label in read.text
    truth = results["languages"]["language-0"]["truth"]["causal"]["test"]
    information = sum(truth["information"]) / sum(truth["contexts"])
    assert f"{number(information, 3)} nats a token" in read.text


def test_the_page_is_one_small_file_without_anything_outside_it(page: Path, read: Reader) -> None:
    assert page.stat().st_size < 1_000_000
    for _, attributes in read.elements:
        for name in ("src", "href", "xlink:href", "data", "action", "srcset"):
            assert (attributes.get(name) or "#").startswith("#")
        assert not any(name.startswith("on") for name in attributes)
    text = page.read_text(encoding="utf-8")
    assert "@import" not in text and not re.search(r"url\((?!#)", text)
    ids = [attributes["id"] for _, attributes in read.elements if "id" in attributes]
    assert len(ids) == len(set(ids))


def test_the_same_results_give_the_same_page(tmp_path: Path) -> None:
    suite = made_suite(2)
    for name in ("one", "two"):
        page_of(made_results(suite, CAUSAL[:3]), suite, tmp_path / name)
    assert (tmp_path / "one").read_bytes() == (tmp_path / "two").read_bytes()


def hostile() -> tuple[Suite, BenchmarkResults]:
    """Markup and escapes wherever a text of a file goes."""
    suite = made_suite(2, title=f"Suite {EVIL}")
    languages = {
        name: language.model_copy(update={"kind": EVIL, "tests": EVIL, "language": EVIL})
        for name, language in suite.languages.items()
    }
    suite = suite.model_copy(update={"languages": languages})
    names = (EVIL, '" onclick="alert(1)', "{{7*7}}", "_hidden", "$x_{$", "]]></style>", "\x1b[31mred\u202e", "a\nb")
    models = [
        MadeModel(name, 0.9 - i / 20, architecture=EVIL, refuses=i == 0, settings={"model": {EVIL: "</pre>" + EVIL}})
        for i, name in enumerate(names)
    ]
    results = made_results(suite, models, seeds=1)
    results["provenance"] = {EVIL: EVIL}
    results["truesource"] = EVIL
    for model in results["models"]:
        for cell in model["cells"]:
            if cell["longer_refused"]:
                cell["longer_refused"] = EVIL
    return suite, results


def test_names_of_a_file_are_shown_and_not_obeyed(tmp_path: Path) -> None:
    suite, results = hostile()
    page_of(results, suite, tmp_path / "index.html", own=[EVIL])
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    read = Reader(text)
    assert [tag for tag, _ in read.elements].count("script") == 1
    assert not any(name.startswith("on") for _, attributes in read.elements for name in attributes)
    assert "\x1b" not in text and "\u202e" not in text
    for name in (EVIL, '" onclick="alert(1)', "{{7*7}}", "_hidden", "$x_{$", "]]></style>", "\\x1b[31mred\\u202e"):
        assert read.text.count(name) > 5
    assert "49" not in [cell for row in read.tables[0] for cell in row]


def test_results_of_another_suite_are_refused(suite: Suite, tmp_path: Path) -> None:
    results = made_results(made_suite(seed=2), [MadeModel("a", 0.5)])
    with pytest.raises(InputError) as refused:
        page_of(results, suite, tmp_path / "index.html")
    assert refused.value.code == "other-suite"
    assert not (tmp_path / "index.html").exists()


def test_a_page_without_models_or_curves(tmp_path: Path) -> None:
    suite = made_suite(3)
    for models in ([], [MadeModel("oracle", 1.0, architecture="oracle")]):
        results = made_results(suite, models)
        page_of(results, suite, tmp_path / "index.html")
        assert "No model has a learning curve" in (tmp_path / "index.html").read_text(encoding="utf-8")
        for each in standings(results, list(suite.languages)):
            assert learning_curves(results, each) is None


@pytest.mark.parametrize(
    ("share", "name"), [(1.0, "to 1"), (0.9896, "to 1"), (0.989, "to .99"), (0.0, "0 to .25"), (-1e-4, "0 to .25")]
)
def test_a_cell_is_coloured_as_it_is_written(share: float, name: str) -> None:
    assert shade(share) == {text: colour for _, text, colour in SHADES}[name]


def test_negative_shares_have_colours_of_their_own() -> None:
    assert len({shade(-5.0), shade(-0.5), shade(0.1)}) == 3


def test_heat_maps_hold_every_share(results: BenchmarkResults, suite: Suite) -> None:
    found = standings(results, list(suite.languages))[0]
    test, longer = heat_map(found), heat_map(found, "longer")
    assert test is not None and longer is not None
    for row in found.rows:
        for on in row.languages.values():
            assert f">{shown(on.share.value, '.3f')}<" in test
            assert on.longer_share is None or f">{shown(on.longer_share.value, '.3f')}<" in longer
    only = made_suite(2, unlimited=(0, 1))
    assert heat_map(standings(made_results(only), list(only.languages))[0], "longer") is None


def chromium(path: Path, *options: str) -> subprocess.CompletedProcess[str]:
    assert CHROMIUM is not None
    command = [CHROMIUM, "--headless", "--no-sandbox", "--disable-gpu", "--enable-logging=stderr", *options]
    profile = f"--user-data-dir={path.parent / 'profile'}"
    return subprocess.run([*command, profile, path.as_uri()], capture_output=True, text=True, timeout=120, check=True)


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_sorts_by_buttons_and_says_nothing(page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    clicks = """<script>
const head = (column) => document.querySelector("table.sortable").tHead.rows[0].cells[column];
const rows = () => [...document.querySelector("table.sortable").tBodies[0].rows];
const order = () => rows().map((row) => row.cells[1].firstChild.data);
const seen = [[order(), head(0).getAttribute("aria-sort")]];
for (const column of [4, 4, 1, 0, 5]) {
  head(column).querySelector("button").click();
  seen.push([order(), head(column).getAttribute("aria-sort")]);
}
document.title = JSON.stringify(seen);
</script>"""
    without_policy = re.sub(r'<meta http-equiv="Content-Security-Policy"[^>]*>', "", text)
    (tmp_path / "clicked.html").write_text(without_policy.replace("</body>", clicks + "</body>"), encoding="utf-8")
    dumped = chromium(tmp_path / "clicked.html", "--dump-dom")
    title = re.search(r"<title>(.*?)</title>", dumped.stdout)
    assert title is not None
    seen = [(each[0], each[1]) for each in json.loads(title[1])]
    first = [row[1].split("|")[0] for row in Reader(text).tables[0][1:]]
    assert seen[0] == (first, "ascending")
    assert seen[1] == (first, "descending")
    assert seen[2] == ([*first[-2::-1], first[-1]], "ascending")
    assert seen[3] == (sorted(first), "ascending")
    ranked = [name for name in first if name not in ("oracle", "unigram", "half-done")]
    assert seen[4][0][: len(ranked)] == ranked and seen[4][1] == "ascending"
    assert set(seen[5][0][-2:]) == {"gpt2", "half-done"} and seen[5][1] == "descending"
    assert "CONSOLE" not in dumped.stderr


@pytest.mark.skipif(CHROMIUM is None, reason="chromium is not installed")
def test_a_browser_runs_the_script_of_the_page_and_no_other(tmp_path: Path) -> None:
    suite, results = hostile()
    page_of(results, suite, tmp_path / "index.html", own=[EVIL])
    dumped = chromium(tmp_path / "index.html", "--dump-dom")
    assert "CONSOLE" not in dumped.stderr
    assert "<title>evil" not in dumped.stdout and dumped.stdout.count('<button type="button">') == 6 + 2
    text = (tmp_path / "index.html").read_text(encoding="utf-8")
    (tmp_path / "broken.html").write_text(text.replace("<header>", f"<header>{EVIL}"), encoding="utf-8")
    dumped = chromium(tmp_path / "broken.html", "--dump-dom")
    assert "<title>evil" not in dumped.stdout and "CONSOLE" in dumped.stderr


def test_results_of_some_languages_make_a_page(tmp_path: Path) -> None:
    """Those of a model that was measured on a part of the suite; nobody knows the truth about the rest."""
    suite = made_suite(4)
    results = made_results(suite, [MadeModel("a", 0.5, languages=2), MadeModel("b", 0.5, objective="masked")])
    for name in ("language-2", "language-3"):
        del results["languages"][name]["truth"]["causal"]
    del results["languages"]["language-3"]
    results["models"][1]["cells"] = [cell for cell in results["models"][1]["cells"] if cell["language"] != "language-3"]
    causal = standings(results, list(suite.languages))[0]
    assert (causal.rows[0].share, causal.rows[0].longer_share) == (None, None)
    page_of(results, suite, tmp_path / "index.html")
    read = Reader((tmp_path / "index.html").read_text(encoding="utf-8"))
    assert [row[1] for table in read.tables[:2] for row in table[1:]] == ["a|2 of 4 languages", "b|3 of 4 languages"]
    assert read.text.count("not measured") == 2 + 1
