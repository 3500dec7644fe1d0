import random

import pytest

from fairseq_eisl.evaluation.readers.generation_log import read_generation_log

from .logs import generation_log


@pytest.fixture
def read(tmp_path):
    def read(text):
        path = tmp_path / "gen.out"
        path.write_bytes(text.encode("utf-8"))
        return read_generation_log(str(path))

    return read


def refusal(read, text):
    with pytest.raises(ValueError) as error:
        read(text)
    assert "gen.out: " in str(error.value)
    return str(error.value)


@pytest.mark.parametrize("count", [1, 5, 10, 17])
@pytest.mark.parametrize("detokenised", [True, False])
@pytest.mark.parametrize("nbest", [1, 3])
def test_every_sentence_comes_back_in_the_order_of_the_data(read, count, detokenised, nbest):
    hypotheses = [f"word{i} " * (i % 4) for i in range(count)]
    references = [f"reference {i}" for i in range(count)]
    order = list(range(count))
    random.Random(3).shuffle(order)
    text = generation_log(hypotheses, references, order, nbest, detokenised)
    assert read(text) == (hypotheses, references)


def test_detokenised_lines_win(read):
    log = read("H-0\t-1\tdo n't\nD-0\t-1\tdon't\n")
    assert log.hypotheses == ["don't"]


def test_without_references(read):
    assert read(generation_log(["a"])).references is None


def test_empty_hypotheses_stay_even_when_an_editor_took_the_tab(read):
    assert read("H-0\t-1\t\nH-1\t-0.5\nH-2\t-1\tc\n").hypotheses == ["", "", "c"]


def test_only_a_newline_ends_a_line(read):
    text = "caf\u00e9 \r \u2028 \x0b \x85 \U0001f6b2"
    one_sentence = "caf\u00e9         \U0001f6b2"
    assert read(generation_log([text, "b"])).hypotheses == [one_sentence, "b"]


def test_windows_line_ends(read):
    assert read("H-0\t-1\ta\r\nH-1\t-1\tb\r\n").hypotheses == ["a", "b"]


def test_sorted_logs_are_no_duplicates(read):
    lines = generation_log(["b b", "a"], ["b", "a"], nbest=2).splitlines()
    assert read("\n".join(sorted(lines, key=lambda line: line[:3]))).hypotheses == ["b b", "a"]


def test_missing_ids_are_named_with_the_remedy(read):
    message = refusal(read, generation_log([str(i) for i in range(10)], order=[0, 1, 3, 4, 9, 6]))
    assert "ids 2, 5, 7, 8 (6 of 10 sentences" in message
    assert "--required-batch-size-multiple 1" in message


def test_a_sentence_without_hypothesis_is_missing(read):
    assert "no hypothesis for id 1 " in refusal(read, "S-0\ta\nH-0\t-1\ta\nS-1\tb\nT-1\tb\n")


def test_many_missing_ids_are_counted(read):
    assert "and 88 more (2 of 100" in refusal(read, "H-0\t-1\ta\nH-99\t-1\tb\n")


def test_missing_references_are_named(read):
    assert "no reference (T line) for id 1 " in refusal(read, "T-0\ta\nH-0\t-1\ta\nH-1\t-1\tb\n")


@pytest.mark.parametrize(
    "text, ids",
    [
        (generation_log(["a", "b"]) * 2, "ids 0, 1"),
        (generation_log(["a"]) * 2, "id 0"),
        ("H-0\t-1\ta\nH-1\t-1\tb\nH-0\t-1\tc\n", "id 0"),
    ],
)
def test_duplicate_ids_are_named(read, text, ids):
    message = refusal(read, text)
    assert f"{ids} more than once" in message
    assert "--required-batch-size-multiple 1" in message


def test_a_line_without_score_is_named(read):
    assert "line 2 (H-1): a score is needed" in refusal(read, "H-0\t-1\ta\nH-1\ta man\n")


@pytest.mark.parametrize("text", ["INFO only\n", "T-0\ta\nS-0\tb\n", "\n"])
def test_no_hypotheses_at_all(read, text):
    assert "--quiet" in refusal(read, text)


def test_empty_file(read):
    assert "empty" in refusal(read, "")


def test_binary_file(tmp_path):
    path = tmp_path / "checkpoint.pt"
    path.write_bytes(b"PK\x03\x04\xff\xfe")
    with pytest.raises(ValueError, match="checkpoint.pt: line 1: no UTF-8 text"):
        read_generation_log(str(path))
