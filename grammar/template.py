"""Compile a template grammar (feature notation and word lists) into a PCFG."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import digest_file
from truesource.grammar.template_reader import Factor, RuleTemplate, Template, TemplateTable, read_template

State = tuple[str, tuple[str, ...]]  #: a category and the values of its features
Tail = tuple[str, tuple[str, ...]]  #: a label and the remaining children of a long rule
Instance = tuple[State, tuple[State, ...], float]  #: parent, children, split weight


def compile_template(folder: str | Path) -> PCFG:
    """Compile ``grammar.txt`` and the word lists in its folder.

    Every variable takes every value of its domain; instances with a symbol that derives no words are dropped. Then each
    template line gets its share of its left-hand side, divided among its remaining instances in proportion to the
    product of its ``by`` tables, and the weights of each left-hand side are normalised to one. Equal rules are added.
    Rules with more than two children become chains of ``@LABEL`` symbols with a single rule each, so probabilities of
    trees are unchanged. Unreachable symbols are dropped. States are named ``CATEGORY-value-value``.

    Raises:
        InputError: a line cannot be parsed, uses an undeclared category or table, leaves a feature unbound, or uses a
            category without rules and words (with file and line); or the start derives nothing.
    """
    folder = Path(folder)
    template = read_template(folder)
    _check_categories(template)
    lines = [(rule, list(_instances(rule, template.tables))) for rule in template.rules]
    productive = _productive(template, [instances for _, instances in lines])
    start: State = (template.start, ())
    if start not in productive:
        raise InputError(f"the start category {template.start} derives no words", folder / "grammar.txt")

    rules: dict[State, list[tuple[tuple[State, ...], float]]] = defaultdict(list)
    for rule, instances in lines:
        for parent, weighted in _shares(rule, instances, productive, template.tables).items():
            rules[parent].extend(weighted)

    reached = _reachable(start, rules)
    named: dict[str, State] = {}
    for state in reached:
        if named.setdefault(_name(state), state) != state:
            raise InputError(
                f"two states would have the name {_name(state)}; rename a category or a value", folder / "grammar.txt"
            )
    labels: dict[str, str] = {}
    triples: list[tuple[str, tuple[str, ...], float]] = []
    preterminals: set[str] = set()
    tails: dict[Tail, str] = {}
    taken = set(named)
    for state in reached:
        name, label = _name(state), _label(state, template)
        labels[name] = label
        if state in template.words:
            preterminals.add(name)
            triples.extend((name, (word,), weight) for word, weight in template.words[state].items())
        for children, weight in rules.get(state, ()):
            below = _binarised([_name(child) for child in children], label, triples, tails, taken)
            triples.append((name, below, weight))
    labels |= {symbol: f"@{label}" for (label, _), symbol in tails.items()}
    digests = {path.name: digest_file(path) for path in sorted(folder.glob("*.txt"))}
    return PCFG.from_rules(
        triples,
        start=template.start,
        words=lambda parent, _: parent in preterminals,
        labels=labels,
        normalise=True,
        meta={"made_by": "grammar.template.compiler", "sources": digests},
    )


def _check_categories(template: Template) -> None:
    with_words = {category for category, _ in template.words}
    with_rules = {rule.left.category for rule in template.rules}
    for rule in template.rules:
        if rule.left.category in with_words:
            message = f"the category {rule.left.category} has words, so it cannot have rules too"
            raise InputError(message, rule.path, rule.line)
        for term in rule.right:
            if term.category not in with_words | with_rules:
                message = f"the category {term.category} is used here but has neither rules nor words"
                raise InputError(message, rule.path, rule.line)


def _instances(rule: RuleTemplate, tables: Mapping[str, TemplateTable]) -> Iterator[Instance]:
    """Yield every assignment of values to the variables of a rule for which no table is zero."""
    domains: dict[str, tuple[str, ...]] = {}
    for argument in (a for term in (rule.left, *rule.right) for a in term.arguments):
        domain = domains.get(argument.variable, argument.values)
        domains[argument.variable] = tuple(value for value in domain if value in argument.values)
    in_tables = dict.fromkeys(k for f in (*rule.split, *rule.share_factors) for k in f.keys if k in domains)
    variables = [*in_tables, *(v for v in domains if v not in in_tables)]
    ready: list[list[tuple[Factor, bool]]] = [[] for _ in range(len(variables) + 1)]
    for factor, is_split in (*((f, False) for f in rule.share_factors), *((f, True) for f in rule.split)):
        # each factor is looked up once its last variable has a value
        last = max((variables.index(key) + 1 for key in factor.keys if key in domains), default=0)
        ready[last].append((factor, is_split))

    def extend(depth: int, values: dict[str, str], weight: float) -> Iterator[Instance]:
        for factor, is_split in ready[depth]:
            result = _look_up(factor, values, tables)
            if result == 0.0:
                return
            weight *= result if is_split else 1.0
        if depth < len(variables):
            for value in domains[variables[depth]]:
                values[variables[depth]] = value
                yield from extend(depth + 1, values, weight)
            return
        parent, *children = (
            (term.category, tuple(values[a.variable] for a in term.arguments)) for term in (rule.left, *rule.right)
        )
        yield parent, tuple(children), weight

    return extend(0, {}, 1.0)


def _look_up(factor: Factor, values: Mapping[str, str], tables: Mapping[str, TemplateTable]) -> float:
    return tables[factor.table].entries.get(tuple(values.get(key, key) for key in factor.keys), 0.0)


def _productive(template: Template, lines: Sequence[Sequence[Instance]]) -> set[State]:
    """Return states that derive at least one string of words."""
    productive: set[State] = set(template.words)
    waiting: dict[State, list[int]] = defaultdict(list)
    missing: list[int] = []
    parents: list[State] = []
    queue = list(productive)
    for parent, children, _ in (instance for instances in lines for instance in instances):
        for child in set(children):
            waiting[child].append(len(parents))
        missing.append(len(set(children)))
        parents.append(parent)
    while queue:
        for rule in waiting[queue.pop()]:
            missing[rule] -= 1
            if missing[rule] == 0 and parents[rule] not in productive:
                productive.add(parents[rule])
                queue.append(parents[rule])
    return productive


def _shares(
    rule: RuleTemplate, instances: Sequence[Instance], productive: set[State], tables: Mapping[str, TemplateTable]
) -> dict[State, list[tuple[tuple[State, ...], float]]]:
    """Return the weighted right-hand sides of one template line for each parent."""
    by_parent: dict[State, list[tuple[tuple[State, ...], float]]] = defaultdict(list)
    for parent, children, weight in instances:
        if productive.issuperset(children):
            by_parent[parent].append((children, weight))
    for (category, values), weighted in by_parent.items():
        bound = {a.variable: value for a, value in zip(rule.left.arguments, values, strict=True)}
        share = rule.share * math.prod(_look_up(factor, bound, tables) for factor in rule.share_factors)
        total = math.fsum(weight for _, weight in weighted)
        by_parent[category, values] = [(children, share * weight / total) for children, weight in weighted]
    return by_parent


def _reachable(start: State, rules: Mapping[State, Sequence[tuple[tuple[State, ...], float]]]) -> list[State]:
    """Return states in the order in which a walk from the start first reaches them."""
    seen = {start: None}
    order = [start]
    for state in order:
        for children, _ in rules.get(state, ()):
            for child in children:
                if child not in seen:
                    seen[child] = None
                    order.append(child)
    return order


def _name(state: State) -> str:
    return "-".join((state[0], *state[1]))


def _label(state: State, template: Template) -> str:
    category, values = state
    for term, label in template.labels:
        if term.category == category and all(v in a.values for v, a in zip(values, term.arguments, strict=True)):
            return label
    return category


def _binarised(
    children: Sequence[str],
    label: str,
    triples: list[tuple[str, tuple[str, ...], float]],
    tails: dict[Tail, str],
    taken: set[str],
) -> tuple[str, ...]:
    """Return the children of a rule, all but the first folded into ``@LABEL`` symbols shared by equal tails.

    If the name of a tail is ``taken``, by a state or by another tail, it gets primes.
    """
    if len(children) <= 2:
        return tuple(children)
    tail = label.removeprefix("@"), tuple(children[1:])
    if tail not in tails:
        symbol = f"@{tail[0]}." + ".".join(tail[1])
        while symbol in taken:
            symbol += "'"
        taken.add(symbol)
        tails[tail] = symbol
        triples.append((symbol, _binarised(children[1:], label, triples, tails, taken), 1.0))
    return children[0], tails[tail]
