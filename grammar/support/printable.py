"""Text for people, while and after a call: data made safe to print, the one line of a result, progress.

Words and names come from files that anybody may have written. A word may hold a terminal's escape sequence, markup, or
a line break. Each function for such data is for one target and returns text that the target shows and does not obey.
None of them can be undone.

Progress of long work is a bar on a terminal, and lines in the log elsewhere. Lines go to the logger
``truesource.progress``: when work has begun, at every milestone (a checkpoint that is evaluated, a shard), once a
minute, and at the end. On a terminal, where there is a bar, they are debug messages.
"""

from __future__ import annotations

import logging
import re
import sys
import threading
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from time import monotonic
from typing import IO, TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    import pandas as pd
    from rich.progress import Progress


LONGEST_RUN = 60  #: characters without a blank that `shortened` leaves as they are
LONGEST_QUOTE = 400  #: characters without a blank in a message
LONGEST_MESSAGE = 1200  #: characters
LONGEST_LINE = 190  #: characters of the line that an object prints as

#: what a terminal obeys, what turns the reading direction of the text around it, and what XML and UTF-8 cannot hold;
#: line breaks and tabs are no part of it
_OBEYED = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069\ufff9-\ufffb\ufffe\uffff\ud800-\udfff]"
)
_MARKDOWN = re.compile(r"[\\`*\[\]<>&|$~]|(?<!\w)_|_(?!\w)|^(?=[#+-])")
FEWEST = 10  #: independent units, such as sentences, that an interval needs; fewer say little of others
_FEW = f"fewer-than-{FEWEST}-"
_REASONS = {
    "no-power-law": "frequencies fall faster than a power law",
    "beta-at-bound": "beta is at its bound",
    "not-identified": "the sample does not determine the law",
    "one-seed": "this is a single seed of several",
    "last-step-only": "only the last step has one",
    "of-two-samples": "it is the difference of two estimates",
}
SHOWN = 3  #: numbers in the one line
ROWS = 20  #: of the table in a notebook
_LONGEST = 40  #: characters of a name in the one line
_NAMED = ("model", "source", "sample", "objective")  #: what says whose the numbers are
LONG = 0.5  #: seconds; shorter work is not worth a line
EVERY = 60.0  #: seconds between lines where no milestone comes
APART = 1.0  #: minimum number of seconds between lines of milestones
FEWEST_STEPS, FEWEST_SECONDS = 5, 5.0  #: that say how long the others will take: the first are slow, or are a fluke
_SHOWN: ContextVar[bool] = ContextVar("shown", default=False)  # whether something is shown already


def terminal(text: str) -> str:
    r"""Return text of one or more lines without control characters: ``\x1b`` is shown, not obeyed.

    Also of use for HTML and SVG, after their own escapes: what is left is legal in XML and in UTF-8.

    >>> print(terminal("a" + chr(27) + "[31m"))
    a\x1b[31m
    """
    return _OBEYED.sub(_shown, text)


def one_line(text: str) -> str:
    """Return text as `terminal` gives it, with line breaks and tabs shown too, so that data cannot add a line."""
    return terminal(text).replace("\n", "\\n").replace("\t", "\\t")


def shortened(text: str, most: int = LONGEST_RUN) -> str:
    """The text with the middle of long runs without a blank left out; each run has at most ``most`` characters."""
    head = most // 2
    tail = most - 1 - head
    return re.sub(rf"\S{{{most + 1},}}", lambda run: f"{run[0][:head]}\N{HORIZONTAL ELLIPSIS}{run[0][-tail:]}", text)


def brief(text: str, most: int = LONGEST_LINE) -> str:
    """Return one line of at most ``most`` characters, with an ellipsis in the place of the rest."""
    line = one_line(text)
    return line if len(line) <= most else f"{line[: most - 2]}\N{HORIZONTAL ELLIPSIS}{line[-1]}"


def line_of_settings(name: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> str:
    """Return one line of settings, those that differ from their defaults.

    Args:
        name: of the class.
        values: of its fields.
        defaults: of those that have one.
    """
    changed = ", ".join(
        f"{key}={value!r}" for key, value in values.items() if key not in defaults or value != defaults[key]
    )
    return brief(f"{name}({changed})")


def message(text: str) -> str:
    """Return one line for the person who gave the input, of which it quotes no more than is needed to know it again."""
    text = shortened(one_line(text), LONGEST_QUOTE)
    half = LONGEST_MESSAGE // 2
    return text if len(text) <= LONGEST_MESSAGE else f"{text[:half]}\N{HORIZONTAL ELLIPSIS}{text[-half:]}"


def markdown(text: str) -> str:
    """Text inside a line, a heading or a table cell of Markdown; characters of its syntax are taken literally."""
    return _MARKDOWN.sub(lambda found: f"\\{found[0]}", one_line(text))


def markdown_code(text: str) -> str:
    """Return a code span of Markdown, with a fence that the text does not hold."""
    line = one_line(text)
    fence = "`" * (1 + max((len(run) for run in re.findall("`+", line)), default=0))
    pad = " " if line.startswith("`") or line.endswith("`") else ""
    return f"{fence}{pad}{line}{pad}{fence}"


def _shown(found: re.Match[str]) -> str:
    code = ord(found[0])
    return f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}"


