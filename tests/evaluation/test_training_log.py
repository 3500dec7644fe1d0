import math

import pytest

from fairseq_eisl.evaluation.readers.training_log import Curve, read_curve, training_effort

from .logs import json_validation, simple_validation

TRAINING = (
    "2026-11-27 23:44:16 | INFO | train_inner | epoch 001:    100 / 729 loss=8.8, bleu=77, "
    "num_updates=100\n"
    "2026-11-27 23:44:17 | INFO | fairseq_cli.train | {'_name': None, 'bleu': 1}\n"
    '2026-11-27 23:44:18 | INFO | train | {"epoch": 1, "train_bleu": "5", "train_num_updates": 9}\n'
    "2026-11-27 23:44:19 | INFO | train | epoch 001 | loss 3 | bleu 44 | num_updates 729\n"
)


@pytest.fixture
def read(tmp_path):
    def read(text, **options):
        path = tmp_path / "train.log"
        path.write_text(text, encoding="utf-8")
        return read_curve(str(path), **options)

    return read


@pytest.mark.parametrize("line", [simple_validation, json_validation])
def test_both_formats(read, line):
    text = TRAINING + line(729, 3.63) + "\n" + TRAINING + line(1458, 9.5) + "\n"
    assert read(text) == Curve([729, 1458], [3.63, 9.5])


def test_bare_forms(read):
    """--log-file writes the message alone; older versions write no valid tag."""
    text = (
        "| valid | epoch 001 | loss 4 | bleu 12.3 | num_updates 123\n"
        "epoch 002 | valid on 'valid' subset | loss 3.9 | bleu 13 | num_updates 246\n"
        '{"epoch": 3, "valid_loss": "3.8", "valid_bleu": "14", "valid_num_updates": "369"}\n'
    )
    assert read(text) == Curve([123, 246, 369], [12.3, 13.0, 14.0])


@pytest.mark.parametrize("line", [simple_validation, json_validation])
def test_subsets_are_kept_apart(read, line):
    text = "\n".join([line(1, 10.0), line(1, 20.0, "valid1"), line(2, 30.0, "valid1")])
    assert read(text) == Curve([1], [10.0])
    assert read(text, subset="valid1") == Curve([1, 2], [20.0, 30.0])


def test_a_resumed_run_overrules(read):
    lines = [simple_validation(u, b) for u, b in [(10, 1.0), (20, 2.0), (10, 1.5), (30, 3.0)]]
    assert read("\n".join(lines)) == Curve([10, 20, 30], [1.5, 2.0, 3.0])


def test_a_line_after_a_progress_bar(read):
    assert read("epoch 1:  50%|###\r" + simple_validation(5, 1.0)).updates == [5]


def test_a_bar_of_the_validation_does_not_hide_its_scores(read):
    """tqdm's bar begins as the line with the scores does, and is wiped out by spaces."""
    bar = "epoch 001 | valid on 'valid' subset:  50%|##   | 1/2 [00:00<00:00]"
    for end in ("\n", "\r\n"):  # as in a file, and as script writes it
        text = f"\r{bar}\r{' ' * 70}\r{simple_validation(7, 12.5)}{end}"
        assert read(text + simple_validation(14, 13.0) + end) == Curve([7, 14], [12.5, 13.0])


def test_other_metrics(read):
    assert read(simple_validation(5, 1.0), metric="ppl").scores == [30.78]


@pytest.mark.parametrize(
    "text, message",
    [
        (TRAINING, "no validation of 'valid'"),
        (simple_validation(5, None), "1 validations, none with bleu: train with --eval-bleu"),
        ("", "empty"),
    ],
)
def test_logs_without_scores(read, text, message):
    with pytest.raises(ValueError, match=f"train.log: .*{message}"):
        read(text)


def test_best_is_the_earliest_of_equals_and_no_nan():
    assert Curve([1, 2, 3], [1.0, 2.0, 2.0]).best() == 1
    assert Curve([1, 2, 3], [math.nan, 1.0, math.nan]).best() == 1


def test_the_effort_of_all_starts_is_added(tmp_path):
    path = tmp_path / "train.log"
    starts = [(50, 71), (100, 130), (None, 140)], [(50, 60), (120, 95)]
    lines = []
    for start in starts:
        for updates, wall in start:
            end = f", num_updates={updates}, train_wall=7, wall={wall}"
            lines.append(f"| INFO | train_inner | epoch 001: 9 / 99 loss=1{end}")
    path.write_text("\n".join(lines).replace("num_updates=None, ", ""))
    assert training_effort(str(path)) == {"training_seconds": "235", "updates": "120"}
    path.write_text("| train | epoch 001 | num_updates 63 | train_wall 9 | wall 12\n")
    assert training_effort(str(path)) == {"training_seconds": "12", "updates": "63"}
    # Killed between its last checkpoint and the line with the time.
    path.write_text(simple_validation(6, 1.0) + "\n")
    assert training_effort(str(path)) == {"training_seconds": "", "updates": "6"}
    bars = [f"epoch 001: 9/99, num_updates={u}, wall={w}" for u, w in ((8, 5), (9, 6))]
    path.write_text("\r".join([*bars, "| train | num_updates 10 | wall 7\n"]))
    assert training_effort(str(path)) == {"training_seconds": "7", "updates": "10"}
    path.write_text("Traceback: wall paper\n")
    with pytest.raises(ValueError, match="no update in it"):
        training_effort(str(path))


def test_threads_of_all_starts(tmp_path):
    path = tmp_path / "log"
    start = "$ OMP_NUM_THREADS={} fairseq-train x\n| train | wall 3 | num_updates 5\n"
    path.write_text(start.format(1) * 2)
    assert training_effort(str(path))["threads"] == "1"
    path.write_text(start.format(1) + start.format(2))
    assert training_effort(str(path))["threads"] == "1+2"


def test_logs_of_format_json(tmp_path):
    path = tmp_path / "log"
    head = "2024-01-01 00:00:00 | INFO |"
    lines = [
        'train_inner | {"epoch": 1, "num_updates": "50", "train_wall": "9", "wall": "7"}',
        'valid | {"epoch": 1, "valid_loss": "8", "valid_bleu": "3.5", "valid_num_updates": "80"}',
        'train | {"train_num_updates": "80", "train_train_wall": "9", "train_wall": "21"}',
        'train_inner | {"epoch": 2, "num_updates": "90", "train_wall": "1", "wall": "4"}',
    ]
    path.write_text("".join(f"{head} {line}\n" for line in lines))
    assert training_effort(str(path)) == {"training_seconds": "25", "updates": "90"}
    assert read_curve(str(path)).scores == [3.5]
