"""YAML as plain values, with bounds on what a document may expand to."""

from __future__ import annotations

from typing import Any

import yaml

from truesource.grammar.support.errors import InputError

MOST_VALUES = 1_000_000  #: in a document, where each alias counts for all that it repeats
DEEPEST = 100  #: levels
#: what `yaml` raises on values that contradict their tag, such as ``!!timestamp x``
_UNCONVERTIBLE = (ValueError, OverflowError, AttributeError, LookupError, TypeError)


class _Loader(yaml.SafeLoader):
    """Stops at a depth where Python still can."""

    _depth = 0

    def compose_node(self, parent: yaml.Node | None, index: int) -> yaml.Node | None:
        """Compose a node one level below its parent."""
        self._depth += 1
        if self._depth > DEEPEST:
            raise _too_deep(self.peek_event())  # type: ignore[no-untyped-call]
        node: yaml.Node | None = super().compose_node(parent, index)
        self._depth -= 1
        return node


def _too_deep(at: Any) -> InputError:
    return InputError(f"it is nested more than {DEEPEST} levels deep", line=at.start_mark.line + 1)


def construct(text: str) -> Any:
    """The value of a document.

    Raises:
        InputError: what is wrong, in a few words, with the line: not YAML, nested too deeply, too many values, a key
            that occurs twice, a value that contains itself, a text that is not Unicode, a value that Python cannot
            hold.
    """
    loader = _Loader("")
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        if node is None:
            return None
        _check(node, {})
        return _construct(loader, node)
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None)
        reason = getattr(error, "problem", None) or "it has a character that YAML does not allow"
        raise InputError(reason, line=None if mark is None else mark.line + 1) from error
    finally:
        loader.dispose()


def _construct(loader: yaml.SafeLoader, node: yaml.Node) -> Any:
    try:
        return loader.construct_document(node)
    except _UNCONVERTIBLE as error:
        raise InputError("a value cannot be converted, such as a number of thousands of digits") from error


def _check(node: yaml.Node, seen: dict[int, tuple[int, int] | None]) -> tuple[int, int]:
    """How many values a node expands to, and how many levels; a node that occurs twice is an alias.

    Args:
        node: to count.
        seen: the counts of earlier nodes, by identity; None for those that ``node`` is inside of.
    """
    line = node.start_mark.line + 1
    if id(node) in seen:
        known = seen[id(node)]
        if known is None:
            raise InputError("a value contains itself", line=line)
        return known
    seen[id(node)] = None
    size, levels = 1, 0
    for child in _children(node):
        more, below = _check(child, seen)
        size, levels = size + more, max(levels, below)
        if size > MOST_VALUES:
            raise InputError(f"it expands to more than {MOST_VALUES:,} values", line=line)
    if levels >= DEEPEST:
        raise _too_deep(node)
    seen[id(node)] = size, levels + 1
    return size, levels + 1


def _children(node: yaml.Node) -> list[yaml.Node]:
    if isinstance(node, yaml.MappingNode):
        keys: set[str] = set()
        for key, _ in node.value:
            if isinstance(key, yaml.ScalarNode):
                if key.value in keys:
                    raise InputError(f"the key {key.value!r} occurs twice", line=key.start_mark.line + 1)
                keys.add(key.value)
        return [child for pair in node.value for child in pair]
    if isinstance(node, yaml.SequenceNode):
        return list(node.value)
    if any("\ud800" <= c <= "\udfff" for c in node.value):
        raise InputError("a text is not Unicode", line=node.start_mark.line + 1)
    return []