def counted(n: int, noun: str) -> str:
    """Return ``1 sentence`` or ``2,000 sentences``; for nouns with a plural in s only."""
    return f"{n:,} {noun}" if n == 1 else f"{n:,} {noun}s"


def listed(names: Sequence[str]) -> str:
    """Return ``a, b and c``; empty where there is none."""
    return " and ".join(filter(None, [", ".join(names[:-1]), *names[-1:]]))


def list_lines(numbers: Sequence[int], most: int = 5, *, what: str = "line") -> str:
    """Return ``line 3``, or ``lines 3, 4, 5, 6, 7, ...``; ``what`` names what is numbered."""
    first = ", ".join(map(str, numbers[:most])) + (", ..." if len(numbers) > most else "")
    return f"{what}{'s' if len(numbers) > 1 else ''} {first}"


def too_few(units: int) -> bool:
    """Return True if so many independent units have no interval."""
    return units < FEWEST


def few_code(unit: str = "sentence") -> str:
    """Return the reason why there is no interval of too few units, such as ``fewer-than-10-sentences``."""
    return f"{_FEW}{unit}s"


def reason_text(code: str) -> str:
    """Return words for a code of `few_code` and others; an unknown code as it is."""
    if code.startswith(_FEW):
        return f"fewer than {FEWEST} {code.removeprefix(_FEW).replace('-', ' ')}"
    return _REASONS.get(code, code)


def no_interval_text(codes: list[str]) -> str:
    """Return a sentence on values without an interval; empty for no codes."""
    return f"Without interval: {'; '.join(map(reason_text, dict.fromkeys(codes)))}." if codes else ""


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
    """Return one line of what a result is, its first numbers with their intervals, and how many more there are."""
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


T = TypeVar("T")


log = logging.getLogger("truesource.progress")


def _bar(*, shown: bool) -> Progress:
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

    return Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}", markup=False),
        TextColumn("{task.fields[note]}", markup=False),
        TimeElapsedColumn(),
        TextColumn("{task.fields[left]}", markup=False),
        console=Console(stderr=True),
        disable=not shown,
    )


def seconds_left(steps: int, seconds: float, done: float, left: float) -> float | None:
    """Return how long the rest of some work will take; None: too little is done to say.

    Args:
        steps: done since ``seconds``.
        seconds: since the work has begun.
        done: amount of work that these steps did.
        left: amount of work.
    """
    known = steps >= FEWEST_STEPS and seconds >= FEWEST_SECONDS and done > 0
    return seconds / done * left if known else None


