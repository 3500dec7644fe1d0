"""The figures of the analyses, from rows."""

import json

import pytest

from fairseq_eisl.evaluation.figures.exact import draw_exact, exact_values
from fairseq_eisl.evaluation.figures.gradients import draw_gradients, gradient_shares
from fairseq_eisl.evaluation.figures.selection import draw_selection, selection_values
from fairseq_eisl.evaluation.figures.sensitivity import draw_sensitivity, sensitivity_values

from .layout import check_layout

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

ABOUT = {
    "title": "Multi30k de-en, lower-cased",
    "checkpoint": "CE",
    "updates": "600",
    "subset": "valid",
    "sentences": "200",
    "seed": "1",
    "ngram": "1,2",
    "selection": "softmax",
    "noise": "shuffle:3",
}
GRID = [f"shuffle:{k}" for k in (2, 4, 6, 8, 10, "all")]
GRID += [f"{kind}:0.{level}" for kind in ("repeat", "blank") for level in (1, 2, 3, 4, 5)]


def sensitivity(noises=GRID, seeds="1", systems=("CE", "EISL 1,2", "EISL 2,3,4"), **changes):
    return [
        {**ABOUT, "noise": noise, "system": system, "seed": seed, "share": f"{0.1 * i}", **changes}
        for i, noise in enumerate(noises)
        for system in systems
        for seed in seeds
    ]


def exact(**changes):
    values = {"approximate": "4.2", "exact": "4.1", "difference_abs": "0.3"}
    costs = {"approximate_ms": "1.1", "exact_ms": "110", "noise": "repeat:0.5"}
    updates = ("30000", "0", "10000")
    return [{**ABOUT, **values, **costs, "updates": at, **changes} for at in updates]


def selection(orders="12", models=("untrained", "CE", "EISL after CE"), **changes):
    words = [f"word{i}" for i in range(10)]
    found = []
    for n in orders:
        size = len(words) - int(n) + 1
        diagonal = [[float(s == t) for t in range(size)] for s in range(size)]
        example = {
            "example_target": json.dumps(words),
            "example_candidate": json.dumps(words),
            "example_weights": json.dumps(diagonal),
            "example_truth": json.dumps(diagonal),
        }
        numbers = {"agreement": "0.96", "mass": "0.7", "known": "1", "candidate": "target", "n": n}
        found += [{**ABOUT, **numbers, **example, "checkpoint": name, **changes} for name in models]
    return found


def gradients(noises=("none", "shuffle:3", "repeat:0.5"), models=("CE", "EISL"), **changes):
    return [
        {
            **ABOUT,
            "checkpoint": model,
            "noise": noise,
            "order": order,
            "share": "" if order == "CE" else str(0.4 - 0.1 * i),
            "share_std": "" if order == "CE" else "0.02",
            "cosine_clean": str(0.9 - 0.3 * i),
            **changes,
        }
        for model in models
        for noise in noises
        for i, order in enumerate(("1", "2", "3", "4", "CE"))
    ]


DRAWN = {
    "sensitivity": (sensitivity_values, draw_sensitivity, sensitivity),
    "exact": (exact_values, draw_exact, exact),
    "selection": (selection_values, draw_selection, selection),
    "gradients": (gradient_shares, draw_gradients, gradients),
}
CASES = {
    "sensitivity": sensitivity(),
    "sensitivity, seeds": sensitivity(seeds="123", noises=["drop:0.1", "drop:0.5"]),
    "sensitivity, four": sensitivity([*GRID, "synthetic:4", "synthetic:8"]),
    "exact": exact(),
    "exact, one": exact(noise="none")[:1],
    "selection": selection(),
    "selection, one": selection("2", ["a rather long name of a checkpoint"]),
    "selection, unknown": selection("1", ["CE"], agreement=""),
    "gradients": gradients(),
    "gradients, one": gradients(["blank:0.3"], ["CE"]),
}


@pytest.mark.parametrize("name", CASES)
def test_no_text_lies_on_another(tmp_path, figures, name):
    collect, draw, _ = DRAWN[name.split(",")[0]]
    draw(collect(CASES[name]), str(tmp_path / "x.png"))
    texts = check_layout(figures[0])
    assert any("Multi30k de-en" in text for text in texts)


