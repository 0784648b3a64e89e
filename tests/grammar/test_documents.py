"""Documents of an unknown language, against sums over languages, over trees, and closed forms."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from scipy.special import gammaln, logsumexp

from truesource.generator.process_sampler import sampler_of
from truesource.grammar.building import Automaton
from truesource.grammar.conditioning import LengthRange
from truesource.grammar.documents.automata import Automata, LinearMoves
from truesource.grammar.documents.document import SEPARATOR, DocumentProcess, StringCount
from truesource.grammar.documents.pool import predictor_of
from truesource.grammar.inference.distributions import next_token_distributions
from truesource.grammar.languages.pool import pool_of
from truesource.grammar.pcfg import PCFG, language
from truesource.grammar.process import Process
from truesource.grammar.support.arrays import random_state
from truesource.grammar.support.errors import InputError
from truesource.grammar.truth import load_truth, process

POOLS = (
    ("pfsa:states=3,vocabulary=2,mean_length=2", "pfsa:states=2,vocabulary=2,mean_length=2,seed=5"),
    (
        "hmm:states=3,vocabulary=2,mean_length=3",
        "hmm:states=2,vocabulary=3,mean_length=3",
        "pfsa:states=2,vocabulary=2",
    ),
    ("shuffle-dyck:k=1,depth=2", "shuffle-dyck:k=1,depth=3,p_open=0.3"),
    ("dyck:k=1,depth=3", "dyck-free:p=0.3,k=1"),
    (
        "copy:vocabulary=2,longest=2,marker=false",
        "palindrome:k=2,mean_length=2.2",
        "pfsa:states=2,vocabulary=2,mean_length=2",
    ),
    ("z1r:mean_length=3", "rrxor:mean_length=2"),
    ("ngram:order=2,vocabulary=2,mean_length=2",),
)
COUNTS = (StringCount(1), StringCount(2), StringCount(3), StringCount(2, geometric=True))
MANY = "pool:family=palindrome/k=2/mean_length=2.2|pfsa/states=2/vocabulary=2/mean_length=2,languages=1,strings=2"
FAMILIES = (
    "pool:family=pfsa/states=3/vocabulary=2/mean_length=2,languages=3,strings=2",
    "dirichlet-markov:order=0,vocabulary=2,mean_length=2,strings=2",
    "dirichlet-markov:order=2,vocabulary=2,mean_length=2,strings=2,number=geometric",
    "dirichlet-automaton:states=3,vocabulary=2,transitions=2,mean_length=2,strings=2",
    "context-tree:depth=2,vocabulary=2,mean_length=2,strings=2",
    MANY,
)


def strings_of(document: Sequence[str]) -> list[tuple[str, ...]]:
    marks = [-1, *(i for i, word in enumerate(document) if word == SEPARATOR), len(document)]
    return [tuple(document[a + 1 : b]) for a, b in itertools.pairwise(marks)]


def every(truth: Process, longest: int, shortest: int = 1) -> list[tuple[str, ...]]:
    return [d for n in range(shortest, longest + 1) for d in itertools.product(truth.vocabulary, repeat=n)]


def number_log_prob(count: StringCount, n: int) -> float:
    with np.errstate(divide="ignore"):
        if count.geometric:
            return float((n - 1) * np.log1p(-1 / count.mean) - np.log(count.mean))
        return float(np.log(float(n == count.mean)))


def by_languages(members: Sequence[PCFG], prior: Sequence[float], count: StringCount, switch: float) -> Iterator[float]:
    """Receives a document, gives ln P: the sum over all rows of languages, one a string."""
    table: dict[tuple[str, ...], list[float]] = {}
    found = 0.0
    while True:
        document = yield found
        strings = strings_of(document)
        for string in strings:
            if string not in table:
                table[string] = [m.log_prob(string) if string else -np.inf for m in members]
        terms = []
        for row in itertools.product(range(len(members)), repeat=len(strings)):
            log = sum(table[s][k] for s, k in zip(strings, row, strict=True))
            with np.errstate(divide="ignore"):
                log += np.log(prior[row[0]])
                for a, b in itertools.pairwise(row):
                    log += np.log((1 - switch) * (a == b) + switch * prior[b])
            terms.append(log)
        found = number_log_prob(count, len(strings)) + float(logsumexp(terms))


def enumerated(
    documents: Sequence[Sequence[str]],
    members: Sequence[PCFG],
    prior: Sequence[float],
    count: StringCount,
    switch: float = 0.0,
) -> np.ndarray:
    oracle = by_languages(members, prior, count, switch)
    next(oracle)
    return np.array([oracle.send(document) for document in documents])  # type: ignore[attr-defined]


def close(own: np.ndarray, other: np.ndarray) -> None:
    np.testing.assert_allclose(np.exp(own), np.exp(other), rtol=1e-10, atol=1e-300)


@pytest.mark.long
@pytest.mark.parametrize("switch", [0.3, 1.0])
@pytest.mark.parametrize("names", [POOLS[0], POOLS[1][:2]], ids=["known", "hidden"])
def test_a_language_of_prior_0_is_never_drawn(names: tuple[str, ...], switch: float) -> None:
    one = pool_of(names, count=StringCount(2), prior=[0.0, 1.0], switch=switch)
    documents = every(one, 4)
    wanted = enumerated(documents, [PCFG.load(name) for name in names], [0.0, 1.0], StringCount(2), switch)
    close(one.exact.string_log_probs(documents), wanted)
    for document in [d for d, log in zip(documents, wanted, strict=True) if log > -np.inf][:5]:
        np.testing.assert_allclose(one.posterior([document])[0], [[0.0, 1.0]] * (len(document) + 1), atol=1e-12)
        after = one.next_token(document)
        assert after.probability.sum() + after.stop == pytest.approx(1.0, abs=1e-10)
    drawn = sampler_of(one).draw(200, random_state(1)).language
    assert drawn is not None
    assert drawn.tolist() == [1] * 200


@pytest.mark.long
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("names", POOLS)
def test_documents_of_a_pool_are_the_sum_over_its_languages(names: tuple[str, ...], count: StringCount) -> None:
    members = [PCFG.load(name) for name in names]
    prior = np.arange(1.0, len(names) + 1.0) / np.arange(1.0, len(names) + 1.0).sum()
    for switch in (0.0, 0.3, 1.0):
        one = pool_of(names, count=count, prior=prior.tolist(), switch=switch)
        documents = every(one, 6 if len(one.vocabulary) < 4 else 5)
        wanted = enumerated(documents, members, prior, count, switch)
        close(one.exact.string_log_probs(documents), wanted)
        pmf = np.bincount([len(d) for d in documents], np.exp(wanted))
        np.testing.assert_allclose(one.length_pmf(len(pmf) - 1), pmf, rtol=0.0, atol=1e-12)


@pytest.mark.long
@settings(max_examples=15)
@given(
    first=st.integers(0, 10**6),
    states=st.integers(1, 4),
    words=st.integers(1, 3),
    out=st.integers(1, 3),
    k=st.integers(1, 4),
    low=st.integers(1, 4),
)
def test_any_pool_under_any_range_of_lengths(first: int, states: int, words: int, out: int, k: int, low: int) -> None:
    assume(out <= words)
    family = f"pfsa:states={states},vocabulary={words},transitions={out},mean_length=2"
    try:
        one = process("pool", family=family, first=first, languages=k, strings=2)
    except InputError as error:
        assert "share no word" in str(error) and out < words
        return
    members = [PCFG.load(name) for name in one.languages or ()]
    lengths = LengthRange(low, 6)
    documents = every(one, 6)
    free = enumerated(documents, members, [1 / k] * k, StringCount(2))
    weight = np.exp(free) * [len(d) in lengths for d in documents]
    with np.errstate(divide="ignore"):
        close(one.exact.string_log_probs(documents, lengths), np.log(weight / weight.sum()))
    assert one.exact.range_mass(lengths) == pytest.approx(weight.sum(), rel=1e-12)
    condition = one.exact.given(lengths)
    counts = np.zeros(len(one.vocabulary))
    for document, p in zip(documents, weight / weight.sum(), strict=True):
        np.add.at(counts, one.encode(document), p)
    np.testing.assert_allclose(condition.expected_words(), counts, rtol=1e-10)
    assert condition.mean_length == pytest.approx(counts.sum(), rel=1e-12)


@pytest.mark.long
@pytest.mark.parametrize(
    "name", ["pfsa:seed=3", "hmm:states=4,vocabulary=5", "shuffle-dyck:k=2,depth=3", "ngram", "mess3"]
)
def test_one_language_and_one_string_have_the_scores_of_the_grammar(name: str) -> None:
    grammar = PCFG.load(name)
    one = pool_of([name], count=StringCount(1))
    from truesource.generator.process_sampler import sampler_of
    from truesource.grammar.support.arrays import random_state

    drawn = sampler_of(grammar)
    sentences = [s for s in drawn.sentences(drawn.draw(60, random_state(4))) if len(s) < 60]
    sentences += [sentences[0][:-1], [*sentences[0], sentences[1][0]], ["elsewhere"]]
    pairs = zip(one.exact.causal_log_probs(sentences), grammar.exact.causal_log_probs(sentences), strict=True)
    for own, other in pairs:
        np.testing.assert_allclose(own, other, rtol=0.0, atol=1e-10)
    order = [one.word_ids[word] for word in grammar.vocabulary]
    expected = grammar.exact.mean_length
    assert one.mean_length == pytest.approx(expected, rel=1e-9)
    assert one.expected_words()[order].sum() == pytest.approx(expected, rel=1e-9)
    assert one.expected_words()[-1] == 0.0


@pytest.mark.long
@pytest.mark.parametrize("lengths", [None, LengthRange(3, 6)])
@pytest.mark.parametrize("name", FAMILIES)
def test_the_law_is_that_of_all_documents(name: str, lengths: LengthRange | None) -> None:
    """Each row sums to one and has at each word the probability that scores have; strings may change places."""
    if lengths is not None and name == MANY:
        pytest.skip("its strings have no range of lengths")
    one = process(name)
    documents = every(one, 5)
    rows = one.exact.causal_log_probs(documents, lengths)
    number = {document: i for i, document in enumerate(documents)}

    def check(block: object) -> None:
        for row, (place, members) in enumerate(zip(block.possible, block.members, strict=True)):
            if place:
                assert block.probability[row].sum() == pytest.approx(1.0, abs=1e-12)
                for i in members:
                    observed = block.probability[row][block.observed[row]]
                    assert observed == pytest.approx(np.exp(rows[i][block.position]), abs=1e-12)

    list(next_token_distributions(one.exact, documents, check, lengths))
    total = one.exact.string_log_probs(documents, lengths)
    seen = 0
    for document in documents:
        strings = strings_of(document)
        if np.isfinite(total[number[document]]):
            for order in itertools.permutations(strings):
                other = tuple(f" {SEPARATOR} ".join(" ".join(s) for s in order).split())
                assert total[number[other]] == pytest.approx(total[number[document]], abs=1e-10)
                seen += other != document
    assert seen > 10
    if lengths is not None:
        assert np.exp(one.exact.string_log_probs(every(one, 6), lengths)).sum() == pytest.approx(1.0, abs=1e-12)


def dirichlet(counts: np.ndarray, a: float) -> float:
    """Ln of the integral over one row of the product of its probabilities to the power of ``counts``."""
    n = len(counts)
    return float(gammaln(n * a) - gammaln(counts.sum() + n * a) + (gammaln(counts + a) - gammaln(a)).sum())


def ends(one: DocumentProcess, document: Sequence[str], end: float, count: StringCount) -> float:
    strings = strings_of(document)
    if not all(strings):
        return -np.inf
    within = sum((len(s) - 1) * np.log1p(-end) + np.log(end) for s in strings)
    return float(within + number_log_prob(count, len(strings)))


@pytest.mark.long
@pytest.mark.parametrize("order", [0, 1, 2])
def test_markov_chains_of_unknown_rows_are_products_of_gamma_functions(order: int) -> None:
    one = process("dirichlet-markov", order=order, vocabulary=3, concentration=0.4, mean_length=2.5, strings=2)
    for document in every(one, 6)[::7]:
        counts: dict[tuple[str, ...], np.ndarray] = {}
        for string in strings_of(document):
            padded = ("", *string)
            for i, word in enumerate(string, start=1):
                context = padded[max(0, i - order) : i] if order else ()
                counts.setdefault(context, np.zeros(3))[one.word_ids[word]] += 1
        wanted = ends(one, document, 1 / 2.5, StringCount(2)) + sum(dirichlet(c, 0.4) for c in counts.values())
        close(one.exact.string_log_probs([document]), np.array([wanted]))


@pytest.mark.long
def test_automata_of_unknown_rows_are_products_of_gamma_functions() -> None:
    given_settings = {"states": 3, "vocabulary": 3, "transitions": 2, "seed": 4}
    one = process("dirichlet-automaton", **given_settings, concentration=0.7, mean_length=2, strings=2)
    from truesource.grammar.languages.pfsa import PfsaSettings, automaton

    drawn = automaton(PfsaSettings(**given_settings))
    moves = {(q, drawn.words[w]): r for q, w, r in zip(drawn.source, drawn.word, drawn.target, strict=True)}
    possible = {q: [w for p, w in moves if p == q] for q in range(3)}
    for document in every(one, 6):
        counts, log = {q: np.zeros(2) for q in range(3)}, 0.0
        for string in strings_of(document):
            state = 0
            for word in string:
                if (state, word) not in moves:
                    log = -np.inf
                    break
                counts[state][possible[state].index(word)] += 1
                state = moves[state, word]
        wanted = log + ends(one, document, 0.5, StringCount(2)) + sum(dirichlet(c, 0.7) for c in counts.values())
        close(one.exact.string_log_probs([document]), np.array([wanted]))
    with pytest.raises(InputError, match="expected counts of words have no exact value"):
        one.expected_words()
    assert one.exact.mean_length == 2 * 2 + 1


BEGIN = "<begin>"
Context = tuple[str, ...]


def trees(context: Context, depth: int, words: Sequence[str], split: float) -> Iterator[tuple[float, list[Context]]]:
    """Every tree below a context, the last word first: ln P(tree), and its leaves."""
    if len(context) == depth or (context and context[-1] == BEGIN):
        yield 0.0, [context]
        return
    yield float(np.log1p(-split)), [context]
    below = [list(trees((*context, word), depth, words, split)) for word in (*words, BEGIN)]
    for chosen in itertools.product(*below):
        yield float(np.log(split)) + sum(c[0] for c in chosen), [leaf for c in chosen for leaf in c[1]]


@pytest.mark.long
@pytest.mark.parametrize(("depth", "words"), [(0, 2), (1, 3), (2, 2), (3, 2)])
def test_context_tree_weighting_is_the_sum_over_all_trees(depth: int, words: int) -> None:
    one = process(
        "context-tree", depth=depth, vocabulary=words, split=0.35, concentration=0.5, mean_length=4, strings=2
    )
    names = one.vocabulary[:-1]
    every_tree = list(trees((), depth, names, 0.35))
    assert logsumexp([log for log, _ in every_tree]) == pytest.approx(0.0, abs=1e-12)
    documents = [d for d in every(one, 9, shortest=7) if d.count(SEPARATOR) == 1 and all(strings_of(d))]
    for document in documents[:: max(1, len(documents) // 40)]:
        seen = [((BEGIN, *s[:i])[::-1], word) for s in strings_of(document) for i, word in enumerate(s)]
        terms = []
        for log, leaves in every_tree:
            counts = {leaf: np.zeros(words) for leaf in leaves}
            for context, word in seen:
                (leaf,) = (leaf for leaf in leaves if context[: len(leaf)] == leaf)
                counts[leaf][one.word_ids[word]] += 1
            terms.append(log + sum(dirichlet(c, 0.5) for c in counts.values()))
        wanted = float(logsumexp(terms)) + ends(one, document, 0.25, StringCount(2))
        close(one.exact.string_log_probs([document]), np.array([wanted]))


@pytest.mark.long
@pytest.mark.parametrize(("names", "switch"), [(POOLS[0], 0.0), (POOLS[1], 0.0), (POOLS[0], 0.25)])
def test_the_mean_posterior_is_the_prior(names: tuple[str, ...], switch: float) -> None:
    """Where the language may change, only if strings of all languages are equally long: else long ones change less."""
    prior = np.arange(1.0, len(names) + 1.0)
    prior /= prior.sum()
    one = pool_of(names, count=StringCount(3), prior=prior.tolist(), switch=switch)
    begun = [d for d in every(one, 4, shortest=4) if np.isfinite(one.exact.prefix_log_prob(d))]
    ended = [d for d in every(one, 3) if np.isfinite(one.log_prob(d))]
    assert not ended, "three strings take five words"
    weights = [np.exp(one.exact.prefix_log_prob(d)) for d in begun]
    assert sum(weights) == pytest.approx(1.0, abs=1e-12)
    posterior = [p[-1] for p in one.posterior(begun)]
    np.testing.assert_allclose(np.average(posterior, axis=0, weights=weights), prior, atol=1e-12)


@pytest.mark.long
def test_a_posterior_is_bayes_rule_after_every_word() -> None:
    names = POOLS[0]
    members = [PCFG.load(name) for name in names]
    one = pool_of(names, count=StringCount(2))
    document = ("w1", "w2", SEPARATOR, "w2", "w1")
    (found,) = one.posterior([document])
    first = [m.log_prob(document[:2]) for m in members]
    for at, logs in (
        (0, [0.0, 0.0]),
        (1, [m.exact.prefix_log_prob(document[:1]) for m in members]),
        (3, first),
        (5, [f + m.exact.prefix_log_prob(document[3:]) for f, m in zip(first, members, strict=True)]),
    ):
        np.testing.assert_allclose(found[at], np.exp(logs - logsumexp(logs)), rtol=1e-12)
    with pytest.raises(InputError, match="word 2 of a document, 'elsewhere', is impossible there"):
        one.posterior([("w1", "elsewhere")])
    with pytest.raises(InputError, match="infinitely many"):
        process("dirichlet-markov").posterior([document])


def coin(p: float) -> PCFG:
    tossed = Automaton(
        states=["q"],
        words=["h", "t"],
        source=np.array([0, 0]),
        word=np.array([0, 1]),
        target=np.array([0, 0]),
        weight=np.array([p, 1 - p]) * 0.99,
        end=np.array([0.01]),
    )
    return PCFG.of(tossed.grammar())


@pytest.mark.long
def test_a_language_comes_back_from_any_weight() -> None:
    """A thousand heads, then many more tails: the weight of the second language goes through e^-4600."""
    one = pool_of([coin(0.99), coin(0.0001)], count=StringCount(1))
    document = ["h"] * 500 + ["t"] * 1500
    n = len(document)
    logs = [500 * np.log(p) + 1500 * np.log1p(-p) for p in (0.99, 0.0001)]
    wanted = logsumexp(logs) + np.log(0.5) + (n - 1) * np.log(0.99) + np.log(0.01)
    assert one.log_prob(document) == pytest.approx(wanted, abs=1e-9)
    weights = one.posterior([document])[0]
    assert weights[500, 1] == 0.0 and weights[-1, 1] == pytest.approx(1.0)


def test_a_truth_of_documents_comes_back_from_its_file(tmp_path: Path) -> None:
    for name in FAMILIES:
        one = load_truth(name)
        assert isinstance(one, DocumentProcess) and one.meta["language"]["name"] == name.partition(":")[0]
        one.save(tmp_path / "d.npz", force=True)
        again = load_truth(tmp_path / "d.npz")
        assert again.digest == one.digest and again.vocabulary == one.vocabulary
    with pytest.raises(InputError, match="has samples and exact next-word distributions, but no rules") as caught:
        language("pool")
    assert caught.value.code == "missing-ability"


@pytest.mark.parametrize(
    ("family", "message"),
    [
        ("pfas", "there is no language 'pfas'"),
        ("pfsa:states=x", "states: expected a whole number"),
        ("cfg|pfsa", "there is no language 'cfg'"),
        ("shuffle-dyck|pfsa", "share no word, so the first word reveals the language"),
    ],
)
def test_pools_that_cannot_be_are_one_sentence(family: str, message: str) -> None:
    with pytest.raises(InputError, match=message) as caught:
        process("pool", family=family, languages=1)
    assert "\n" not in str(caught.value)


def test_other_mistakes_are_one_sentence() -> None:
    with pytest.raises(InputError, match=r"^this pool has no language; name one or more$"):
        pool_of([], count=StringCount(1))
    for prior in ([1.0], [0.0, 0.0], [-1.0, 2.0]):
        with pytest.raises(InputError, match="a prior needs a number >= 0 for each of the 2 languages"):
            pool_of(POOLS[0], count=StringCount(1), prior=prior)
    with pytest.raises(InputError, match="has the word <sep>, the separator; rename that word"):
        pool_of([PCFG.from_text("S -> A S 0.5 | 'b' 0.5\nA -> '<sep>' 1.0")], count=StringCount(1))
    with pytest.raises(InputError, match="cannot have a range of lengths: the probability that a string ends"):
        pool_of(POOLS[2], count=StringCount(2)).given(LengthRange(2, 6))
    with pytest.raises(InputError, match=r"no string of dirichlet-markov.* has a length in 2\.\.3"):
        process("dirichlet-markov", strings=3).given(LengthRange(2, 3))
    for name, more in (("dirichlet-markov", {"order": 6}), ("context-tree", {"depth": 15})):
        with pytest.raises(InputError) as caught:
            process(name, vocabulary=100, **more)
        assert caught.value.code == "too-large"


@pytest.mark.long
@pytest.mark.parametrize(
    ("texts", "document"),
    [
        (("S -> a S 1e-20 | a 1.0", "S -> a S 1e-30 | a 0.5 | b 0.5"), "a a a"),
        (("S -> a S 1e-20 | a T 1e-22 | a 1.0\nT -> a T 0.5 | b 0.5", "S -> a 0.5 | b 0.5"), "a a b"),
        (("S -> a T 1e-200 | c S 1e-200 | b 1.0\nT -> c S 1e-200 | a 1.0", "S -> a 0.5 | b 0.5"), "a c a a"),
        (("S -> a S 1e-200 | a T 1e-201 | a 1.0\nT -> c T 1e-200 | b 1.0", "S -> a 0.5 | b 0.5"), "a a c b"),
    ],
    ids=["known", "hidden", "known-rare", "hidden-rare"],
)
def test_strings_that_go_on_against_all_odds_have_their_probability(texts: tuple[str, ...], document: str) -> None:
    """The mean over the grammars of a pool, word by word; each end is much more probable than what follows."""
    grammars, words = [PCFG.from_text(text) for text in texts], document.split()
    pool = predictor_of(texts, Automata.join([LinearMoves.of(g) for g in grammars]), np.full(len(texts), 0.5), 0.0)
    prefixes = [words[:i] for i in range(1, len(words) + 1)]
    tables = [[g.prefix_log_prob(prefix) for prefix in prefixes] + [g.log_prob(words)] for g in grammars]
    wanted = logsumexp(tables, axis=0) - np.log(2.0)
    state, found = pool.begin(1), []
    for word in [*map(pool.words.index, words), len(pool.words)]:
        found.append(float(pool.log_probability(state, np.array([word]))[0]))
        state = pool.read(state, np.array([word]))
    np.testing.assert_allclose(np.cumsum(found), wanted, atol=1e-10)
