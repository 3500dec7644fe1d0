import sys

import pytest

from fairseq_eisl.common.matplotlib_check import why_no_pictures


def test_nothing_to_say_where_pictures_can_be_drawn():
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    assert why_no_pictures() == ""


def test_a_missing_matplotlib_is_one_line_that_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    reason = why_no_pictures()
    assert reason.startswith("pictures need matplotlib: pip install") and "\n" not in reason


def test_a_broken_one_says_what_it_lacks(monkeypatch):
    """It is installed, so only an import shows it."""

    def halted(name):
        raise ImportError("No module named 'numpy'", name="numpy")

    monkeypatch.setattr("importlib.import_module", halted)
    assert "(No module named 'numpy')" in why_no_pictures()
