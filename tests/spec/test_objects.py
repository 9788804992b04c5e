"""Identity: the name of an object tells its source and all values that it closes over."""

import pickle
import sys
import threading
from collections.abc import Callable
from dataclasses import dataclass
from importlib import import_module, reload
from pathlib import Path
from typing import Any

import numpy as np
import optax
import pytest

import mnemoscope as mn
from mnemoscope.spec import objects
from mnemoscope.spec.identity import Unhashable, digest
from mnemoscope.spec.objects import find_object, name_object

SIZES: dict[str, Any] = {"vocab": 16, "dim": 24, "length": 4, "samples": 400}
SCALE = 2.0


def made_of(**more: Any) -> mn.Retrieval:
    return mn.Retrieval(**{**SIZES, **more})


def made(scale: object) -> Callable[..., object]:
    def law(words: object, rows: int, dim: int) -> object:
        return scale

    return law


def helped(x: float) -> float:
    return SCALE * x


@dataclass(frozen=True)
class Sized:
    size: int
    table: Any = None

    def both(self) -> tuple[int, float]:
        return self.size, helped(1.0)


def test_closures_globals_and_values_count(monkeypatch: pytest.MonkeyPatch):
    assert digest(made(1.0)) == digest(made(1.0))
    inside = [1.0, 2.0, "1.0", [1.0], {"a": 1}, {1, 2}, np.ones(3), np.ones((3, 1)), made(1.0)]
    inside += [Sized(1), Sized(2), Sized(1, np.ones(2))]
    different = [*map(made, inside), helped, Sized]
    assert len({digest(one) for one in different}) == len(different)
    before = digest(helped), digest(Sized(1))
    monkeypatch.setattr(sys.modules[__name__], "SCALE", 3.0)
    assert digest(helped) != before[0]
    assert digest(Sized(1)) != before[1]  # its method names a helper, which names the number


def test_optimisers_are_told_apart_by_their_settings():
    rates = [digest(optax.adamw(rate)) for rate in (1e-2, 1e-2, 1e-3)]
    assert rates[0] == rates[1] != rates[2]
    assert digest(optax.sgd(1e-2)) != rates[0]
    clipped = [optax.chain(optax.clip(most), optax.adam(1e-2)) for most in (1.0, 2.0)]
    assert digest(clipped[0]) != digest(clipped[1])


def test_what_has_no_identity_says_which_part(caplog: pytest.LogCaptureFixture):
    for part in (threading.Lock(), iter([1]), np.random.default_rng(0), np.array([object()]), (n for n in range(3))):
        with pytest.raises(Unhashable):
            digest(made(part))
    law = made(threading.Lock())
    name = name_object("embedding", law)
    assert "@unhashed-" in name
    assert "expected source and values that can be hashed, got a lock: its trials are not kept" in caplog.text
    assert name_object("embedding", law) == name
    assert not made_of(embedding=law).hashed


def test_a_changed_source_is_a_new_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(objects, "_objects", {})
    file = tmp_path / "changing_law.py"
    file.write_text("def law(words, rows, dim):\n    return helper(1)\n\n\ndef helper(x):\n    return x\n")
    module = import_module("changing_law")
    name = name_object("embedding", "changing_law:law")
    assert name_object("embedding", module.law) == name
    objects._objects.clear()
    assert find_object("embedding", name) is module.law
    file.write_text(file.read_text().replace("return x", "return  2 * x"))
    objects._objects.clear()
    with pytest.raises(
        mn.SpecError, match=r"^embedding: expected the source of changing_law:law with the hash .* has changed$"
    ):
        find_object("embedding", name)
    assert name_object("embedding", reload(module).law) != name


def test_settings_take_along_what_cannot_be_imported(monkeypatch: pytest.MonkeyPatch):
    import cloudpickle

    spec, known = made_of(embedding=made(1.5)), made_of(embedding=helped)
    sent = cloudpickle.dumps((spec, known))
    monkeypatch.setattr(objects, "_objects", {})
    there, other = pickle.loads(sent)
    assert (there, there.id) == (spec, spec.id)
    assert list(objects._objects) == [spec.embedding]  # the other is imported when it is used
    assert find_object("embedding", spec.embedding)(None, 1, 1) == 1.5
    assert find_object("embedding", other.embedding) is helped
    plain = made_of()
    assert pickle.loads(pickle.dumps(plain)) == plain
