"""Configurations: what is read, what is refused and how it is said."""

from __future__ import annotations

from pathlib import Path

import pytest
import yaml

from truesource.grammar.conditioning import LengthRange
from truesource.grammar.support.errors import InputError
from truesource.grammar.support.files import data_folder
from truesource.run.config import RunConfig
from truesource.run.experiment import load_config
from truesource.studies.scaling.config import load_sweep

BASE = "name: toy\ntreebank: {files: bank.mrg}\n"


def write(folder: Path, text: str) -> Path:
    path = folder / "config.yaml"
    path.write_text(text, encoding="utf-8")
    return path


def refused(path: Path, *overrides: str) -> str:
    with pytest.raises(InputError) as caught:
        load_config(path, list(overrides))
    message = str(caught.value)
    assert "\n" not in message
    assert "pydantic" not in message and "Value error" not in message and "input_value" not in message
    return message


def test_defaults_and_what_is_given(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, BASE + "seed: 7\ncorpus: {lengths: 2..9, splits: {eval: 5}}\n"))
    assert (config.name, config.seed) == ("toy", 7)
    assert config.corpus.lengths == LengthRange(2, 9)
    assert config.corpus.splits == {"eval": 5}
    assert config.grammar.method == "split_merge"
    assert config.models == []


def test_no_length_condition(tmp_path: Path) -> None:
    assert load_config(write(tmp_path, BASE)).corpus.lengths is None
    for text in ("none", "null"):
        assert load_config(write(tmp_path, BASE + f"corpus: {{lengths: {text}}}\n")).corpus.lengths is None


@pytest.mark.parametrize("name", ["demo.yaml", "treebank.yaml"])
def test_the_shipped_configurations_are_valid(name: str) -> None:
    config = load_config(data_folder() / name)
    assert {entry.resolve()[0].architecture for entry in config.models} == {"gpt2", "bert"}


@pytest.mark.parametrize("path", sorted(data_folder().glob("*.yaml")), ids=lambda path: path.name)
def test_the_shipped_configurations_say_their_lengths(path: Path) -> None:
    load = load_sweep if path.name == "scaling.yaml" else load_config
    corpus = load(path).corpus
    assert "lengths" in corpus.model_fields_set
    others = {
        "control.yaml": LengthRange(4, 15),
        "language.yaml": LengthRange(2, 30),
        "compare.yaml": LengthRange(2, 20),
        "gallery.yaml": None,
    }
    assert corpus.lengths == others.get(path.name, LengthRange(6, 25))


@pytest.mark.parametrize("name", ["demo.yaml", "treebank.yaml", "language.yaml"])
def test_what_is_written_down_reads_back(name: str, tmp_path: Path) -> None:
    config = load_config(data_folder() / name)
    text = yaml.safe_dump(config.model_dump(mode="json"))
    assert load_config(write(tmp_path, text)) == config


