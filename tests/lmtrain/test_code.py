"""Code that a person names: what is imported, how often, with which digest, and every refusal by its code."""

from __future__ import annotations

import hashlib
import pickle
import subprocess
import sys
from pathlib import Path

import pytest

from truesource.grammar.support.errors import InputError
from truesource.lmtrain.references import is_code, load_code


def write(path: Path, text: str) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    return path


def refused(text: str, base: Path | None = None) -> InputError:
    with pytest.raises(InputError) as caught:
        load_code(text, base)
    assert "\n" not in str(caught.value)
    return caught.value


@pytest.mark.parametrize("text", ["a.py:f", "../x/a b.py:Class.method", "package.module:name", "ä.py:ö", "a:b/c.py:f"])
def test_has_the_form_of_code(text: str) -> None:
    assert is_code(text)


@pytest.mark.parametrize("text", ["model/", "a.py", "a.py:", ":f", "a.py:f@model", "a.py:2", "gpt2", "a.py:f()", ""])
def test_has_not_the_form_of_code(text: str) -> None:
    assert not is_code(text)


def test_a_file_is_imported_once_with_its_digest(tmp_path: Path) -> None:
    source = write(
        tmp_path / "made.py",
        "from pathlib import Path\nmarks = Path(__file__).with_name('marks')\n"
        "marks.write_text((marks.read_text() if marks.exists() else '') + 'x')\n"
        "class Box:\n    def open(self):\n        return 1\n",
    )
    code = load_code("made.py:Box", tmp_path)
    again = load_code(f"{source}:Box.open")
    assert (tmp_path / "marks").read_text() == "x"
    assert again.object is code.object.open
    assert code.name == "made.py:Box" and code.source == source
    assert code.digest == hashlib.sha256(source.read_bytes()).hexdigest()


def test_files_of_one_name_in_two_folders_are_two_modules(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / str(number) / "same.py", f"VALUE = {number}\n")
    assert [load_code(f"{n}/same.py:VALUE", tmp_path).object for n in (1, 2)] == [1, 2]


def test_a_file_may_import_its_neighbours_each_its_own(tmp_path: Path) -> None:
    for number in (1, 2):
        write(tmp_path / f"n{number}" / "neighbour_of_code.py", f"VALUE = {number}\n")
        write(
            tmp_path / f"n{number}" / "main.py",
            "from neighbour_of_code import VALUE\n"
            "def late():\n    import late_neighbour_of_code\n    return late_neighbour_of_code.VALUE\n",
        )
    write(tmp_path / "n1" / "late_neighbour_of_code.py", "VALUE = 'late'\n")
    before = list(sys.path)
    assert [load_code(f"n{n}/main.py:VALUE", tmp_path).object for n in (1, 2)] == [1, 2]
    assert load_code("n1/main.py:late", tmp_path).call() == "late"
    assert sys.path == before


def test_dataclasses_and_pickling_find_their_module(tmp_path: Path) -> None:
    write(
        tmp_path / "data.py",
        "from __future__ import annotations\nfrom dataclasses import dataclass\n"
        "@dataclass\nclass Pair:\n    a: int\n    b: int\n",
    )
    pair = load_code("data.py:Pair", tmp_path).object(1, 2)
    assert pickle.loads(pickle.dumps(pair)) == pair


def test_a_module_of_a_package_has_the_digest_of_its_file() -> None:
    code = load_code("json.decoder:JSONDecoder.decode")
    assert code.source is not None and code.source.name == "decoder.py"
    assert code.digest == hashlib.sha256(code.source.read_bytes()).hexdigest()


def test_a_module_without_a_file_has_no_digest() -> None:
    code = load_code("builtins:abs")
    assert (code.source, code.digest) == (None, None)
    assert code.call(-1.0) == 1.0


def test_a_module_is_found_in_the_base_folder(tmp_path: Path) -> None:
    write(tmp_path / "only_in_base_folder.py", "VALUE = 5\n")
    before = list(sys.path)
    assert load_code("only_in_base_folder:VALUE", tmp_path).object == 5
    assert sys.path == before


@pytest.mark.parametrize(
    ("text", "code"),
    [
        ("gpt2", "not-code"),
        ("absent.py:f", "missing"),
        ("notes.txt:f", "not-python"),
        ("no_such_package_at_all:f", "no-module"),
        ("json.no_such_part:f", "no-module"),
        ("made.py:absent", "no-name"),
        ("made.py:first.absent", "no-name"),
        ("math:absent", "no-name"),
    ],
)
def test_refuses_what_is_not_there(text: str, code: str, tmp_path: Path) -> None:
    write(tmp_path / "made.py", "first = 1\ndef second(): pass\n")
    write(tmp_path / "notes.txt", "")
    assert refused(text, tmp_path).code == code


def test_a_missing_name_is_refused_with_those_of_the_module(tmp_path: Path) -> None:
    write(tmp_path / "made.py", "import os\n_hidden = 1\n" + "".join(f"name{i} = {i}\n" for i in range(8)))
    said = refused("made.py:absent", tmp_path).reason
    assert "name0" in said and "name4" in said and "3 more" in said
    assert "hidden" not in said and "os" not in said.split() and "name5" not in said


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("a = 1\nb = a / 0\n", 2),
        ("import json\n\njson.loads('{')\n", 3),
        ("a = 1\nb = = 2\n", 2),
        ("import sys\nsys.exit(3)\n", 2),
        ("import no_such_package_at_all\n", 1),
    ],
)
def test_a_file_that_raises_is_refused_with_its_line(text: str, line: int, tmp_path: Path) -> None:
    source = write(tmp_path / "bad.py", text)
    for _ in range(2):  # nothing half imported stays behind
        error = refused("bad.py:f", tmp_path)
        assert (error.code, error.path, error.line) == ("import-failed", source, line)
    source.write_text("f = 7\n")
    assert load_code("bad.py:f", tmp_path).object == 7


def test_a_call_that_raises_is_refused_with_its_line(tmp_path: Path) -> None:
    source = write(tmp_path / "raises.py", "def f():\n    return {}['key']\nnumber = 3\n")
    with pytest.raises(InputError) as caught:
        load_code("raises.py:f", tmp_path).call()
    assert (caught.value.code, caught.value.path, caught.value.line) == ("code-failed", source, 2)
    with pytest.raises(InputError) as caught:
        load_code("raises.py:number", tmp_path).call()
    assert caught.value.code == "not-callable"


@pytest.mark.long
def test_code_needs_no_torch() -> None:
    loaded = (
        "import sys; import truesource.lmtrain.references, truesource.lmtrain.references; print('torch' in sys.modules)"
    )
    found = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "False"
