"""Treebanks of other people: zero elements, annotation in leaves, split words, other formats, trees that are broken."""

from __future__ import annotations

import gzip
from pathlib import Path

import pytest

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.conventions import Name
from truesource.grammar.pcfg import PCFG
from truesource.grammar.support.errors import InputError
from truesource.grammar.treebank import Normalisation, Treebank
from truesource.grammar.treebank.files import SUFFIXES, find_files
from truesource.grammar.treebank.foreign import FOREIGN

GOOD = "(S (NP (D the) (N dog)) (VP (V barks)))"


def bank_of(text: str, folder: Path, convention: Name = "penn", **settings: object) -> Treebank:
    path = folder / "trees.psd"
    path.write_text(text, encoding="utf-8")
    return Treebank.read(path, Normalisation(convention=convention, **settings))  # type: ignore[arg-type]


# -- zero elements ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "zero",
    ["*speaker*", "*hearer*", "*nexp*", "*o*", "*が*", "*pro*", "*T*-1", "*ICH*-12", "*", "0", "***", "*-2"],
)
def test_zero_elements_of_the_helsinki_family_are_removed(zero: str, tmp_path: Path) -> None:
    bank = bank_of(f"( (IP-MAT (NP-SBJ {zero}) (VB go)) (ID 1;JP))", tmp_path, "penn-helsinki")
    assert bank.sentences() == [["go"]]
    assert bank.ledger.dropped.total() == 2


@pytest.mark.parametrize("word", ["*Star", "star*", "A*B", "00", "**bold", "10"])
def test_words_with_stars_stay(word: str, tmp_path: Path) -> None:
    for convention in ("penn", "penn-helsinki"):
        assert bank_of(f"(S (N {word}) (V go))", tmp_path, convention).sentences() == [[word, "go"]]


@pytest.mark.parametrize("trace", ["*PRO*-2", "*T*-1", "*U*", "0", "*-3", "*ICH*-1", "*EXP*-2", "*?*", "*", "*pro*"])
def test_traces_of_penn_that_lost_the_tag_above_them_are_removed(trace: str, tmp_path: Path) -> None:
    bank = bank_of(f"(S (NP-SBJ {trace}) (VP (V go) (NP (CD 0) (SYM *) (UH *LOL*))))", tmp_path)
    assert bank.sentences() == [["go", "0", "*", "*LOL*"]]


def test_leaves_between_stars_are_a_sign_of_the_helsinki_family(tmp_path: Path) -> None:
    bank = bank_of("(IP-MAT (NP-SBJ *speaker*) (VB go))\n(IP-MAT (NP-SBJ *hearer*) (VB go))", tmp_path)
    (sign,) = bank.reading.signs
    assert sign.remedy == {"convention": "penn-helsinki"}
    assert (sign.count, sign.total) == (2, 12)
    assert dict(sign.examples) == {"*speaker*": 1, "*hearer*": 1}


# -- annotation in leaves ---------------------------------------------------------------------------------

ICELANDIC = (
    "( (IP (N kona-kona) (V fer-fara) (NP (N tungur$-tunga) (D $nar-hinn)) (NP *con*-D) (C 0) (. .-.)) (ID 1,.2))\n"
)


def test_lemmas_are_cut_and_split_words_joined(tmp_path: Path) -> None:
    bank = bank_of(ICELANDIC, tmp_path, "icepahc")
    assert bank.sentences() == [["kona", "fer", "tungurnar", "."]]
    assert [str(tree) for tree in bank] == ["(ROOT (IP (N kona) (V fer) (NP (N tungurnar)) (. .)))"]
    assert bank.ledger.separated == {"-": 5}
    assert bank.ledger.joined == 1
    assert "joined 1 part" in str(bank.ledger)


def test_lemmas_and_split_words_are_a_sign_of_their_convention(tmp_path: Path) -> None:
    remedies = [sign.remedy for sign in bank_of(ICELANDIC, tmp_path, "penn-helsinki").reading.signs]
    assert remedies == [{"convention": "icepahc"}]


@pytest.mark.parametrize(
    ("parts", "word"), [("(A a$) (B $b$) (C $c)", "abc"), ("(X (A a$)) (Y (B $b))", "ab"), ("(A a$) (B b)", None)]
)
def test_parts_of_a_word(parts: str, word: str | None, tmp_path: Path) -> None:
    bank = bank_of(f"(S {parts} (V go))", tmp_path, "icepahc")
    assert bank.sentences() == [[word, "go"] if word else ["a$", "b", "go"]]


