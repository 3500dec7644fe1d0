"""As many folders as cells."""

import pytest

from fairseq_eisl.recipes.cell_names import cell_names


@pytest.mark.parametrize(
    "values",
    [
        ["<unk>", "▁<unk>"],
        ["a/b", "a b", "a:b", "a_b"],
        ["A", "a"],
        ["x", "x.", "x.."],
        ["é" * 300, "é" * 301],
        ["ß", "ss"],
        ["e\u0301", "é"],
    ],
)
def test_cells_that_differ_have_folders_that_differ(values):
    names = cell_names([[f"k={value}"] for value in values])
    assert len({name.casefold().rstrip(".") for name in names}) == len(values)
    assert all(len(name.encode()) < 240 and not name.endswith(".") for name in names)


def test_names_that_were_fit_stay():
    assert cell_names([["k=a_b"], ["k=a:b"]])[0] == "k=a_b"
    assert cell_names([["n=repeat:0.3", "s=1"]]) == ["n=repeat_0.3_s=1"]
