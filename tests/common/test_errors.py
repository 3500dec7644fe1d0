import pytest

from fairseq_eisl.common.errors import Refused, naming


@pytest.mark.parametrize(
    "error, line",
    [
        (ValueError("x.csv: no table"), "--rows x.csv: no table"),
        (ValueError("no table"), "--rows x.csv: no table"),
        (FileNotFoundError(2, "No such file", "x.csv"), "--rows x.csv: No such file"),
        (PermissionError(13, "Denied", "x.csv.lock"), "--rows x.csv: x.csv.lock: Denied"),
        (OSError("odd"), "--rows x.csv: odd"),
    ],
)
def test_what_goes_wrong_is_one_line_after_the_flag(error, line):
    with pytest.raises(Refused) as refused, naming("--rows x.csv", "x.csv"):
        raise error
    assert str(refused.value) == line


@pytest.mark.parametrize("error", [BrokenPipeError(), KeyError("x"), Refused("x")])
def test_other_errors_stay_what_they_are(error):
    with pytest.raises(type(error)) as raised, naming("--rows x.csv", "x.csv"):
        raise error
    assert raised.value is error