@pytest.mark.parametrize(("separator", "leaf"), [("/", "cat/NN"), ("_", "cat_NN"), ("|", "cat|cat"), ("-", "cat-cat")])
def test_annotation_after_a_separator_is_noticed_and_cut(separator: str, leaf: str, tmp_path: Path) -> None:
    text = f"(S (N {leaf}) (N {leaf}))"
    (sign,) = bank_of(text, tmp_path).reading.signs
    assert sign.remedy == {"annotation": separator}
    assert (sign.count, sign.total) == (2, 2)
    bank = bank_of(text, tmp_path, annotation=separator)
    assert bank.sentences() == [["cat", "cat"]]
    assert not bank.reading.signs


def test_parts_of_words_are_a_sign_of_their_convention(tmp_path: Path) -> None:
    text = "(IP (N ord$) (D $id) (V var) (PP (P hja) (NP (N Gudi))) (. .))\n(IP (V og) (N $))\n"
    (sign,) = bank_of(text, tmp_path, "penn-helsinki").reading.signs
    assert (sign.remedy, dict(sign.examples)) == ({"convention": "icepahc"}, {"$id": 1})
    assert not bank_of(text, tmp_path, "icepahc").reading.signs
    assert not bank_of("(S (N $5) ($ $) (CD 5) (N US$))", tmp_path).reading.signs


def test_few_words_with_a_separator_are_no_sign(tmp_path: Path) -> None:
    bank = bank_of("(S (N well-being) (V is) (A up-to-date) (N dog) (. .))", tmp_path)
    assert not bank.reading.signs
    assert bank.reading.separators == {"-": 2}


# -- other formats ----------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "name", "convention"),
    [
        ("#FORMAT 4\n#BOS 1\n", "export format of Negra", "penn"),
        ("#BOS 1 1 1 1\nDer\tder\tART\n", "export format of Negra", "penn"),
        ("%% word\tlemma\ttag\n#BOS 1\n", "export format of Negra", "negra"),
        ("%% word\tlemma\ttag\n#BOS 1\n", "export format of Negra", "penn"),
        ("#1:1.[0] S(agent:NP(Head:Nhaa:x))#\n", "Sinica", "penn"),
        ("<?xml version='1.0'?>\n<corpus>", "XML", "penn"),
        ("# sent_id = 1\n1\tthe\tthe\n", "CoNLL", "penn"),
        ("#begin document (x); part 000\nx 0 0 the D (TOP(S* -\n", "CoNLL-2012", "penn"),
        ("x 0 0 the D (TOP(S(NP* - -\nx 0 1 dog N *))) - -\n", "CoNLL-2012", "ctb"),
        ("# 1 the dog\n(S (A a))", "comments that start with #", "penn"),
        ("; a comment\n(S (A a))", "comments that start with ;", "penn"),
        ("/*\nHEADER\n*/\n(S (A a))", "CorpusSearch", "penn"),
    ],
)
def test_other_formats_are_refused_by_name(text: str, name: str, convention: Name, tmp_path: Path) -> None:
    with pytest.raises(InputError) as caught:
        bank_of(text, tmp_path, convention)
    assert caught.value.code == "foreign-format"
    assert name in str(caught.value)
    assert "negra skips" not in str(caught.value)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("#BOS 1 1 1 1\nDer\tder\tART\n", "export format of Negra"),
        ("\n%% word\tlemma\ttag\n#BOS 1\n", "export format of Negra"),
        ("<?xml version='1.0'?>\n<corpus>", "XML"),
        ("1\tthe\tthe\tD\tD\t_\t2\tdet\t_\t_\n", "CoNLL, which"),
        ("# text = the dog\n1\tthe\tthe\tD\tD\t_\t2\tdet\t_\t_\n", "CoNLL, which"),
        ("#begin document (x); part 000\n", "CoNLL-2012"),
        ("/*\nHEADER\n*/\n(S (A a))", "CorpusSearch"),
    ],
)
def test_other_formats_are_no_grammars(text: str, name: str, tmp_path: Path) -> None:
    (tmp_path / "grammar.txt").write_text(text)
    with pytest.raises(InputError, match=f"this is .*{name}") as caught:
        PCFG.load(tmp_path / "grammar.txt")
    assert caught.value.code == "foreign-format"