class Meter:
    """One running task; `advance` it, and `note` what a reader wants to see beside it."""

    def __init__(self, progress: Progress, description: str, total: float | None, level: int | None) -> None:
        self._progress, self._level = progress, level
        self._description, self._total = one_line(description), total
        self._task = progress.add_task(self._description, total=total, note="", rate="", left="")
        self._done, self._before, self._note, self._steps = 0.0, 0.0, "", 0
        self.stopped = False  #: whether the work ends, in order, before it is done
        self._start = self._last = monotonic()
        self._begun = False

    def advance(self, step: float = 1, note: str | None = None) -> None:
        """Move by ``step``; a ``note`` that is new marks a milestone, and stands beside the rate from then on."""
        self._done += step
        self._steps += step > 0
        milestone = note is not None and one_line(note) != self._note
        if milestone:
            self._note = one_line(note or "")
        rate, left = self._rate_text(), self._left_text()
        self._progress.update(self._task, advance=step, note=self._note, rate=rate, left=left)
        now = monotonic()
        if now - self._last >= (APART if milestone else EVERY):
            self._line(self.state())

    def skip(self, step: float) -> None:
        """Move by what an earlier call has done, which says nothing of the rate; the work itself begins now."""
        self._before += step
        self.advance(step)
        self._start, self._steps = monotonic(), 0

    def state(self) -> str:
        """Return how far it is, such as ``300 of 3,000 (10%), 41.2/s, 0:01:05 left; loss 3.2``."""
        text = _amount(self._done) if self._done or self._total else f"{_clock(monotonic() - self._start)} so far"
        if self._total:
            text += f" of {_amount(self._total)} ({self._done / self._total:.0%})"
        parts = filter(None, [text, self._rate_text(), self._left_text()])
        return ", ".join(parts) + (f"; {self._note}" if self._note else "")

    def begin(self) -> None:
        """Log that the work has begun."""
        total = "" if not self._total else f": {_amount(self._total)} to do"
        already = f", {_amount(self._before)} done before" if self._before else ""
        self._begun = True
        self._write(f"{self._description}{total}{already}")

    def beat(self) -> None:
        """Log the progress if there was no line for long."""
        if monotonic() - self._last >= EVERY:
            self._line(self.state())

    def end(self, *, finished: bool) -> None:
        """Log that the work has ended; short work only for debugging."""
        seconds = monotonic() - self._start
        whole = finished and not self.stopped
        what = "done" if whole else "stopped"
        of = f" of {_amount(self._total)}" if self._total and not whole else ""
        rate = self._rate_text()
        note = f"; {self._note}" if self._note else ""
        amount = f", {_amount(self._done)}{of}" if self._done or of else ""  # of work that does not count, its time
        text = f"{self._description}: {what}{amount} in {_clock(seconds)}{rate and f', {rate}'}{note}"
        self._write(text, self._level if self._begun else logging.DEBUG)

    def _line(self, text: str) -> None:
        self._last = monotonic()
        self._begun = True
        self._write(f"{self._description}: {text}")

    def _write(self, text: str, level: int | None = None) -> None:
        if self._level is not None:
            log.log(self._level if level is None else level, "%s", text)

    def _rate(self) -> float:
        return (self._done - self._before) / max(monotonic() - self._start, 1e-9)

    def _left_text(self) -> str:
        done, left = self._done - self._before, (self._total or 0.0) - self._done
        seconds = seconds_left(self._steps, monotonic() - self._start, done, left) if left > 0 else None
        return "" if seconds is None else f"{_clock(seconds)} left"

    def _rate_text(self) -> str:
        rate = self._rate()
        return f"{rate:,.0f}/s" if rate >= 100 else f"{rate:.3g}/s" if rate > 0 else ""


def is_terminal(stream: IO[str] | None) -> bool:
    """Return True if a stream is a terminal; a stream that is closed or missing is none."""
    try:
        return stream is not None and stream.isatty()
    except ValueError:
        return False


@contextmanager
def meter(description: str, total: float | None = None) -> Iterator[Meter]:
    """Show one task while the block runs; what it consists of, metered within, stays silent."""
    hidden, terminal = _SHOWN.get(), is_terminal(sys.stderr)
    level = None if hidden else logging.DEBUG if terminal else logging.INFO
    with _bar(shown=terminal and not hidden) as progress:
        outer = _SHOWN.set(True)
        task = Meter(progress, description, total, level)
        finished = False
        try:
            with _heart(task, level):
                yield task
            finished = True
        finally:
            _SHOWN.reset(outer)
            task.end(finished=finished)


@contextmanager
def silent() -> Iterator[None]:
    """Show no progress while the block runs, as in all processes but the first of a distributed training."""
    outer = _SHOWN.set(True)
    try:
        yield
    finally:
        _SHOWN.reset(outer)


def track(items: Iterable[T], description: str, total: float | None = None) -> Iterator[T]:
    """Yield from ``items`` and show how far it is."""
    with meter(description, total) as task:
        for item in items:
            yield item
            task.advance()


@contextmanager
def _heart(task: Meter, level: int | None) -> Iterator[None]:
    """Lines that come although no step ends: soon after the begin, and once a minute."""
    if level is None or not log.isEnabledFor(level):
        yield
        return
    over = threading.Event()

    def watch() -> None:
        if over.wait(LONG):
            return
        task.begin()
        while not over.wait(EVERY / 4):
            task.beat()

    thread = threading.Thread(target=watch, name="progress", daemon=True)
    try:
        thread.start()
    except RuntimeError as error:  # no more threads can be started: the work goes on, with lines of its steps only
        log.debug("no thread for the lines of progress: %s", error)
        yield
        return
    try:
        yield
    finally:
        over.set()
        thread.join()


def _amount(number: float) -> str:
    return f"{number:,.0f}" if float(number).is_integer() else f"{number:,.1f}"


def _clock(seconds: float) -> str:
    """Return ``0:01:05``; of less than ten seconds ``1.2 s``."""
    if seconds < 10:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    return f"{minutes // 60}:{minutes % 60:02d}:{rest:02d}"
