"""The pages of ``docs/reproductions``, from the rows and their results: ``make reproductions`` writes them.

A result whose digest is not that of its row is stale: the row, or its configuration, has changed since. The page then
says that the row has not been run.
"""

from __future__ import annotations

import re
import sys
import unicodedata
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

from truesource.evaluation.show.table import ABSENT, shown
from truesource.report.works import Work, works
from truesource.studies.reproduce.quantities import MOST_SEEDS, SEEDS, Verdict, seeds_to_decide, verdict_of
from truesource.studies.reproduce.result import (
    EXACT,
    SPEC,
    ClaimResult,
    NumberResult,
    RowResult,
    command_of,
    read_result,
)
from truesource.studies.reproduce.rows import Claim, Paper, Row, compose, digest_of, papers, result_file

NOT_RUN = "not run yet"
_MARKUP = re.compile(r"([|<>*])")
GENERATED = "<!-- make reproductions writes this page from data/reproductions -->\n"

INDEX_HEAD = """\
# Reproductions

Every table and figure of four papers, and single claims of others, run again: what the paper reports, what comes
out here, and whether its claims hold. One command runs a row, such as `truesource reproduce jz-figure-1`
([how to](../howto/reproduce.md)).
"""

INDEX_NOTE = """\
**How a row is decided.** The claims of the paper are written down with the test of each before the row is run. A claim
holds where the 95% interval of what it compares lies on its side. It does not hold here where the interval lies on the
other side, and it is undecided where the interval includes both; if it is over training seeds, the page says how many
would decide the claim, if more of them vary like those there are. Networks are trained with several seeds; intervals
are over seeds, and over sentences too where models are compared with the truth on the same sentences. They are not
adjusted for the number of claims. A row *holds* where all its claims hold, *holds with a correction* where they hold
once a published formula is corrected, *holds in part* where some claims hold and others are reversed, *does not hold
here* where claims are reversed and none holds, and is *undecided here* otherwise. Our models and corpora are small: a
claim that does not hold here may hold at the size of the paper, as each row says.
"""


def pages() -> dict[str, str]:
    """All pages by name.

    Raises:
        InputError: a row, its configuration or its result cannot be read.
    """
    results = {row.name: current_result(row) for paper in papers().values() for row in paper.rows}
    found = {paper.paper: paper_page(paper, results) for paper in papers().values()}
    return {"index": index_page(papers(), results), **found}


def current_result(row: Row) -> RowResult | None:
    """The committed result of a row; None where there is none, or a stale one."""
    found = committed_result(row)
    return found if found is not None and found.digest == digest_of(row, compose(row)) else None


def committed_result(row: Row) -> RowResult | None:
    """The committed result of a row, even a stale one; None where there is none."""
    file = result_file(row)
    return read_result(file) if row.runs and file.is_file() else None


def index_page(papers: Mapping[str, Paper], results: Mapping[str, RowResult | None]) -> str:
    """The page with a row for each table and figure."""
    entries = [
        f"- [{work_of(paper).short}]({paper.paper}.md): {work_of(paper).fields['title']}" for paper in papers.values()
    ]
    entries.append("- [Published bounds](published.md): how released numbers are computed from the released files")
    parts = [INDEX_HEAD, "\n".join(entries) + "\n", INDEX_NOTE, _summary(papers, results)]
    for paper in papers.values():
        parts += [f"## {work_of(paper).short}\n", _index_table(paper, results)]
    return "\n".join([*parts, GENERATED])


def paper_page(paper: Paper, results: Mapping[str, RowResult | None]) -> str:
    """The page of a paper, with the claims and numbers of each of its rows."""
    work = work_of(paper)
    intro = [] if paper.intro is None else [f"{_text(paper.intro)}\n"]
    head = [f"# {work.short}\n", f"{work}. [All rows of all papers](index.md).\n", *intro]
    return "\n".join([*head, *(_row_section(row, results[row.name]) for row in paper.rows), GENERATED])


def work_of(paper: Paper) -> Work:
    """The publication: the one that `truesource cite` lists under the same first author and year."""
    return next(work for work in works() if _name(work) == paper.paper)


def _name(work: Work) -> str:
    """The name of a paper: the family name of its first author without accents, and its year."""
    family = unicodedata.normalize("NFKD", work.fields["author"].partition(",")[0].lower().replace("æ", "ae"))
    return f"{family.encode('ascii', 'ignore').decode()}{work.fields['year']}"


def verdict_now(row: Row, result: RowResult | None) -> str:
    """The verdict on a row, from those on its claims."""
    if not row.runs:
        return str(Verdict.UNTESTED)
    return NOT_RUN if result is None else str(verdict_of(row, [Verdict(claim.verdict) for claim in result.claims]))


def _summary(papers: Mapping[str, Paper], results: Mapping[str, RowResult | None]) -> str:
    verdicts = Counter(verdict_now(row, results[row.name]) for paper in papers.values() for row in paper.rows)
    order = [*(str(verdict) for verdict in Verdict), NOT_RUN]
    said = ", ".join(f"{verdicts[verdict]} {verdict}" for verdict in order if verdicts[verdict])
    return f"Of {sum(verdicts.values())} rows: {said}.\n"


def _index_table(paper: Paper, results: Mapping[str, RowResult | None]) -> str:
    columns = ("row", "verdict", "the paper reports", "here", "seeds", "minutes", "command")
    lines = [list(columns), ["---"] * len(columns)]
    for row in paper.rows:
        result = results[row.name]
        link = f"[{_text(row.shows)}]({paper.paper}.md#{row.name})"
        if result is None:
            command = f"`{command_of(row)}`" if row.runs else ABSENT
            here = _text(row.untested) if row.untested is not None else ABSENT
            lines.append([link, verdict_now(row, None), _text(row.published), here, ABSENT, ABSENT, command])
            continue
        lines.append(
            [
                link,
                f"**{verdict_now(row, result)}**",
                _text(row.published),
                headline(row, result),
                str(result.seeds or ABSENT),
                _minutes(result.minutes),
                f"`{command_of(row)}`",
            ]
        )
    return _table(lines)