def test_trees_are_no_grammar(tmp_path: Path) -> None:
    (tmp_path / "grammar.txt").write_text(f"# trees\n\n{GOOD}\n")
    with pytest.raises(InputError, match=r"these are trees, not a grammar; .*truesource induce") as caught:
        PCFG.load(tmp_path / "grammar.txt")
    assert (caught.value.code, caught.value.line) == ("treebank", 3)


@pytest.mark.parametrize("text", ["1\tS\tA\tB\n1\tA\ta\n1\tB\tb\n", "#1: start\nS -> 'a' 1\n", "; c\n"])
def test_grammars_that_look_like_other_formats_are_read_as_grammars(text: str, tmp_path: Path) -> None:
    (tmp_path / "grammar.txt").write_text(text)
    try:
        PCFG.load(tmp_path / "grammar.txt", start="S")
    except InputError as error:
        assert error.code != "foreign-format"


def test_every_format_has_a_remedy() -> None:
    assert all(name and remedy for _, name, remedy in FOREIGN)


def test_lines_of_sgml_are_skipped_by_the_convention_that_the_refusal_names(tmp_path: Path) -> None:
    text = "<DOC>\n<S ID=1>\n( (IP (NP-SBJ (NN a)) (VP (VV b))) )\n</S>\n</DOC>\n"
    with pytest.raises(InputError, match="the convention ctb skips such lines"):
        bank_of(text, tmp_path)
    assert bank_of(text, tmp_path, "ctb").sentences() == [["a", "b"]]


def test_discontinuous_brackets_are_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"discontinuous.*'0=Wake', and are not in order.*discodop") as caught:
        bank_of("(S (VP 0=Wake 2=up) (NP 1=me))", tmp_path)
    assert caught.value.code == "discontinuous"
    with pytest.raises(InputError, match="discontinuous"):
        bank_of("(S (VP (V 0=Wake) (P 2=up)) (NP (N 1=me)))", tmp_path)
    with pytest.raises(InputError, match="discontinuous") as caught:
        bank_of("(S (D 0=the) (N 1=dog))", tmp_path)
    assert "not in order" not in str(caught.value)
    assert bank_of("(S (N 1=a) (N x=2))", tmp_path).sentences() == [["1=a", "x=2"]]


# -- files of a folder ------------------------------------------------------------------------------------


@pytest.mark.parametrize("suffix", [*SUFFIXES, ".MRG", ".PSD"])
@pytest.mark.parametrize("packed", [False, True])
def test_every_ending_is_found(suffix: str, packed: bool, tmp_path: Path) -> None:
    path = tmp_path / f"a{suffix}{'.gz' if packed else ''}"
    path.write_bytes(gzip.compress(GOOD.encode()) if packed else GOOD.encode())
    (tmp_path / "README.txt").write_text("about the trees")
    assert find_files(tmp_path) == [path]


def test_without_a_known_ending_files_that_begin_with_a_bracket_are_read(tmp_path: Path) -> None:
    (tmp_path / "a.fid").write_text(f"\n  {GOOD}")
    (tmp_path / "b").write_text(f"*x*x*x*\n\n{GOOD}")
    (tmp_path / "README").write_text("about the trees")
    (tmp_path / "c.bin").write_bytes(b"\xff\xfe(")
    assert [path.name for path in find_files(tmp_path)] == ["a.fid", "b"]
    assert len(Treebank.read(tmp_path)) == 2
    (tmp_path / "a.fid").unlink()
    (tmp_path / "b").unlink()
    with pytest.raises(InputError, match="nor a file that begins with"):
        find_files(tmp_path)