@pytest.mark.parametrize(
    ("text", "parts"),
    [
        ("name: toy\nname_: x\ntreebank: {files: a}\n", ["name_: unknown key"]),
        (BASE + "corpus: {length: 2..9}\n", ["corpus.length: unknown key"]),
        ("name: toy\ntreebank: {files: a, normalise: {lowercas: true}}\n", ["normalise.lowercas: unknown key"]),
        (BASE + "grammar: {split_merge: {cycle: 2}}\n", ["grammar.split_merge.cycle: unknown key"]),
        (BASE + "grammar: {binarise: {direction: up}}\n", ["grammar.binarise", "direction"]),
        (BASE + "grammar: {method: magic}\n", ["grammar.method", "split_merge"]),
        (BASE + "grammar: {method: file}\n", ["grammar", "file name go together"]),
        ("name: toy\n", ["give a treebank"]),
        (BASE + "grammar: {method: file, file: g.npz}\n", ["not both"]),
        ("name: toy\ntreebank: {}\n", ["treebank", "exactly one of embedded, files, nltk and dataset, got none"]),
        *(
            (f"name: toy\ntreebank: {{{keys}}}\n", [f"treebank: {name} is empty; name a treebank there"])
            for name, keys in (
                ("files", "files: ''"),
                ("files", "files: []"),
                ("files", "files: [a, '']"),
                ("nltk", "nltk: ''"),
                ("held_out_files", "files: a, held_out_files: []"),
            )
        ),
        ("name: toy\ntreebank: {embedded: english, files: a}\n", ["got embedded, files"]),
        ("name: toy\ntreebank: {embedded: german}\n", ["treebank.embedded", "english"]),
        ("name: toy\ntreebank: {files: a, held_out: 1.5}\n", ["treebank.held_out", "less than"]),
        ("name: ../evil\ntreebank: {files: a}\n", ["name"]),
        ("name: [1]\ntreebank: {files: a}\n", ["name: expected a text, not [1]"]),
        ("treebank: {files: a}\n", ["name: this key is missing"]),
        (BASE + "seed: many\n", ["seed: expected a whole number, not 'many'"]),
        (BASE + "seed: -1\n", ["seed"]),
        (BASE + "seed: 4294967296\n", ["seed", "expected less than 4,294,967,296"]),
        (
            BASE + "models: [{name: m, preset: tiny, training: {mask_probability: 0.2}}]\n",
            ["training.mask_probability: gpt2 masks no words; remove it"],
        ),
        (
            BASE + "models: [{name: m, preset: tiny, training: {snapshots: log, snapshot_every: 5}}]\n",
            ["training.snapshot_every: it is for snapshots: linear; remove it"],
        ),
        (BASE + "corpus: {lengths: 6-25}\n", ["corpus.lengths", "6..25", "'6-25'"]),
        (BASE + "corpus: {lengths: 6}\n", ["corpus.lengths", "6..25"]),
        (BASE + "corpus: {lengths: [6, 25]}\n", ["corpus.lengths", "6..25"]),
        (BASE + "corpus: {lengths: 9..6}\n", ["corpus.lengths", "low <= high"]),
        (BASE + "corpus: {splits: {eval: 0}}\n", ["corpus.splits.eval"]),
        (BASE + "corpus: {splits: {'a b': 5, eval: 5}}\n", ["corpus.splits.a b"]),
        (BASE + "corpus: {splits: {train: 5}}\n", ["evaluation.split 'eval' is not among"]),
        (BASE + "corpus: {splits: {eval: 5}}\nmodels: [{name: m, preset: tiny}]\n", ["needs a split train"]),
        (BASE + "evaluation: {frame: strange}\n", ["evaluation.frame", "default"]),
        (BASE + "models: gpt2\n", ["models", "list"]),
        (BASE + "models: [{name: m, preset: huge}]\n", ["models.0", "unknown preset 'huge'; there are tiny, paper"]),
        (BASE + "models: [{name: m}]\n", ["models.0", "give either epochs or max_steps"]),
        (
            BASE + "models: [{name: m, preset: tiny, model: {layer: 3}}]\n",
            ["models.0: model.layer: unknown key"],
        ),
        (
            BASE + "models: [{name: m, preset: tiny, model: {dim: 17}}]\n",
            ["models.0: model: dim 17 is not a multiple of heads 4"],
        ),
        (
            BASE + "models: [{name: m, preset: tiny, training: {epochs: 1, max_steps: 5}}]\n",
            ["models.0", "give either epochs or max_steps"],
        ),
        (
            BASE + "models: [{name: m, preset: tiny}, {name: m, preset: tiny, model: {architecture: bert}}]\n",
            ["two are called"],
        ),
        (
            BASE + "corpus: {lengths: 1..128}\nmodels: [{name: m, preset: tiny}]\n",
            ["up to 128 words", "m; set its model.max_positions to 130"],
        ),
        (BASE + "models: [{name: oracle, preset: tiny}]\n", ["oracle is a name of the truth"]),
        ("", ["must be a mapping"]),
        ("- a\n- b\n", ["must be a mapping"]),
    ],
)
def test_a_wrong_configuration_says_which_key(text: str, parts: list[str], tmp_path: Path) -> None:
    path = write(tmp_path, text)
    message = refused(path)
    for part in [*parts, str(path)]:
        assert part in message


def test_several_unknown_keys_are_named_at_once(tmp_path: Path) -> None:
    message = refused(write(tmp_path, BASE + "corpus: {lenghts: 2..9}\nmodles: []\n"))
    for part in ("corpus.lenghts: unknown key; did you mean lengths?", "modles: unknown key; did you mean models?"):
        assert part in message
    assert "more)" not in message


