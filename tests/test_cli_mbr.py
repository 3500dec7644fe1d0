"""Samples of a trained model to one hypothesis a sentence: train, sample, mbr, score."""

import pytest

from fairseq_eisl.common.rows import read_rows
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.readers.generation_log import read_generation_log
from fairseq_eisl.evaluation.readers.sample_log import read_samples
from tests.test_cli_repeats import ok
from tests.toy import CPU, USER_DIR, run_cli, train

SAMPLING = ["--sampling", "--beam", "8", "--nbest", "8", "--remove-bpe"]


@pytest.fixture(scope="module")
def logs(toy, tmp_path_factory):
    """Of two seeds, and the reference."""
    folder = tmp_path_factory.mktemp("mbr")
    task = ["--task", "noisy_translation"]
    short = ["--criterion", "label_smoothed_cross_entropy", "--max-epoch", "6"]
    ok(train(toy.bin, folder, *task, *short, "--no-epoch-checkpoints"))
    generate = [
        *("fairseq-generate", str(toy.bin), "--user-dir", USER_DIR, *task, *CPU, *SAMPLING),
        *("--path", str(folder / "checkpoint_best.pt"), "--required-batch-size-multiple", "1"),
    ]
    for seed in "12":
        (folder / f"seed{seed}.out").write_text(ok(run_cli(*generate, "--seed", seed)))
    words = (toy.raw / "test.de").read_text().replace("@@ ", "")
    (folder / "ref").write_text(words)
    return folder


@pytest.mark.parametrize("utility", ["sentence_bleu", "chrf"])
def test_train_sample_choose_score(logs, monkeypatch, capsys, utility):
    monkeypatch.chdir(logs)
    assert {len(each.texts) for each in read_samples("seed1.out")} == {8}
    out = f"{utility}.out"
    given = ["--log", "seed1.out", "seed2.out", "--utility", utility, "--out", out]
    assert main(["mbr", *given]) == 0
    assert "10 sentences of 16 samples" in capsys.readouterr().out
    pools = zip(*(read_samples(f"seed{seed}.out") for seed in "12"))
    chosen = read_generation_log(out).hypotheses
    assert len(chosen) == 10
    for text, (one, two) in zip(chosen, pools):
        assert text in one.texts + two.texts
    rows = ["--rows", "rows.csv", "--set", f"system={utility}"]
    assert main(["score", "--log", out, "--reference", "ref", *rows]) == 0
    assert main(["score", "--log", "seed1.out", "--reference", "ref", *rows]) == 0
    ours, best = read_rows("rows.csv")[-2:]
    assert ours["sentences"] == "10" and float(ours["chrf"]) > 0
    systems = ["--system", "sample=seed1.out", f"mbr={out}"]
    assert main(["significance", "--reference", "ref", *systems, "-n", "20"]) == 0
