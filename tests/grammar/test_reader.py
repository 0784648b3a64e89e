"""Reading Penn bracketings: shapes, places of errors, kinds of files."""

import bz2
import gzip
import lzma
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from truesource.grammar.support.errors import InputError
from truesource.grammar.tree import Tree
from truesource.grammar.treebank import Normalisation, Treebank
from truesource.grammar.treebank.brackets import read_file, read_text
from truesource.grammar.treebank.files import find_files

DOG = "(S (NP (DT the) (NN dog)) (VP (VBZ barks)))"

NAMES = st.text("abcXYZ-=|$@^[]\\'`.,:é你\u00a0", min_size=1, max_size=5)
TREES = st.recursive(
    st.builds(lambda tag, word: Tree(tag, (word,)), NAMES, NAMES),
    lambda inner: st.builds(lambda x, kids: Tree(x, tuple(kids)), NAMES, st.lists(inner, min_size=1, max_size=4)),
    max_leaves=12,
)


def read(text):
    return [(line, str(tree)) for line, tree in read_text(text)]


def test_builds_the_tree():
    [(line, tree)] = read_text(DOG)
    the, dog, barks = Tree("DT", ("the",)), Tree("NN", ("dog",)), Tree("VBZ", ("barks",))
    assert line == 1
    assert tree == Tree("S", (Tree("NP", (the, dog)), Tree("VP", (barks,))))


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (f"{DOG}\n\n{DOG}\n", [(1, DOG), (3, DOG)]),
        (f"{DOG} {DOG}{DOG}", [(1, DOG)] * 3),
        ("\n(S\n  (NP (DT the)\n      (NN\n dog ) )\n  (VP (VBZ barks)))\n", [(2, DOG)]),
        (f"( {DOG})", [(1, f"( {DOG})")]),
        (f"(\n{DOG}\n) ({DOG})", [(1, f"( {DOG})"), (3, f"( {DOG})")]),
        ("(\n S\n(A b))", [(1, "(S (A b))")]),
        ("( S (A b) )", [(1, "(S (A b))")]),
        ("(NN dog)\t(NN cat)\n(NN cow)", [(1, "(NN dog)"), (1, "(NN cat)"), (2, "(NN cow)")]),
        (
            "(X (-LRB- -LRB-) (PRP$ its) (`` ``) (ADVP|PRT up))",
            [(1, "(X (-LRB- -LRB-) (PRP$ its) (`` ``) (ADVP|PRT up))")],
        ),
        ("(X (CD 10\u00a0000))", [(1, "(X (CD 10\u00a0000))")]),
        ("(X (A a) )\r\n(X (A b))\r\n", [(1, "(X (A a))"), (2, "(X (A b))")]),
        ("", []),
        (" \n\n", []),
    ],
)
def test_layouts(text, expected):
    assert read(text) == expected


@pytest.mark.parametrize("empty", ["()", "(())", "( ( ) )", "(ROOT )"])
def test_whole_trees_without_words_are_refused_and_counted(tmp_path, empty):
    (tmp_path / "t.mrg").write_text(f"{DOG}\n{empty}\n{DOG}\n", encoding="utf-8")
    for normalise in (Normalisation(), None):
        bank = Treebank.read(tmp_path / "t.mrg", normalise)
        assert len(bank) == 2
        assert [(refusal.reason, refusal.line) for refusal in bank.refused] == [("no words left", 2)]


@pytest.mark.parametrize(
    ("text", "line", "message"),
    [
        (
            f"{DOG}\n(S (NP (DT the\n",
            2,
            "3 brackets are still open at the end of the file, in the tree that starts at line 2",
        ),
        (f"(ROOT {DOG}\n(ROOT {DOG})\n", 1, "1 bracket is still open at the end of the file"),
        (f"{DOG}\n{DOG})\n", 2, "a closing bracket without an opening one"),
        (f"{DOG}\n\nhello {DOG}", 3, "text outside brackets: 'hello'"),
        (f"( {DOG}\n( {DOG})\n", 2, "a node has no label in the tree that starts at line 1"),
        ("(S (NP (DT the)\n (NN )))", 2, "the node (NN ) has no children"),
        ("(S (NP (DT the)\n ()))", 2, "has no children"),
        (f"(() {DOG})", 1, "has no children"),
        ("(() ())", 1, "has no children"),
        ("(S ())", 1, "has no children"),
        ("(S\n(NP the (NN dog)))", 1, "the word 'the' is next to other children of 'NP'"),
        ("(S\n(NP (NN dog) the))", 1, "the word 'the' is next to other children of 'NP'"),
        ("(S\n(NP the dog))", 1, "the word 'the' is next to other children of 'NP'"),
    ],
)
def test_errors_say_where(tmp_path, text, line, message):
    path = tmp_path / "bad.mrg"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        list(read_file(path))
    assert (caught.value.path, caught.value.line) == (path, line)
    assert str(caught.value).endswith(f"({path}:{line})")


def test_trees_before_an_error_are_streamed():
    stream = read_text(f"{DOG}\n)")
    assert next(stream)[0] == 1
    with pytest.raises(InputError):
        next(stream)


