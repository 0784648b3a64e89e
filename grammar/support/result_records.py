"""Results that are records: as a data frame, in one line, and as a table in a notebook."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from truesource.grammar.support.printable import one_line, shortened

if TYPE_CHECKING:
    import pandas as pd

SHOWN = 3  #: numbers in the one line
ROWS = 20  #: of the table in a notebook
_LONGEST = 40  #: characters of a name in the one line
_NAMED = ("model", "source", "sample", "objective")  #: what says whose the numbers are


class ResultRecords:
    """A result whose numbers are records; a class that has this base is a dataclass with ``repr=False``."""

    def records(self) -> Sequence[Mapping[str, Any]]:
        """One record a number: ``name``, ``value``, ``low`` and ``high`` in nats unless its name says otherwise."""
        raise NotImplementedError

    def to_pandas(self) -> pd.DataFrame:
        """The records as a data frame: a row a number, a column a key; missing where a record has no such key."""
        import pandas as pd

        return pd.DataFrame([dict(record) for record in self.records()])

    def __repr__(self) -> str:
        return line_of(type(self).__name__, self.records())

    def _repr_html_(self) -> str:
        frame = self.to_pandas()
        columns = [name for name in frame.columns if name != "signature" and not frame[name].isna().all()]
        how: dict[str, Any] = {"index": False, "border": 0, "na_rep": "", "float_format": "{:.4f}".format}
        html: str = frame[columns].to_html(max_rows=ROWS, **how)
        return html


def line_of(kind: str, records: Sequence[Mapping[str, Any]]) -> str:
    """What a result is, its first numbers with their intervals, and how many more there are, in one line."""
    head = next(iter(records), {})
    names = [_short(head[key]) for key in _NAMED if isinstance(head.get(key), str)]
    numbers = [record for record in records if isinstance(record.get("value"), int | float)]
    shown = [_number(record) for record in numbers[:SHOWN]]
    more = [f"{len(records) - len(shown):,} more"] if len(records) > len(shown) else []
    said = ": ".join(part for part in (", ".join(names), ", ".join([*shown, *more])) if part)
    return f"{kind}({said})"


def _number(record: Mapping[str, Any]) -> str:
    low, high = record.get("low"), record.get("high")
    ends = "" if low is None or high is None else f" [{low:.4g}, {high:.4g}]"
    return f"{_short(str(record.get('name', '')))} {record['value']:.4g}{ends}"


def _short(text: str) -> str:
    return shortened(one_line(text), _LONGEST)
