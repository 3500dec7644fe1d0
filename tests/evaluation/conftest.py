import pytest


@pytest.fixture
def figures(monkeypatch):
    """The figures that would have been saved."""
    from matplotlib.figure import Figure

    saved = []
    monkeypatch.setattr(Figure, "savefig", lambda self, *args, **kwargs: saved.append(self))
    return saved
