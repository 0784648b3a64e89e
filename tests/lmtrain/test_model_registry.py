"""What is known of architectures without their networks."""

from __future__ import annotations

import subprocess
import sys
import textwrap

import pytest

from truesource.lmtrain.architectures.settings import names
from truesource.lmtrain.config import RECORDED
from truesource.lmtrain.model_registry import model_settings, network_architecture, preset


@pytest.mark.parametrize("name", names())
def test_records_of_all_architectures_hold_the_settings_they_always_held(name: str) -> None:
    """Finished runs are recognised by them: a setting of another architecture is recorded at its default."""
    for kind in ("tiny", "paper"):
        config = preset(kind, name).model
        record = config.model_dump(mode="json")
        assert list(record) == list(RECORDED)
        others = set(RECORDED) - set(type(config).model_fields)
        assert all(record[key] == RECORDED[key] for key in others)
        assert model_settings(**record) == config
        for key in others:
            with pytest.raises(ValueError, match=f"{name} takes no {key}; leave it out"):
                model_settings(**{**record, key: 7})


@pytest.mark.long
def test_settings_need_no_torch() -> None:
    program = """
        import sys
        from truesource.lmtrain.architectures.settings import names
        from truesource.lmtrain.model_registry import preset
        for name in names():
            assert preset("paper", name).model.label
        heavy = {"torch", "transformers", "tokenizers"} & set(sys.modules)
        assert not heavy, heavy
    """
    subprocess.run([sys.executable, "-c", textwrap.dedent(program)], check=True)


def test_what_is_no_network_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown architecture 'elman'"):
        network_architecture("elman")
    with pytest.raises(ValueError, match="ngram is not a network; there are adaptive, bert"):
        network_architecture("ngram")
