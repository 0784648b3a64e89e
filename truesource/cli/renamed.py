"""Earlier spellings of options: each works for one version, with one warning that names the spelling of today.

How to rename an option:

* An option of a settings class (`truesource.cli.settings.with_options`): write the earlier key into ``renamed`` of the
  class. That is enough: the configuration and the command line both take it.
* Any other option: declare it under its new spelling, and write one line into `OPTIONS` below. Several earlier
  spellings may share one new one (``-n`` and ``--list``, ``--list-words``); where the new one may be given once only,
  giving both is an error.

An option that an earlier version had and this one has not under any name is no entry here: it is an unknown option.
Help never shows earlier spellings; `truesource.cli.renamed_table` lists them all for the documentation. An entry goes
with the version after the one that made it.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.errors import InputError

if TYPE_CHECKING:
    from truesource.grammar.support.settings import Settings

log = logging.getLogger("truesource")

#: by verb (of ``evaluate WHAT``: WHAT), the earlier spelling of an option and that of today, with the value of a flag
OPTIONS: dict[str, dict[str, str]] = {
    "sample": {"--split": "--shares", "--no-trees": "--trees=none"},
    "divergence": {"--samples": "--model-samples"},
    "compare": {"--exact": "--exact-kl", "--csv": "--table", "--latex": "--table"},
    "benchmark": {"--csv": "--table"},
    "tokenisation": {"--words": "--word-table"},
    "lattice": {"--number": "--list-words", "-n": "--list-words", "--list": "--list-words"},
}


def option_name(field: str) -> str:
    """``--most-prefixes`` for ``most_prefixes``, ``--from`` for ``from_``."""
    return f"--{field.rstrip('_').replace('_', '-')}"


def earlier_spellings(verb: str, command: Callable[..., Any] | None) -> dict[str, str]:
    """Earlier spellings of the options of a verb, and those of today.

    Args:
        verb: its name.
        command: its function; one made by `truesource.cli.settings.with_options` knows the renamed keys of its class.
    """
    return {**getattr(command, "renamed_options", {}), **OPTIONS.get(verb, {})}


def renamed_fields(kind: type[Settings]) -> dict[str, str]:
    """Earlier spellings of the options of a settings class, and those of today."""
    return {
        option_name(old): option_name(new)
        for old, new in kind.renamed.items()
        if new in kind.model_fields and new not in kind.yaml_only
    }


def with_names_of_today(
    arguments: Sequence[str], spellings: Mapping[str, str], *, repeatable: frozenset[str] = frozenset()
) -> list[str]:
    """The arguments of a verb in the spelling of today; each earlier one is warned of once.

    Args:
        arguments: as they were typed; after ``--`` nothing is an option.
        spellings: earlier and present ones.
        repeatable: options that may be given several times.

    Raises:
        InputError: an option that may be given once has several spellings here.
    """
    end = arguments.index("--") if "--" in arguments else len(arguments)
    split = [argument.partition("=") for argument in arguments[:end]]
    given = [name for name, _, _ in split]
    for old in dict.fromkeys(name for name in given if name in spellings):
        new = spellings[old]
        others = [name for name in dict.fromkeys(given) if name != old and spellings.get(name, name) == new]
        if others and new not in repeatable:
            raise InputError(f"{old} is the earlier name of {new}; give only {new}", code="renamed-option")
        log.warning("the option %s is now called %s", old, new)
    return [spellings.get(name, name) + equals + value for name, equals, value in split] + list(arguments[end:])
