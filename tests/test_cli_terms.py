"""NAT-REG and hints through fairseq-train: a toy teacher, then students with every term."""

import re

import pytest
import torch

from tests.test_cli_repeats import LOG, ok, updates
from tests.test_cli_rivals import print_parameters
from tests.toy import (
    CPU,
    LANGUAGES,
    NAT_ARCHS,
    NAT_TASK,
    TRAINING,
    USER_DIR,
    hypotheses,
    run_cli,
    start_two_ranks,
    train,
)

NAT, CMLM, INAT = (
    *("nonautoregressive_transformer", "cmlm_transformer"),
    "iterative_nonautoregressive_transformer",
)
TERMS = ("nat_reg", "hint_hidden", "hint_align")
FACTORS = ["--nat-reg-factor", "2", "--hint-hidden-factor", "5", "--hint-align-factor", "1"]
STUDENTS = {
    "eisl": (NAT, ["--ngram", "1,2"]),
    "bag_of_ngrams": (CMLM, ["--bag-factor", "0.9", "--ce-factor", "0.1"]),
    "oaxe": (INAT, ["--oaxe-skip", "0.01"]),
    "token_weighted": (NAT, ["--ce-factor", "0.1"]),
}
each_student = pytest.mark.parametrize("criterion", STUDENTS)


@pytest.fixture(scope="module")
def teacher(toy, tmp_path_factory):
    """Of a few updates of cross entropy on the same data."""
    folder = tmp_path_factory.mktemp("teacher")
    short = ["--criterion", "label_smoothed_cross_entropy", "--max-update", "6"]
    ok(train(toy.bin, folder, "--task", "translation", *short, "--no-epoch-checkpoints"))
    return folder / "checkpoint_best.pt"


def flags_of(criterion, teacher):
    noise = ["--target-noise", "repeat:0.3", "--dropout", "0.1"]
    given = [*FACTORS, "--hint-teacher", str(teacher), *noise, *LOG]
    return ["--criterion", criterion, *STUDENTS[criterion][1], *given]


@each_student
def test_a_student_trains_resumes_and_translates(toy, teacher, tmp_path, criterion):
    arch, flags = STUDENTS[criterion][0], flags_of(criterion, teacher)
    best = ["--best-checkpoint-metric", "nat_reg"]
    saving = [*best, "--save-interval-updates", "5", "--max-epoch", "1", "--no-epoch-checkpoints"]
    output = ok(train(toy.bin, tmp_path / "whole", *flags, *saving, arch=arch))
    expected = updates(output)
    assert len(expected) > 8 and "no effect" not in output
    for name in (*TERMS, criterion):
        assert name in expected[1] and f"valid_{name}" in output, name
    path = tmp_path / "whole/checkpoint_1_5.pt"
    state = torch.load(path, weights_only=False)
    assert not state.get("criterion")  # the teacher is in no checkpoint
    assert not [name for name in state["model"] if "teacher" in name]
    rest = [*best, "--restore-file", str(path), "--max-epoch", "1", "--no-save"]
    found = updates(ok(train(toy.bin, tmp_path / "rest", *flags, *rest, arch=arch)))
    assert list(found) == list(range(6, max(expected) + 1))
    for update, line in found.items():
        assert line["loss"] == expected[update]["loss"], update
    teacher_path = teacher.rename(teacher.with_name("away.pt"))
    try:  # translation does not ask for the teacher
        command = ["fairseq-generate", str(toy.bin), "--user-dir", USER_DIR, *NAT_TASK, *CPU]
        decoding = ["--iter-decode-max-iter", "0", "--required-batch-size-multiple", "1"]
        output = ok(run_cli(*command, "--path", str(path), "--beam", "1", *decoding))
    finally:
        teacher_path.rename(teacher)
    assert len(hypotheses(output)) == 10


def test_two_workers_have_one_model(toy, teacher, tmp_path):
    arch, flags = STUDENTS["oaxe"][0], flags_of("oaxe", teacher)
    flags = [
        *(str(toy.bin), "--user-dir", USER_DIR, *TRAINING, *LANGUAGES, *NAT_TASK, *flags),
        *("--arch", arch, *NAT_ARCHS[arch], "--max-epoch", "1", "--no-save"),
        *("--save-dir", str(tmp_path)),
    ]
    outputs = [ok(rank.wait(240)) for rank in start_two_ranks(*flags, before=print_parameters)]
    totals = [set(re.findall(r"PARAMETERS (\S+)", output)) for output in outputs]
    assert len(totals[0]) == 1 and totals[0] == totals[1]


def test_a_teacher_that_does_not_fit_is_one_line_of_the_error(toy, teacher, tmp_path):
    flags = flags_of("oaxe", teacher)
    deep = ["--decoder-layers", "2", "--max-epoch", "1"]
    code, output = train(toy.bin, tmp_path, *flags, *deep, arch=INAT)
    assert code != 0
    assert (
        f"ValueError: --hint-teacher {teacher} has 1 decoder layers, and the model, where it "
        "predicts words, 2: a teacher with as many is needed" in output
    )