@pytest.mark.parametrize("kind", DRAWN)
def test_rows_that_are_not_to_be_compared_are_refused(kind):
    collect, _, rows = DRAWN[kind]
    with pytest.raises(ValueError, match="title"):
        collect([*rows(), *rows(title="another corpus")])
    for name in ("data", "temperature", "after_eos"):
        with pytest.raises(ValueError, match=f"several {name}"):
            collect([*rows(**{name: "1"}), *rows(**{name: "2"})])
    with pytest.raises(ValueError, match="no rows"):
        collect([])
    with pytest.raises(ValueError, match="no column subset"):
        collect([{key: value for key, value in row.items() if key != "subset"} for row in rows()])


@pytest.mark.parametrize(
    "kind, rows, words",
    [
        (
            "sensitivity",
            sensitivity(checkpoint="CE") + sensitivity(checkpoint="EISL"),
            "checkpoint",
        ),
        ("sensitivity", sensitivity(["none"]), "no row has a noise"),
        ("sensitivity", sensitivity(share="much"), "share is 'much'"),
        ("exact", exact() + exact(ngram="2"), "ngram"),
        ("selection", selection() + selection(noise="none"), "noise"),
        ("selection", selection(models="abcd"), "8 heat maps, there is room for 6"),
        ("selection", selection(example_truth=""), "no example"),
        ("selection", selection(example_weights="[]"), "too short for its n-grams"),
        ("selection", selection(example_weights="[[], []]"), "too short for its n-grams"),
        ("exact", exact() + exact(seed="2"), "several seed"),
        (
            "exact",
            exact() + exact(checkpoint="EISL", exact="9"),
            "several models of 30000 updates: CE, EISL",
        ),
        (
            "gradients",
            gradients() + gradients(["none"], seed="2"),
            "CE, shuffle:3 has no row of order 1 for seed 2",
        ),
        ("gradients", gradients()[:-1], "EISL, repeat:0.5 has no row of order CE for seed 1"),
        ("gradients", gradients([f"repeat:0.{i}" for i in range(1, 8)]), "room for 10"),
    ],
)
def test_what_cannot_be_drawn(kind, rows, words):
    with pytest.raises(ValueError, match=words):
        DRAWN[kind][0](rows)


def test_a_clean_target_is_zero_and_the_last_row_counts():
    twice = sensitivity() + sensitivity(["repeat:0.1"], share="0.7")
    found = sensitivity_values(twice).panels["repeat"]["CE"]
    assert found[0.0] == [0.0] and found[0.1] == [0.7]
    assert exact_values(exact() + exact(exact="3")).exact == [3, 3, 3]
    assert exact_values(exact()).updates == [0, 10000, 30000]
    # The best checkpoint and the last one may be the same.
    assert len(exact_values(exact() + exact(checkpoint="last")).updates) == 3
    shares = gradient_shares(gradients() + gradients(seed="2", share_std="0.04"))
    assert shares.spread["1"] == pytest.approx([0.03] * 6)


def test_an_order_of_short_sentences_may_be_of_no_use():
    """Then no row has it, and it is nothing of the gradient."""
    short = [{**row, "order": "short"} for row in gradients(["repeat:0.5"]) if row["order"] == "1"]
    assert gradient_shares(gradients() + short).shares["short"] == [0, 0, 0.4, 0, 0, 0.4]
    two = gradients() + gradients(seed="2") + short
    assert gradient_shares(two).shares["short"] == [0, 0, 0.2, 0, 0, 0.2]


def test_a_row_without_an_example_is_named():
    rows = [{k: v for k, v in r.items() if "example" not in k} for r in selection("2", ["CE"])]
    with pytest.raises(ValueError, match="a row has no example: checkpoint CE, n 2"):
        selection_values([*selection("1", ["CE"]), *rows])


def test_a_heat_map_shows_places_down_and_ngrams_across(tmp_path, figures):
    rows = selection("1", ["CE"])
    weights = [[0.0] * 10 for _ in range(10)]
    weights[2][7] = 1.0  # the third n-gram lies at the eighth place
    draw_selection(
        selection_values([{**row, "example_weights": json.dumps(weights)} for row in rows]),
        str(tmp_path / "x.png"),
    )
    image = figures[0].axes[0].get_images()[0].get_array()
    assert image[7][2] == 1 and image.sum() == 1
