"""The revisions of studies in ledgers of formats 1 and 2, which had a fingerprint of the study's file instead."""

from typing import Any

REVISIONS = {
    ("a-three-steps", "775f82692859"): 1,
    ("a-monotone", "0cb10f898392"): 2,
    ("a-first-gradient", "ecaa26db430c"): 2,
    ("a-mean-bias", "81e8e0a18fa0"): 2,
    ("a-gradient-noise", "d3574661e17a"): 2,
    ("a-dimension-and-length", "3bddf09a4b6a"): 1,
    ("a-orthogonal", "f8b9eeb05f62"): 2,
    ("a-bound", "ffbfc1e963ea"): 2,
    ("a-predicted", "6ce901e86248"): 1,
    ("a-phase", "0f3e02ad0243"): 1,
    ("a-per-parameter", "8aa57f6b1413"): 1,
    ("a-superposition", "0dde99525431"): 1,
    ("a-trigger", "96c1b6d03a1e"): 2,
    ("a-first-steps", "ea593763558f"): 2,
    ("a-width", "db4559d039bf"): 2,
    ("a-activations", "1f8fe2c820e6"): 1,
    ("news-dl", "c650015aa492"): 2,
    ("news-facts", "25bf73359f93"): 1,
    ("q-coupling", "76987b9fe1c1"): 2,
    ("q-mlp", "4dd40083aea5"): 1,
    ("q-beyond", "688d81e22147"): 1,
    ("q-large-dimension", "24d9593cf621"): 2,
    ("b-fig1-left", "4832c6edbc35"): 2,
    ("b-fig1-right", "e6d51e7b8137"): 2,
    ("b-fig4-left", "a297a35fb477"): 2,
    ("b-fig4-right", "113fbe43b113"): 2,
    ("b-fig5", "85d9102df5da"): 2,
    ("b-plateau", "05c8dbadff10"): 1,
    ("b-bits", "ddbfc3c43046"): 2,
    ("b-hebbian", "52b87614fa77"): 1,
    ("b-low-rank", "d20c8f7bcc8d"): 1,
    ("b-shared-answers", "f19f983161e1"): 1,
}


def with_revision(entry: dict[str, Any]) -> dict[str, Any]:
    """An entry of format 1 or 2 in format 3. A fingerprint that is not listed gets revision 0: the file has changed."""
    revision = REVISIONS.get((entry["study"], entry["print"]), 0)
    rest = {name: value for name, value in entry.items() if name != "print"}
    return {**rest, "revision": revision, "numerics": int(entry["made"].get("numerics", 0))}
