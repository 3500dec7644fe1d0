"""The commands, as users call them."""

import shutil

import pytest

from fairseq_eisl.analyses.command import main
from fairseq_eisl.common.rows import read_rows
from fairseq_eisl.evaluation.cli.main import main as evaluate
from tests.toy import train as toy_train

pytest.importorskip("matplotlib", reason="pictures need matplotlib")

SMALL = ["--sentences", "20", "--batch", "10"]
COMMANDS = {
    "sensitivity": ["--noise", "shuffle:2", "shuffle:all", "repeat:0.5", "--noise-seed", "1", "2"],
    "exact": ["--untrained", "--noise", "repeat:0.5"],
    "selection": ["--untrained", "--noise", "shuffle:3"],
    "gradients": ["--noise", "none", "shuffle:3"],
}
ROWS = {"sensitivity": 3 * 2 * 3, "exact": 3, "selection": 2 * 3, "gradients": 2 * 2 * 5}
# What must be the same at the second time, seconds aside.
COLUMN = {"sensitivity": "share", "exact": "exact", "selection": "mass", "gradients": "share"}


def words_of(name, checkpoints):
    names = [f"early={checkpoints.early}", str(checkpoints.late)]
    models = names[1:] if name == "sensitivity" else names
    return [name, "--checkpoint", *models, "--data", str(checkpoints.data), *SMALL, *COMMANDS[name]]


@pytest.mark.parametrize("name", COMMANDS)
def test_a_command_gives_rows_and_a_figure_that_rows_give_again(
    name, checkpoints, tmp_path, capsys
):
    rows, out = tmp_path / "rows.csv", tmp_path / "figure.svg"
    words = [*words_of(name, checkpoints), "--rows", str(rows), "--out", str(out)]
    assert main([*words, "--title", "Toy copies"]) == 0
    printed = capsys.readouterr().out
    assert printed.splitlines()[-1] == str(out) and "checkpoint40" in printed
    found = read_rows(str(rows))
    assert len(found) == ROWS[name]
    for row in found:
        assert row["analysis"] == name and row["subset"] == "valid" and row["sentences"] == "20"
        assert row["command"].startswith(f"python -m fairseq_eisl.analyses {name} --checkpoint")
        assert row["torch"] and row["data"] == "bin"
    if name != "sensitivity":
        models = list(dict.fromkeys(row["checkpoint"] for row in found))
        first = ["untrained"] if "--untrained" in words else []
        assert models == [*first, "early", "checkpoint40"]
        updates = [int(row["updates"]) for row in found]
        assert updates == sorted(updates) and updates[-1] == 2 * int(found[-1]["updates"]) // 2
    again = tmp_path / "again.svg"
    evaluate(["plot", "--kind", name, "--rows", str(rows), "--out", str(again)])
    assert again.read_bytes() == out.read_bytes()
    assert main([*words_of(name, checkpoints), "--rows", str(rows)]) == 0  # appended, repeatable
    twice = read_rows(str(rows))
    assert len(twice) == 2 * len(found)
    values = [row[COLUMN[name]] for row in twice]
    assert values[: len(found)] == values[len(found) :]


def test_what_a_training_began_with_is_its_update_0(checkpoints, tmp_path, capsys, caplog):
    """As for EISL after CE, whose updates are counted anew."""
    rows = tmp_path / "rows.csv"
    words = [
        "exact",
        "--checkpoint",
        str(checkpoints.late),
        "--data",
        str(checkpoints.data),
        *SMALL,
    ]
    assert main([*words, "--start", f"CE={checkpoints.early}", "--rows", str(rows)]) == 0
    found = read_rows(str(rows))
    assert [(row["checkpoint"], int(row["updates"]) > 0) for row in found] == [
        ("CE", False),
        ("checkpoint40", True),
    ]
    assert "no effect" not in caplog.text
    with pytest.raises(SystemExit):
        main([*words, "--start", str(checkpoints.early), "--untrained"])
    assert "--start, --untrained: one of them" in capsys.readouterr().err


def test_training_brings_the_selection_to_the_true_places(checkpoints, tmp_path):
    """On the corpus of copies, where the true place of every word is known."""
    rows = tmp_path / "rows.csv"
    assert main([*words_of("selection", checkpoints), "--ngram", "1", "--rows", str(rows)]) == 0
    found = {row["checkpoint"]: row for row in read_rows(str(rows))}
    agreement = [float(found[name]["agreement"]) for name in ("untrained", "checkpoint40")]
    assert agreement[0] < 0.7 < agreement[1]
    assert float(found["checkpoint40"]["mass"]) > 2 * float(found["checkpoint40"]["chance"])


