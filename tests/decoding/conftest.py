"""Models to decode with: those of the criterion's tests."""

from tests.criterions.conftest import build

__all__ = ["build"]
