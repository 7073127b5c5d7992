"""An example of each answer, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from hedged.serve import answers

_CANDIDATE = {"label": "Rex", "probability": 0.94, "log_odds": 6.1, "images": 4, "items": ["rex-2.jpg", "rex-1.jpg"]}
_ITEM = {"id": "rex-4.jpg", "label": "Rex", "uncertainty": 0.08, "novelty": 0.31, "metadata": {"year": 2026}}
_HIT = {"rank": 1, "probability": 0.93, "log_odds": 2.6} | {key: _ITEM[key] for key in _ITEM if key != "novelty"}
_MAP: dict[str, Any] = {
    "total": 2,
    "explained": 0.81,
    "ids": ["rex-1.jpg", "bo-1.jpg"],
    "labels": ["Bo", "Rex"],
    "label": [1, 0],
    "x": [1.2, -0.4],
    "y": [0.3, 2.1],
    "major": [0.2, 0.5],
    "minor": [0.1, 0.1],
    "angle": [0.4, 1.3],
    "uncertainty": [0.08, 0.33],
}
EXAMPLES: dict[Any, Any] = {
    answers.Health: {"status": "ok", "model": "current"},
    answers.Embeddings: {
        "embeddings": [
            {"kind": "gaussian", "mean": [0.4, -1.2], "variance": [0.1, 0.2], "uncertainty": 0.08, "novelty": 0.31}
        ]
    },
    answers.Match: {
        "probability": 0.91,
        "log_odds": 2.31,
        "calibrated": {"probability": 0.88, "base_rate": 0.5},
        "decision": "accept",
        "rule": "by the thresholds of the calibration",
        "uncertainty": [0.08, 0.12],
        "novelty": [0.31, 0.45],
        "distance": 0.7,
        "dimensions": [
            {"dimension": 0, "difference": 0.5, "spread": 0.4, "log_odds": None},
            {"dimension": 1, "difference": -0.5, "spread": 0.3, "log_odds": None},
        ],
    },
    answers.Found: {
        "results": [
            {
                "uncertainty": 0.08,
                "novelty": 0.31,
                "hits": [_HIT],
            }
        ]
    },
    answers.Identified: {
        "results": [
            {
                "label": "Rex",
                "probability": 0.94,
                "none_probability": 0.05,
                "uncertainty": 0.08,
                "novelty": 0.31,
                "decision": "accept",
                "best": [_CANDIDATE],
                "candidates": {"labels": ["Rex"], "nobody": False, "coverage": 0.95},
            }
        ]
    },
    answers.Items: {"total": 48, "items": [_ITEM]},
    answers.Enrolled: {"ids": ["rex-5.jpg"], "warnings": []},
    answers.Removed: {"removed": 1},
    answers.Map: _MAP,
    answers.Audit: {
        "items": 48,
        "identities": 12,
        "dismissed": 0,
        "mislabelled": [
            {
                "id": "bo-3.jpg",
                "label": "Bo",
                "probability": 0.97,
                "likelier": "Rex",
                "likelier_probability": 0.96,
                "likelier_items": ["rex-1.jpg", "rex-2.jpg"],
            }
        ],
        "duplicates": [],
        "divided": [],
        "poor": [{"id": "bo-4.jpg", "label": "Bo", "probability": 0.4, "uncertainty": 0.55}],
    },
    answers.Done: {"done": "bo-3.jpg is Rex now"},
    answers.Card: {
        "name": "dogs",
        "fingerprint": "0123456789abcdef",
        "input": {"kind": "images", "shape": [3, 224, 224]},
        "dim": 2,
        "match_model": {"kind": "curve", "scale": 10.0, "bias": 3.0},
        "novelty": True,
        "store": "dogs.db",
        "items": 48,
        "labels": 12,
        "pictures": True,
        "role": "read",
        "calibration": {
            "base_rate": 0.5,
            "reject_below": -1.2,
            "accept_from": 2.0,
            "calibrator": {"kind": "temperature", "temperature": 1.1},
        },
    },
    answers.Calibration | None: {
        "base_rate": 0.5,
        "reject_below": -1.2,
        "accept_from": 2.0,
        "reject_below_probability": 0.2,
        "accept_from_probability": 0.9,
        "scores": {"match": [1.5, 3.2], "non_match": [-4.0, -2.5]},
        "calibrated": {"match": [0.82, 0.96], "non_match": [0.02, 0.08]},
    },
}
FINDING = {"kind": "mislabelled", "ids": ["bo-3.jpg"]}


def of(model: Any) -> dict[str, Any]:
    """A response in OpenAPI, with its example.

    Args:
        model: What is answered.
    """
    return {"model": model, "content": {"application/json": {"example": EXAMPLES[model]}}}
