"""The command reference: a page for each verb, from what its help says."""

from __future__ import annotations

from typing import Any

from truesource.cli.app import GROUPS, VERBS, load
from truesource.terminal.help import OptionHelp, folded, verb_help

WIDTH = 96
ROOT = """\
# Command

`truesource VERB --help` says the same in a terminal. Exit codes are in [What can go wrong](../../concepts/failures.md).
These options stand before or after each verb, or in the environment (`TRUESOURCE_QUIET`, `TRUESOURCE_VERBOSE`,
`TRUESOURCE_LOG_FILE`, `TRUESOURCE_TRACEBACK`):

| option | meaning |
| --- | --- |
"""


def command_pages() -> dict[str, str]:
    """Text of each page, by its file."""
    pages = {"index.md": _index()}
    for name in VERBS:
        verb = load(name)
        if hasattr(verb, "commands"):
            shown = {inner: each for inner, each in verb.commands.items() if not each.hidden}
            pages[f"{name}.md"] = _group(name, shown)
            pages |= {f"{name}-{inner}.md": _page(each, f"truesource {name} {inner}") for inner, each in shown.items()}
        else:
            pages[f"{name}.md"] = _page(verb, f"truesource {name}")
    return pages


def _index() -> str:
    from typer.main import get_command

    from truesource.cli.app import app

    rows = []
    for each in get_command(app).params:
        if not getattr(each, "hidden", False) and each.name != "help":
            value = " FILE" if each.name == "log_file" else ""
            rows.append(f"| `{', '.join(sorted(each.opts, key=len))}{value}` | {_cell(each.help or '')} |")
    parts = [ROOT + "\n".join(rows)]
    for group, names in GROUPS.items():
        items = [f"- [truesource {name}]({name}.md): {VERBS[name][1]}" for name in names if name in VERBS]
        parts.append(f"## {group}\n\n" + "\n".join(items))
    left = set(VERBS) - {name for names in GROUPS.values() for name in names}
    parts += [f"- [truesource {name}]({name}.md): {VERBS[name][1]}" for name in VERBS if name in left]
    return "\n\n".join(parts) + "\n"


def _group(name: str, shown: dict[str, Any]) -> str:
    """The page of a group of verbs."""
    items = []
    for inner, each in shown.items():
        first = verb_help(each, "").paragraphs[0].partition(". ")[0].rstrip(".")
        items.append(f"- [truesource {name} {inner}]({name}-{inner}.md): {first}.")
    contents = "\n".join(f"{name}-{inner}" for inner in shown)
    toctree = f"```{{toctree}}\n:hidden:\n\n{contents}\n```"
    return f"# truesource {name}\n\n{VERBS[name][1]}\n\n" + "\n".join(items) + f"\n\n{toctree}\n"


def _page(verb: Any, path: str) -> str:
    """The page of a verb."""
    found = verb_help(verb, path)
    parts = [f"# {path}", *map(_plain, found.paragraphs), f"```text\n{found.usage}\n```"]
    for example in found.examples:
        code = "\n".join(line.removeprefix("  ") for line in folded(example, WIDTH).split("\n"))
        parts.append(f"```sh\n{code}\n```")
    if found.examples:
        parts.insert(-len(found.examples), "## Example" if len(found.examples) == 1 else "## Examples")
    for panel, shown in found.panels.items():
        head = "argument" if panel == "Arguments" else "option"
        parts.append(f"## {panel}\n\n| {head} | meaning |\n| --- | --- |\n" + "\n".join(map(_row, shown)))
    return "\n\n".join(parts) + "\n"


def _row(each: OptionHelp) -> str:
    return f"| {'<br>'.join(f'`{_cell(name, code=True)}`' for name in each.names)} | {_cell(each.text)} |"


def _plain(text: str) -> str:
    """Text as Markdown that shows every character of it; code in backticks stays."""
    pieces = text.split("`")
    if len(pieces) % 2 == 0:
        return _escaped(text.replace("`", "\\`"))
    return "`".join(piece if place % 2 else _escaped(piece) for place, piece in enumerate(pieces))


def _escaped(text: str) -> str:
    for each in "\\*_<>[]#":
        text = text.replace(each, f"\\{each}")
    return text


def _cell(text: str, code: bool = False) -> str:
    return (text if code else _plain(text)).replace("|", "\\|")
