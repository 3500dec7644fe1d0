"""``python -m fairseq_eisl.checkpoints average``, and stock fairseq on what it writes."""

import os

import pytest
import torch

from fairseq_eisl.checkpoints import last_checkpoints, read_checkpoint
from fairseq_eisl.checkpoints.command import main
from tests.toy import CPU, ROOT, USER_DIR, hypotheses, run_cli, train

from .fairseq_checkpoints import place, save


@pytest.fixture
def three(folder):
    for i in (1, 2, 3):
        save(f"checkpoint{i}.pt", {"w": torch.tensor([float(i)])}, 1000 * i)
        save(f"checkpoint.best_bleu_{i}.0000.pt", {"w": torch.tensor([10.0 * i])})
    save("other.pt", {"v": torch.ones(1)})
    (folder / "text.pt").write_text("x")
    (folder / "empty").mkdir()
    return folder


@pytest.mark.parametrize(
    "flags, value, last",
    [
        ("--inputs checkpoint3.pt checkpoint1.pt", 2.0, 1),
        ("--inputs checkpoint3.pt --inputs checkpoint2.pt", 2.5, 2),
        ("--folder . --last 2", 2.5, 3),
        ("--folder . --last 2 --upper-bound 2", 1.5, 2),
        ("--folder . --best 2", 25.0, None),
        ("--folder . --best 2 --minimize", 15.0, None),
    ],
)
def test_the_command(three, capsys, flags, value, last):
    assert main(["average", *flags.split(), "--output", "new/out.pt"]) == 0
    *shown, final = capsys.readouterr().out.splitlines()
    state = read_checkpoint("new/out.pt")
    assert state["model"]["w"].tolist() == [value]
    assert len(shown) == 2 and final == "average of 2: new/out.pt"
    assert [line.split(" (")[0] for line in shown] == [
        entry["file"] for entry in state["extra_state"]["averaged_from"]
    ]
    if last is not None:
        assert shown[-1].endswith(f"checkpoint{last}.pt ({last},000 updates)")


@pytest.mark.parametrize(
    "flags, message",
    [
        ("", "one of the arguments --inputs --folder is required"),
        ("--inputs", "--inputs: expected at least one"),
        ("--inputs none.pt", "--inputs none.pt: No such file"),
        ("--inputs empty", "--inputs empty: Is a directory"),
        ("--inputs text.pt", "--inputs text.pt: no file that torch.load can read"),
        ("--inputs checkpoint1.pt other.pt", "--inputs other.pt: no parameter w, checkpoint1.pt"),
        ("--inputs other.pt other.pt", "--inputs other.pt: it would count twice"),
        ("--inputs other.pt --folder .", "--folder: not allowed with argument --inputs"),
        ("--inputs other.pt --last 1", "--last: it has no meaning without --folder"),
        ("--folder .", "--folder .: how many of it? --last K or --best K"),
        ("--folder none --last 1", "--folder none: No such file"),
        ("--folder text.pt --last 1", "--folder text.pt: Not a directory"),
        ("--folder empty --last 1", "--folder empty: 1 checkpoints checkpointN.pt are needed"),
        ("--folder . --last 4", "there is 3: checkpoint1.pt, checkpoint2.pt, checkpoint3.pt"),
        ("--folder . --last 0", "--last: a number of 1 or more is needed, not '0'"),
        ("--folder . --last 1 --best 1", "--best: not allowed with argument --last"),
        ("--folder . --last 1 --metric bleu", "--metric: it has no meaning without --best"),
        ("--folder . --best 1 --upper-bound 2", "--upper-bound: it has no meaning without --last"),
        ("--folder . --best 1 --by-updates", "--by-updates: it has no meaning without --last"),
        ("--folder . --best 1 --metric ppl", "--folder .: no checkpoints by the metric 'ppl'"),
        ("--folder . --last 2 --output checkpoint3.pt", "--output checkpoint3.pt: it is one of"),
        ("--folder . --last 2 --output empty", "--output empty: not a regular file"),
        ("--folder . --last 2 --output text.pt/x.pt", "--output text.pt/x.pt: "),
    ],
)
def test_errors_are_one_line_that_names_flag_and_value(three, capsys, flags, message):
    before = sorted(os.listdir("."))
    with pytest.raises(SystemExit) as stop:
        main(["average", "--output", "out.pt", *flags.split()])
    assert stop.value.code == 2
    error = capsys.readouterr().err
    assert message in error and error.count("\n") == 1 and error.endswith("\n")
    assert sorted(os.listdir(".")) == before


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), RuntimeError("full\nx")])
def test_whole_or_not_at_all(three, monkeypatch, capsys, error):
    (three / "out.pt").write_text("the old one")
    before = sorted(os.listdir("."))

    def half(state, f):
        f.write(b"a part")
        raise error

    monkeypatch.setattr(torch, "save", half)
    with pytest.raises(SystemExit):
        main(["average", "--folder", ".", "--last", "2", "--output", "out.pt"])
    reason = "No space left on device" if isinstance(error, OSError) else "full"
    assert capsys.readouterr().err.endswith(f"--output out.pt: {reason}\n")
    assert (three / "out.pt").read_text() == "the old one" and sorted(os.listdir(".")) == before