def test_the_summary_counts_files_and_names_skipped_trees(tmp_path: Path) -> None:
    for name in ("a.mrg", "b.MRG", "sub/c.psd.gz", "._a.mrg", ".git/d.mrg", "e.nw", "f.parsed"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        content = GOOD.encode() if not name.startswith("._") else b"\x00\x05Mac"
        (tmp_path / name).write_bytes(gzip.compress(content) if name.endswith(".gz") else content)
    (tmp_path / "README").write_text("about the trees")
    bank = Treebank.read(tmp_path)
    assert len(bank) == 3
    first, second, *_ = bank.reading.lines()
    assert first == (
        "files      read 3 files (*.MRG 1, *.mrg 1, *.psd.gz 1); skipped 5 files (hidden 2, *.nw 1, *.parsed 1,"
        " no ending 1); 2 of these begin like trees"
    )
    assert second.startswith("read       3 trees, 9 words")
    assert bank.selection is not None
    assert bank.selection.unread == (tmp_path / "e.nw", tmp_path / "f.parsed")
    warning = str(bank.selection.warning)
    assert (
        "2 files that begin like trees" in warning and "(e.nw, f.parsed)" in warning and f"{tmp_path}/*.nw" in warning
    )
    assert warning in str(bank.reading)
    assert bank.reading.as_dict()["files"] == {
        "read": {"*.mrg": 1, "*.MRG": 1, "*.psd.gz": 1},
        "skipped": {"hidden": 2, "*.nw": 1, "*.parsed": 1, "no ending": 1},
        "unread": [str(tmp_path / "e.nw"), str(tmp_path / "f.parsed")],
    }


def test_named_files_have_no_line_of_files(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(GOOD)
    (tmp_path / "b.mrg").write_text(GOOD)
    assert Treebank.read([tmp_path / "a.mrg", tmp_path / "b.mrg"]).selection is None
    bank = Treebank.read(f"{tmp_path}/*.mrg")
    assert bank.reading.lines()[0] == "files      read 2 files (*.mrg 2)"
    assert Treebank.read(tmp_path / "a.mrg").reading.lines()[0].startswith("read       1 tree, 3 words;")


def test_a_folder_without_trees_says_what_it_has(tmp_path: Path) -> None:
    (tmp_path / "a.mrg.bz2").write_bytes(b"BZh9")
    (tmp_path / ".b.mrg").write_text(GOOD)
    with pytest.raises(InputError, match=r"it has 2 files \(\*\.mrg\.bz2 1, hidden 1\)"):
        find_files(tmp_path)


# -- trees that are broken --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("bad", "kind"),
    [
        ("(NP New York)", "loose-word"),
        ("(S (NP (D the) dog))", "loose-word"),
        ("(S (NN (x)))", "childless"),
        ("(S (NN ) (V go))", "childless"),
        ("(S ((D the)) (V go))", "unlabelled"),
        ("(S (NP (D the)", "unclosed"),
        (")", "stray-bracket"),
        ("()", "no words left"),
    ],
)
def test_one_bad_tree_is_counted_and_the_others_are_read(bad: str, kind: str, tmp_path: Path) -> None:
    bank = bank_of(f"{GOOD}\n{bad}\n{GOOD}\n", tmp_path)
    assert len(bank) == 2
    (refusal,) = bank.refused
    assert (refusal.kind, refusal.line) == (kind, 2)
    assert bank.reading.refused == [(refusal, 1)]
    assert any(line.startswith("refused    1 of 3 trees, the first") for line in bank.reading.lines())


def test_several_brackets_that_are_never_closed(tmp_path: Path) -> None:
    bank = bank_of(f"{GOOD}\n(S (A a\n  (B b)\n{GOOD}\n(X\n{GOOD}\n", tmp_path)
    assert [str(tree) for tree in bank] == [f"(ROOT {GOOD})"] * 3
    assert [(refusal.kind, refusal.line) for refusal in bank.refused] == [("unclosed", 2), ("unclosed", 5)]
    with pytest.raises(InputError, match="correct the brackets"):
        bank_of("(X\n" * 200, tmp_path)


def test_many_brackets_that_are_never_closed_in_one_long_file(tmp_path: Path) -> None:
    """Each is found after a few trees, not at the end of the file, however many there are."""
    good = "(S\n  (A a)\n  (B b))\n"
    text = (good * 30 + "(S\n  (A a)\n  (X (B b)\n") * 150 + good
    bank = bank_of(text, tmp_path)
    assert len(bank) == 30 * 150 + 1
    assert [refusal.kind for refusal in bank.refused] == ["unclosed"] * 150


def test_lines_of_a_tree_may_begin_at_the_margin(tmp_path: Path) -> None:
    text = "(S (A a))\n" + "(S\n(A a)\n(B b)\n(X\n(A a)\n(B b)\n)\n)\n" * 50
    assert len(bank_of(text, tmp_path)) == 51
    assert not bank_of(text, tmp_path).refused


def test_words_in_brackets_of_their_own_have_a_convention(tmp_path: Path) -> None:
    bank = bank_of("(S (NN (dog)) (VB (barks)) (NN cat) (.))", tmp_path, "bracketed-words")
    assert [str(tree) for tree in bank] == ["(ROOT (S (NN dog) (VB barks) (NN cat) (. .)))"]


def test_words_without_tags_get_tags_on_request(tmp_path: Path) -> None:
    bank = bank_of("(S (NP New York) is (ADJP (JJ big)) *T*-1)", tmp_path, loose_words="tag")
    assert [str(tree) for tree in bank] == ["(ROOT (S (NP ('New' New) ('York' York)) ('is' is) (ADJP (JJ big))))"]


def test_a_word_and_its_lemma_below_one_tag(tmp_path: Path) -> None:
    bank = bank_of(
        "( (S (sn (da El el) (nc perros perro)) (grup.verb (vm ladran ladrar)) (Fp . .)) )",
        tmp_path,
        loose_words="first",
    )
    assert bank.sentences() == [["El", "perros", "ladran", "."]]
    mixed = bank_of("(S (X a a) (Y b))\n(S w (Y b))", tmp_path, loose_words="first")
    assert mixed.sentences() == [["a", "b"]]
    assert [refusal.kind for refusal in mixed.refused] == ["loose-word"]


def test_all_refused_says_why(tmp_path: Path) -> None:
    with pytest.raises(InputError, match=r"all 2 were refused \(the word 'New' is next to.*trees\.psd:1\)"):
        bank_of("(NP New York)\n(NP New Jersey)", tmp_path)


# -- the summary ------------------------------------------------------------------------------------------


def test_the_summary_of_a_reading(tmp_path: Path) -> None:
    text = f"{GOOD}\n(S (NP (-NONE- *T*-1) (N <dash/>)) (VP (V up-to) (N @x)))\n(NP New York)\n"
    reading = bank_of(text, tmp_path).reading
    assert (reading.trees, reading.words) == (2, 6)
    assert reading.odd == [("<dash/>", 1), ("@x", 1)]
    assert reading.as_dict()["dropped"] == {"-NONE-": 1}
    assert reading.as_dict()["refused"][0]["kind"] == "loose-word"
    assert reading.lines()[0].startswith("read       2 trees, 6 words; convention penn: dropped 1 word (-NONE- 1)")


# -- counts of what was dropped and cut -------------------------------------------------------------------


def test_words_after_the_first_are_counted(tmp_path: Path) -> None:
    (tmp_path / "a.mrg").write_text(
        "(S (NN dogs dog) (V bark bark x))\n(S (NP (NN cats cat)) (V a) b)\n(S (N a) (V b))\n"
    )
    bank = Treebank.read(tmp_path / "a.mrg", Normalisation(loose_words="first"))
    assert bank.sentences() == [["dogs", "bark"], ["a", "b"]]
    assert (bank.ledger.further, bank.ledger.as_dict()["further_words"], len(bank.refused)) == (3, 3, 1)
    assert str(bank.ledger).endswith("; dropped 3 words after the first of a node")
    assert "further_words" not in Treebank.read(tmp_path / "a.mrg").ledger.as_dict()


def test_counts_are_of_the_trees_that_are_kept(tmp_path: Path) -> None:
    kept = "(S (NP-SBJ (N a-x)) (VP-TMP (-NONE- *) (V b-x)))"
    empty = "(S (NP-SBJ (-NONE- *)))"
    loose = "(S (NP-SBJ (-NONE- *) (N a-x)) (VP-TMP (V b-x) c))"
    long = "(S (NP-SBJ (N a-x)) (VP-TMP (V b-x)) (-NONE- *) (N c-x))"
    (tmp_path / "a.mrg").write_text(f"{kept}\n{empty}\n{loose}\n{long}\n")
    bank = Treebank.read(tmp_path / "a.mrg", Normalisation(annotation="-", lengths=LengthRange(1, 2)))
    assert len(bank.refused) == 3
    assert bank.ledger.cut == {("NP-SBJ", "NP"): 1, ("VP-TMP", "VP"): 1}
    assert bank.ledger.separated == {"-": 2}
    assert bank.ledger.dropped == {"-NONE-": 2}  # of the tree that is kept, and of the tree without other words


def test_headers_of_annotald_are_no_sentences(tmp_path: Path) -> None:
    text = f"( (VERSION (FORMAT dash)))\n( (IP {GOOD} (ID X,1)))\n"
    bank = bank_of(text, tmp_path, "penn-helsinki")
    assert bank.sentences() == [["the", "dog", "barks"]]
    assert bank.ledger.dropped == {"VERSION": 1, "ID": 1}
    assert [(refusal.line, refusal.kind) for refusal in bank.refused] == [(1, "no words left")]
    (sign,) = bank_of(text, tmp_path).reading.signs
    assert (sign.examples["VERSION"], sign.remedy) == (1, {"convention": "penn-helsinki"})