def test_a_name_that_no_folder_can_have_says_what_a_name_is(tmp_path: Path) -> None:
    message = refused(write(tmp_path, BASE.replace("name: toy", "name: k=2")))
    assert "name: expected a name of letters, digits and . _ -, beginning with a letter or digit, not 'k=2'" in message


def test_many_mistakes_are_counted(tmp_path: Path) -> None:
    message = refused(write(tmp_path, BASE + "".join(f"wrong{i}: 1\n" for i in range(8))))
    assert message.count("unknown key") == 5 and "(and 3 more)" in message


def test_broken_yaml_names_the_line(tmp_path: Path) -> None:
    path = write(tmp_path, "name: toy\ncorpus: {lengths: 2..9\nseed: 1\n")
    assert f"({path}:3)" in refused(path)


def test_what_is_no_file_of_text(tmp_path: Path) -> None:
    assert "no such file" in refused(tmp_path / "nowhere.yaml")
    assert "Is a directory" in refused(tmp_path)
    path = tmp_path / "binary.yaml"
    path.write_bytes(b"name: \xff\xfe\x00")
    assert "not YAML" in refused(path)


def test_overrides_reach_any_key(tmp_path: Path) -> None:
    path = write(tmp_path, BASE + "evaluation:\n")
    config = load_config(
        path,
        ["seed=3", "corpus.lengths=1..4", "corpus.splits={train: 4, eval: 2}", "evaluation.sentences=1",
         "grammar.split_merge.cycles=2", "models=[{name: m, preset: tiny}]"],
    )  # fmt: skip
    assert config.seed == 3
    assert config.corpus.lengths == LengthRange(1, 4)
    assert config.corpus.splits == {"train": 4, "eval": 2}
    assert config.evaluation.sentences == 1
    assert config.grammar.split_merge.cycles == 2
    assert [m.name for m in config.models] == ["m"]


def test_an_entry_of_a_list_is_named_by_its_number(tmp_path: Path) -> None:
    path = write(tmp_path, BASE + "models: [{name: a, preset: tiny}, {name: b, preset: tiny}]\nseeds: [1, 2]\n")
    config = load_config(path, ["models.1.training.max_steps=30", "models.0.name=c", "seeds.1=7"])
    assert [model.name for model in config.models] == ["c", "b"]
    assert (config.models[0].training, config.models[1].training) == ({}, {"max_steps": 30})
    assert config.seeds == [1, 7]


def test_an_evaluator_that_is_true_takes_overrides(tmp_path: Path) -> None:
    config = load_config(write(tmp_path, BASE + "evaluation: {divergence: true}\n"), ["evaluation.divergence.top_k=3"])
    assert config.evaluation.model_dump()["divergence"]["top_k"] == 3


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("modles: []\n", "models"),
        ("corpus: {lenght: 2..9}\n", "lengths"),
        ("treebnk: {files: a}\n", "treebank"),
        ("evaluation: {divergance: true}\n", "divergence"),
        ("evaluation: {divergence: {topk: 3}}\n", "top_k"),
        ("evaluation: {tendencies: {schemes: [{scheme: nucleus, topp: 0.9}]}}\n", "top_p"),
        ("grammar: {split_merge: {cycle: 2}}\n", "cycles"),
        ("grammar: {binarise: {horizontl: 2}}\n", "horizontal"),
        ("models: [{name: m, trainin: {}}]\n", "training"),
        ("models: [{name: m, preset: tiny, model: {layer: 2}}]\n", "layers"),
    ],
)
def test_a_similar_key_is_named(text: str, meant: str, tmp_path: Path) -> None:
    assert f"did you mean {meant}?" in refused(write(tmp_path, BASE + text))


def test_nothing_is_guessed_where_no_key_is_similar(tmp_path: Path) -> None:
    assert "mean" not in refused(write(tmp_path, BASE + "zzz: 1\n"))


