"""Flags of the target noise that were set where there is none are named in a line."""

import pytest

from tests.toy import setup

RESAMPLE = "--target-noise-resample"
SAID = "--target-noise-seed, --target-noise-resample: no effect without --target-noise"


@pytest.mark.parametrize(
    "flags, said",
    [
        ([RESAMPLE, "--target-noise-seed", "5"], [SAID]),
        ([RESAMPLE, "--target-noise", "repeat:0.5"], []),
        ([], []),
    ],
)
def test_flags_without_noise_are_named(toy, caplog, flags, said):
    setup(toy.bin, *flags)
    assert [r.getMessage() for r in caplog.records if "no effect" in r.getMessage()] == said