def test_fairseq_is_not_imported(folder, fresh):
    save("1.pt", {"w": torch.ones(1)})
    code = """
import sys
from fairseq_eisl.checkpoints.command import main
main(["average", "--inputs", "1.pt", "--output", "out.pt"])
assert not [name for name in sys.modules if name.split(".")[0] == "fairseq"]
"""
    status, output = fresh(code, path=[ROOT], cwd=folder)
    assert status == 0 and output.endswith("average of 1: out.pt\n"), output


def test_fairseq_generates_from_an_average_and_trains_on(toy, tmp_path, monkeypatch, capsys):
    """Two epochs of stock training, with checkpoints by epoch, by update and by BLEU."""

    def ok(result):
        assert result[0] == 0, result[1][-3000:]
        return result[1]

    task = ["--task", "translation", "--criterion", "cross_entropy"]
    kept = ["--save-interval-updates", "3", "--keep-best-checkpoints", "2"]
    ok(train(toy.bin, tmp_path / "save", *task, "--max-epoch", "2", *kept))
    out = str(tmp_path / "out.pt")
    for how in (["--last", "2", "--by-updates"], ["--best", "2"], ["--last", "2"]):
        assert main(["average", "--folder", str(tmp_path / "save"), *how, "--output", out]) == 0
        assert capsys.readouterr().out.endswith(f"average of 2: {out}\n")
    first, second, mean = (
        read_checkpoint(path)["model"]
        for path in (*last_checkpoints(str(tmp_path / "save"), 2), out)
    )
    for name, weight in mean.items():
        expected = ((first[name].double() + second[name].double()) / 2).float()
        assert torch.equal(weight, expected), name
    embeddings = [name for name in mean if name.endswith("embed_tokens.weight")]
    assert len(embeddings) == 2 and len({place(mean[name]) for name in embeddings}) == 1
    generated = ok(
        run_cli(
            *("fairseq-generate", toy.bin, "--user-dir", USER_DIR, "--path", out, *CPU),
            *("--beam", "1", "--max-len-b", "10", "--required-batch-size-multiple", "1"),
        )
    )
    assert len(hypotheses(generated)) == 10
    resets = [f"--reset-{part}" for part in ("optimizer", "dataloader", "meters", "lr-scheduler")]
    frozen = ["--lr", "0", "--max-update", "1"]
    output = ok(train(toy.bin, tmp_path / "on", *task, "--restore-file", out, *resets, *frozen))
    assert f"Loaded checkpoint {out}" in output
    after = read_checkpoint(str(tmp_path / "on" / "checkpoint_last.pt"))["model"]
    assert all(torch.equal(after[name], mean[name]) for name in mean)


def test_updates_of_a_checkpoint(three, capsys):
    assert main(["updates", "checkpoint2.pt"]) == 0
    assert capsys.readouterr().out == "2000\n"
    for name, message in (("nowhere.pt", "No such file"), ("text.pt", "no file that torch.load")):
        with pytest.raises(SystemExit):
            main(["updates", name])
        assert message in capsys.readouterr().err