@pytest.mark.parametrize(
    ("override", "part"),
    [
        ("seed", "needs key.subkey=value"),
        ("=3", "needs key.subkey=value"),
        ("corpus..lengths=3", "needs key.subkey=value"),
        ("seed=[1", "not YAML"),
        ("name.first=a", "name is a single value"),
        ("models.first.name=a", "models is a list, so models.first.name cannot be set; name an entry by its number"),
        ("models.1.name=a", "models has no entry 1; its entries are models.0 to models.0"),
        ("colour=red", "colour: unknown key"),
        ("corpus.lenghts=2..3", "corpus.lenghts: unknown key; did you mean lengths?"),
        ("models.0.training.maxsteps=3", "training.maxsteps: unknown key; did you mean max_steps?"),
        ("corpus.colour=red", "corpus.colour: unknown key"),
    ],
)
def test_a_wrong_override_is_refused(override: str, part: str, tmp_path: Path) -> None:
    path = write(tmp_path, BASE + "models: [{name: m, preset: tiny}]\n")
    assert part in refused(path, override)


def test_a_preset_is_the_start_of_a_model(tmp_path: Path) -> None:
    text = BASE + "models: [{name: m, preset: tiny, model: {architecture: bert, dim: 64}, training: {max_steps: 9}}]\n"
    shape, training = load_config(write(tmp_path, text)).models[0].resolve()
    assert (shape.architecture, shape.dim, shape.name) == ("bert", 64, "m")
    assert (training.max_steps, training.epochs) == (9, None)


def test_a_preset_is_of_the_architecture_that_the_model_names(tmp_path: Path) -> None:
    text = BASE + "models: [{name: m, preset: paper, model: {architecture: lstm}}]\ncorpus: {lengths: 1..300}\n"
    shape, training = load_config(write(tmp_path, text)).models[0].resolve()
    assert (shape.architecture, shape.layers, shape.min_count, shape.longest) == ("lstm", 3, 5, None)
    assert training is not None
    assert (training.batch_sentences, training.learning_rate) == (512, 5e-4)
    assert "unknown architecture 'elman'" in refused(
        write(tmp_path, BASE + "models: [{name: m, preset: tiny, model: {architecture: elman}}]\n"), "seed=1"
    )
    tokens = BASE + "models: [{name: m, preset: paper, training: {batch_tokens: 99}}]\n"
    training = load_config(write(tmp_path, tokens)).models[0].resolve()[1]
    assert training is not None
    assert (training.batch_sentences, training.batch_tokens) == (None, 99)
    pieces = BASE + "models: [{name: m, preset: paper, model: {tokenizer: bpe, vocab_size: 100}}]\n"
    assert load_config(write(tmp_path, pieces)).models[0].resolve()[0].min_count == 1


def test_a_configuration_cannot_be_changed() -> None:
    config = RunConfig(name="toy", treebank={"files": "a"})
    with pytest.raises(ValueError, match="frozen"):
        config.seed = 2


def test_none_is_null_wherever_a_key_may_be_null(tmp_path: Path) -> None:
    path = tmp_path / "none.yaml"
    path.write_text(
        "name: toy\ntreebank: {files: a, limit: none, normalise: {root: none, lengths: none}}\n"
        "grammar: {binarise: {horizontal: none}}\ncorpus: {lengths: none, splits: {train: 9, eval: 9}}\n"
        "models: [{name: m, preset: tiny, training: {snapshots: none}}]\nevaluation: {sentences: none}\n",
        encoding="utf-8",
    )
    changes = ["grammar.split_merge.relaxation=none", "title=none", "models.0.training.batch_sentences=none"]
    config = load_config(path, changes)
    assert config.treebank is not None
    assert (config.treebank.limit, config.treebank.normalise.root, config.title) == (None, None, None)
    assert (config.grammar.binarise.horizontal, config.grammar.split_merge.relaxation) == (None, None)
    assert (config.corpus.lengths, config.evaluation.sentences) == (None, None)
    with pytest.raises(InputError) as caught:
        load_config(path, ["grammar.binarise.vertical=none"])
    assert "grammar.binarise.vertical" in caught.value.reason


def test_unknown_keys_of_model_and_training_are_named_together(tmp_path: Path) -> None:
    path = tmp_path / "unknown.yaml"
    path.write_text(
        "name: toy\ntreebank: {files: a}\n"
        "models: [{name: m, preset: tiny, model: {layer: 3}, training: {max_step: 2}}]\n",
        encoding="utf-8",
    )
    with pytest.raises(InputError) as caught:
        load_config(path)
    for part in ("model.layer: unknown key; did you mean layers?", "training.max_step: unknown key"):
        assert part in caught.value.reason