def headline(row: Row, result: RowResult) -> str:
    """How many claims hold; and the first number that the paper gives beside ours, or what decides the first claim."""
    verdicts = [claim.verdict for claim in result.claims]
    held = verdicts.count(str(Verdict.HOLDS))
    reversed_ = verdicts.count(str(Verdict.REVERSED))
    counted = f"{held} of {len(verdicts)} claims hold" + (f", {reversed_} reversed" if reversed_ else "")
    published = next((name for name in result.quantities if row.quantities[name].published is not None), None)
    if published is not None:
        theirs = shown(row.quantities[published].published or 0.0, SPEC)
        return f"{counted}; {published}: {_number(result.quantities[published])} (paper: {theirs})"
    first = result.claims[0].differences[0]
    return f"{counted}; {_code(first.what)}: {_number(first)}"


def _row_section(row: Row, result: RowResult | None) -> str:
    parts = [f"## {row.name}\n", f"**{_text(row.shows)}. {_text(row.title)}.** {_text(row.published)}\n"]
    if row.untested is not None:
        return "\n".join([*parts, f"**{Verdict.UNTESTED}.** {_text(row.untested)}\n"])
    parts.append(f"```sh\n{command_of(row)}\n```\n")
    if result is None:
        parts.append(f"**{NOT_RUN}.** The claims to test:\n")
        parts.append("\n".join(f"- {_text(claim.says)}" for claim in row.claims) + "\n")
    else:
        verdict, why = verdict_now(row, result), row.correction
        corrected = verdict == Verdict.CORRECTED and why is not None
        says = f"**{verdict.capitalize()}:** {_text(str(why))}\n" if corrected else f"**{verdict.capitalize()}.**\n"
        parts += [says, _claims(row, result), _quantities(row, result)]
        parts.append(_made_with(result))
    if row.differs is not None:
        parts.append(f"*Why the numbers differ.* {_text(row.differs)}\n")
    if row.correction is not None and (result is None or verdict_now(row, result) != Verdict.CORRECTED):
        parts.append(f"*Correction.* {_text(row.correction)}\n")
    return "\n".join(parts)


def _claims(row: Row, result: RowResult) -> str:
    lines = [["claim", "tested", "verdict"], ["---"] * 3]
    for claim, found in zip(row.claims, result.claims, strict=True):
        tests = "<br>".join(f"{_code(each.what)}: {_number(each)}" for each in found.differences)
        lines.append([_text(claim.says), tests, decided(found) + _open(claim, found)])
    return _table(lines)


def _open(claim: Claim, found: ClaimResult) -> str:
    """How many seeds would decide a claim that is undecided, where its numbers have seeds."""
    if found.verdict != Verdict.UNDECIDED:
        return ""
    open_ = [each for each in found.differences if each.verdict == Verdict.UNDECIDED]
    if any(len(each.by_seed) < 2 or each.over != SEEDS for each in open_):
        return ""
    needed = [seeds_to_decide(claim, list(each.by_seed.values())) for each in open_]
    known = [number for number in needed if number is not None]
    if len(known) < len(needed):
        return f"; {MOST_SEEDS:,} seeds would not"
    return f"; about {max(known)} seeds would decide"


def decided(claim: ClaimResult) -> str:
    """The verdict on a claim, with a remark where numbers were compared as they are."""
    exact = any(each.value is not None and each.low is None for each in claim.differences)
    return f"{claim.verdict} ({EXACT})" if exact else claim.verdict


def _quantities(row: Row, result: RowResult) -> str:
    lines = [["quantity", "published", "here", "seeds", "interval over"], ["---"] * 5]
    for name, found in result.quantities.items():
        published = row.quantities[name].published
        theirs = ABSENT if published is None else shown(published, SPEC)
        seeds = str(len(found.by_seed) or ABSENT)
        missing = f" (no value with seed {', '.join(map(str, found.missing))})" if found.missing else ""
        lines.append([_code(name), theirs, _number(found), seeds + missing, found.over or ABSENT])
    return _table(lines)


def _made_with(result: RowResult) -> str:
    versions = ", ".join(f"{name} {version}" for name, version in result.versions.items())
    return f"{_minutes(result.minutes)} minutes on {result.machine}; {versions}.\n"


def _number(found: NumberResult) -> str:
    """A value with its interval."""
    if found.value is None:
        return "no value"
    text = shown(found.value, SPEC)
    if found.low is None or found.high is None:
        return text
    return f"{text} [{shown(found.low, SPEC)}, {shown(found.high, SPEC)}]"


def _minutes(minutes: float) -> str:
    return f"{minutes:.0f}" if minutes >= 10 else f"{minutes:.1f}"


def _text(text: str) -> str:
    """Plain text in Markdown, on one line; code in it stays code."""
    pieces = " ".join(text.split()).split("`")
    return "`".join(piece if number % 2 else _MARKUP.sub(r"\\\1", piece) for number, piece in enumerate(pieces))


def _code(text: str) -> str:
    return f"`{text}`"


def _table(lines: Sequence[Sequence[str]]) -> str:
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines) + "\n"


def main(folder: Path) -> None:
    """Write all pages into a folder."""
    from truesource.grammar.support.atomic_files import write_text

    for name, text in pages().items():
        write_text(folder / f"{name}.md", text)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