@pytest.mark.long
@given(st.lists(TREES, min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_layout_of_any_trees_reads_back(trees, random):
    text = " ".join(map(str, trees))
    # White space may change wherever there is some, and come wherever a bracket is.
    text = re.sub(r" (?=[^( )])|[ ]", lambda m: random.choice([" ", "\n", "  \t", "\r\n"]), text)
    text = re.sub(r"\)", lambda m: random.choice([")", " )", ")\n"]), text)
    assert [tree for _, tree in read_text(text)] == trees


@pytest.mark.parametrize("width", [1, 2])
def test_depth_is_not_limited(width):
    depth = 5000
    text = "(A " * depth + "(B b)" + " (C c))" * depth if width == 2 else "(A " * depth + "(B b)" + ")" * depth
    [(_, tree)] = read_text(text)
    assert str(tree) == text
    assert tree.height() == depth + 2


def test_a_file_that_is_gzipped_and_one_with_a_byte_order_mark(tmp_path):
    (tmp_path / "a.mrg.gz").write_bytes(gzip.compress(DOG.encode()))
    (tmp_path / "b.mrg").write_bytes(b"\xef\xbb\xbf" + DOG.encode())
    assert [str(tree) for name in ("a.mrg.gz", "b.mrg") for _, tree in read_file(tmp_path / name)] == [
        DOG,
        DOG,
    ]


@pytest.mark.parametrize(
    ("name", "content", "message", "line"),
    [
        ("a.mrg", DOG.encode() + b"\n(NN caf\xe9)\n", "not UTF-8", 2),
        ("a.mrg.gz", gzip.compress(DOG.encode() * 100, mtime=0)[:-20], "damaged or cut short", None),
        ("a.mrg.gz", DOG.encode(), "damaged or cut short", None),
        ("a.mrg.gz", gzip.compress(DOG.encode(), mtime=0)[:10] + b"\xff" * 30, "damaged or cut short", None),
    ],
)
def test_files_that_cannot_be_decoded(tmp_path, name, content, message, line):
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputError, match=message) as caught:
        list(read_file(path))
    assert (caught.value.path, caught.value.line) == (path, line)


def test_files_are_found_in_order(tmp_path):
    for name in ("b.mrg", "a.ptb", "c.parse.gz", "sub/0.txt", "no.md", "x.mrg.bak", "plain"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("(S a)" if name.endswith("txt") else "")
    names = lambda source: [str(p.relative_to(tmp_path)) for p in find_files(source)]  # noqa: E731
    assert names(tmp_path) == ["a.ptb", "b.mrg", "c.parse.gz", "sub/0.txt"]
    assert names(str(tmp_path)) == names(tmp_path)
    assert names(tmp_path / "plain") == ["plain"]
    assert names(f"{tmp_path}/*.mrg*") == ["b.mrg", "x.mrg.bak"]
    assert names(f"{tmp_path}/**/*.txt") == ["sub/0.txt"]
    assert names([tmp_path / "b.mrg", f"{tmp_path}/a.*"]) == ["b.mrg", "a.ptb"]


def test_a_name_with_pattern_characters_is_a_file_first(tmp_path):
    path = tmp_path / "wsj[1].mrg"
    path.write_text(DOG)
    assert find_files(path) == [path]


@pytest.mark.parametrize(
    ("name", "message"),
    [("absent.mrg", "no such file"), ("*.mrg", "no file matches"), ("empty", "no treebank file")],
)
def test_nothing_found(tmp_path, name, message):
    (tmp_path / "empty").mkdir()
    with pytest.raises(InputError, match=message):
        find_files(tmp_path / name)


@pytest.mark.parametrize("name", ["absent.mrg", "*.mrg"])
def test_a_missing_treebank_has_the_code_of_missing_files(tmp_path, name):
    with pytest.raises(InputError) as caught:
        Treebank.read(tmp_path / name)
    assert caught.value.code == "missing"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        ("(S (N caf\u00e9))".encode("latin-1"), "iconv -f LATIN1 -t UTF-8 FILE > NEW"),
        ("(S (N a))".encode("utf-16"), "iconv -f UTF-16 -t UTF-8 FILE > NEW"),
        (bz2.compress(b"(S (N a))"), "compressed by bzip2; uncompress it, or use gzip"),
        (lzma.compress(b"(S (N a))"), "compressed by xz; uncompress it, or use gzip"),
    ],
)
def test_other_text_is_refused_with_a_command(tmp_path, content, message):
    (tmp_path / "a.mrg").write_bytes(content)
    with pytest.raises(InputError, match=re.escape(message)) as caught:
        Treebank.read(tmp_path / "a.mrg")
    assert caught.value.code == "damaged"


def test_one_tree_is_one_tree(tmp_path):
    (tmp_path / "a.mrg").write_text("(S (N a))")
    bank = Treebank.read(tmp_path / "a.mrg")
    assert repr(bank).startswith("Treebank(1 tree from ")
    assert str(bank.statistics).startswith("1 tree, 1 word, ")
    assert str(bank.reading) == "\n".join(bank.reading.lines())


def test_reading_a_missing_file(tmp_path):
    with pytest.raises(InputError, match="no such file"):
        list(read_file(tmp_path / "absent"))
