"""The page that shows a training as it happens."""

import json
from multiprocessing import Pipe
from typing import Any

import pytest
from explorer_server import Running, running
from patience import wait_until

from mnemoscope.spec import SpecError, Transformer
from mnemoscope.ui.explorer.live import PRESETS, preset_of, train

NAME = next(iter(PRESETS))


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory):
    with running(tmp_path_factory.mktemp("live")) as server:
        yield server


@pytest.mark.long
def test_a_training_tells_every_check_and_its_end():
    ours, theirs = Pipe(duplex=False)
    sizes: dict[str, Any] = dict(task="mqar", vocab=8, pairs=2, queries=1, dim=8, heads=2, layers=2)
    train(theirs, Transformer(**sizes, batch=16, max_steps=64, target=1.0), 0, "cpu")
    theirs.close()
    said = [ours.recv() for _ in range(3)]
    kinds = [kind for kind, _ in said]
    assert kinds == ["check", "check", "done"]
    for number, (_, value) in enumerate(said[:2]):
        assert value["check"]["step"] == 32 * (number + 1)
        assert value["map"]["rows"] == ["layer 1, head 1", "layer 1, head 2", "layer 2, head 1", "layer 2, head 2"]
        assert [len(row) for row in value["map"]["weights"]] == [5] * 4
        assert all(sum(row) == pytest.approx(1.0, abs=1e-3) for row in value["map"]["weights"])
        assert len(value["map"]["tokens"]) == 5
    assert said[0][1] != said[1][1]
    assert "after 64 steps" in said[2][1]


def test_the_page_offers_presets_and_refuses_others(server: Running):
    status, _, page = server.ask("/train")
    assert status == 200
    assert all(name in page for name in PRESETS)
    assert json.loads(server.ask("/train.json")[2])["stage"] == "none"
    told = {"X_Mnemoscope_Token": server.explorer.token}
    status, _, text = server.ask("/train/start", method="POST", body="preset=everything", **told)
    assert (status, "expected one of" in text) == (400, True)
    assert server.ask("/train/start", method="POST", body=f"preset={NAME}")[0] == 403  # without the page's token
    with pytest.raises(SpecError, match=r"^preset: expected one of"):
        preset_of("fact")


@pytest.mark.long
def test_a_training_is_watched_and_stopped(server: Running):
    told = {"X_Mnemoscope_Token": server.explorer.token}
    assert server.ask("/train/start", method="POST", body=f"preset={NAME}&seed=1", **told)[0] == 200

    def state() -> dict[str, Any]:
        return json.loads(server.ask("/train.json")[2])

    now = wait_until(lambda: (seen := state())["curve"] and seen, "the first check")
    assert now["preset"] == NAME
    assert now["map"]["rows"]
    server.ask("/train/stop", method="POST", body="", **told)
    assert state()["stage"] in ("stopped", "done")
    assert server.ask("/train/start", method="POST", body=f"preset={NAME}", **told)[0] == 200
    ended = wait_until(lambda: (seen := state())["stage"] == "done" and seen, "the end")
    assert "reached its target" in ended["message"]
    assert ended["curve"][-1]["accuracy"] >= PRESETS[NAME].target