WRONG = {
    "no checkpoint": ("exact --checkpoint no.pt", "--checkpoint no.pt: there is no such file"),
    "no start": ("exact --checkpoint {late} --start a=no.pt", "--start a=no.pt: there is no such"),
    "no noise": ("exact --checkpoint {late} --noise repeat", "--noise: 'repeat'"),
    "a mixture": (
        "sensitivity --checkpoint {late} --noise repeat:0.1,blank:0.1 --out x.png",
        "not one type:level",
    ),
    "orders": ("exact --checkpoint {late} --ngram one", "--ngram one: whole numbers"),
    "two orders": ("selection --checkpoint {late} --ngram 1,2", "--ngram 1,2: one order"),
    "no split": ("exact --checkpoint {late} --data {data} --subset dev", "--subset dev: "),
    "a picture": ("exact --checkpoint {late} --out x.pdf", "--out x.pdf: a picture ends in"),
    "two models": ("sensitivity --checkpoint {late} {late}", "one model at a time"),
    "sentences": ("exact --checkpoint {late} --sentences 0", "a number of 1 or more"),
    "one name": ("exact --checkpoint {late} {late}", "two models are called checkpoint40; write"),
    "a name twice": ("exact --checkpoint a={early} a={late}", "a={late}: two models are called a"),
    "no training": (
        "exact --untrained --checkpoint untrained={late}",
        "two models are called untrained",
    ),
    "a long order": (
        "selection --checkpoint {late} --data {data} --ngram 1 30 --example 0 --out x.png",
        "--example 0: the pair has",
    ),
    "example": ("selection --checkpoint {late} --data {data} --example 99", "--example 99: "),
    "temperature": ("exact --checkpoint {late} --gumbel-temperature 0", "temperature must be"),
    "no recipe": ("ngrams no.yaml --runs x", "no.yaml: there is no such file"),
}


@pytest.mark.parametrize("name", WRONG)
def test_what_is_wrong_is_one_line(name, checkpoints, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    text, message = WRONG[name]
    places = {"late": checkpoints.late, "early": checkpoints.early, "data": checkpoints.data}
    words, message = text.format(**places).split(), message.format(**places)
    with pytest.raises(SystemExit) as end:
        main(words)
    said = capsys.readouterr().err.splitlines()
    assert end.value.code == 2 and message in said[-1]
    assert said[-1].startswith("python -m fairseq_eisl.analyses") and not list(tmp_path.iterdir())


def test_data_of_another_training_are_one_line(checkpoints, tmp_path, capsys):
    shutil.copytree(checkpoints.data, tmp_path / "other")
    for path in (tmp_path / "other").glob("dict.*"):
        path.write_text("".join(path.read_text().splitlines(keepends=True)[:-3]))
    words = ["exact", "--checkpoint", str(checkpoints.late), "--data", str(tmp_path / "other")]
    with pytest.raises(SystemExit):
        main(words)
    (said,) = [line for line in capsys.readouterr().err.splitlines() if "error" in line]
    assert f"--data {tmp_path / 'other'}: its dictionary is not the one of the training" in said


def test_a_start_may_have_the_name_of_a_checkpoint(checkpoints, tmp_path, capsys):
    """As the best of one training, and of that which begins with it, have."""
    start = shutil.copy(checkpoints.late, tmp_path / "checkpoint40.pt")
    words = ["exact", "--start", str(start), "--checkpoint", str(checkpoints.late), *SMALL]
    assert main([*words, "--data", str(checkpoints.data), "--sentences", "2"]) == 0
    assert capsys.readouterr().out.count("checkpoint40") == 2


def test_the_models_of_other_kinds_are_refused(toy, tmp_path, capsys):
    from fairseq_eisl.analyses.trained import load_trained

    flags = ["--criterion", "nat_loss", "--max-update", "1", "--disable-validation"]
    code, output = toy_train(toy.bin, tmp_path, *flags, arch="nonautoregressive_transformer")
    assert code == 0, output
    with pytest.raises(ValueError, match="of autoregressive encoder-decoders; .* is none"):
        load_trained(str(tmp_path / "checkpoint_last.pt"))


def test_help_names_every_command(capsys):
    with pytest.raises(SystemExit) as end:
        main(["--help"])
    said = capsys.readouterr().out
    assert end.value.code == 0 and said.startswith("usage: python -m fairseq_eisl.analyses")
    assert all(name in said for name in (*COMMANDS, "ngrams"))


def test_a_stock_task_and_another_architecture(toy, tmp_path):
    """An LSTM of fairseq's own task, which knows nothing of noise."""
    train_flags = ["--task", "translation", "--criterion", "cross_entropy", "--max-update", "2"]
    code, output = toy_train(toy.bin, tmp_path, *train_flags, "--disable-validation", arch="lstm")
    assert code == 0, output
    checkpoint = str(tmp_path / "checkpoint_last.pt")
    for name, rows in (("exact", 1), ("selection", 2), ("gradients", 2 * 5)):
        path = tmp_path / f"{name}.csv"
        words = [name, "--checkpoint", checkpoint, "--sentences", "6", "--batch", "3"]
        noise = ["repeat:0.5"] if name != "gradients" else ["repeat:0.5", "blank:0.5"]
        assert main([*words, "--noise", *noise, "--rows", str(path)]) == 0
        assert len(read_rows(str(path))) == rows
