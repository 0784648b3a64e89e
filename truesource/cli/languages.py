"""`truesource languages`: the languages of known truth."""

from __future__ import annotations

from truesource.cli.console import echo
from truesource.cli.options import Force, Json

WIDTH = 100  #: characters, where there is no terminal


def command(json: Json = None, force: Force = False) -> None:
    """List the languages whose exact grammar comes with truesource: parameters, purpose, source.

    A language such as dyck, or dyck:k=3,depth=5 to change its parameters, can be named wherever a grammar can.

    Example: truesource languages
    """
    from textwrap import fill

    from truesource.cli.output import OutputFiles, json_of, show
    from truesource.grammar.languages import languages, parameters, short_citation
    from truesource.report.table import ReportTable, TableRow

    files = OutputFiles(json=json, force=force)
    defaults = {
        name: {each.key: each.value for each in parameters(language.settings()) if each.value}
        for name, language in languages().items()
    }
    rows = [
        TableRow(
            [
                name,
                " ".join(f"{key}={value}" for key, value in defaults[name].items()),
                language.tests,
                short_citation(language.citation),
            ]
        )
        for name, language in languages().items()
    ]
    columns = ("language", "parameters and their defaults", "what it tests", "source")
    show(ReportTable(columns=columns, text=(0, 1, 2, 3), rows=rows), WIDTH)
    for name, language in languages().items():
        if language.presets:
            echo(fill(f"Names for settings of {name}: {', '.join(language.presets)}", WIDTH, subsequent_indent="  "))
    records = [
        {
            "language": name,
            "title": language.title,
            "parameters": defaults[name],
            "presets": list(language.presets),
            "tests": language.tests,
            "citation": language.citation,
        }
        for name, language in languages().items()
    ]
    written = files.write(json=json_of(records))
    wrote = f"Wrote {' and '.join(written)}. " if written else ""
    echo(f"{wrote}Next: truesource language dyck")
