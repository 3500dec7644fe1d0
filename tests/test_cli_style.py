"""Style transfer through the stock commands: trained, resumed, rewritten, typed, judged."""

import json
import re

import pytest

from tests.criterions.style import SMALL, TASK, preprocess, write_styles
from tests.test_cli_repeats import LOG, ok, updates
from tests.toy import CPU, USER_DIR, hypotheses, run_cli

RUN = [
    *(*CPU, *TASK, "--optimizer", "adam", "--lr", "0.01", "--batch-size", "16", "--clip-norm", "5"),
    *(*LOG, "--no-epoch-checkpoints", "--required-batch-size-multiple", "1"),
]
TRANSFER = [
    *("--arch", "style_transfer", *SMALL, "--criterion", "style_transfer", "--eisl-factor", "0.5"),
    *("--pretrain-updates", "6", "--soft-temperature-interval", "5", "--accuracy-goal", "50"),
    *("--best-checkpoint-metric", "transfer_score", "--maximize-best-checkpoint-metric"),
    *("--dropout", "0.1", "--max-update", "20"),
]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """Data, and a model that was trained for some updates, with its log."""
    folder = tmp_path_factory.mktemp("style")
    write_styles(folder / "raw")
    ok(preprocess(folder / "raw", folder / "bin"))
    saving = ["--save-interval-updates", "8", "--save-dir", str(folder / "model")]
    return folder, ok(run_cli("fairseq-train", folder / "bin", "--user-dir", USER_DIR, *RUN,
                              *TRANSFER, *saving))  # fmt: skip


def test_it_trains_and_validates(trained):
    _, log = trained
    found = updates(log)
    assert len(found) == 20
    assert "style" not in found[6] and {"style", "eisl", "fluency"} <= set(found[7])
    *_, last = map(json.loads, re.findall(r"\| valid \| (\{.*\})$", log, flags=re.M))
    assert last["valid_num_updates"] == "20"
    for name in ("accuracy", "bleu", "transfer_score", "nll_loss", "eisl", "style", "fluency"):
        assert re.fullmatch(r"-?[\d.]+", last[f"valid_{name}"]), (name, last)


def test_resumed_it_goes_on_as_if_nothing_had_been(trained, tmp_path):
    folder, log = trained
    start = ["--restore-file", str(folder / "model/checkpoint_1_8.pt"), "--save-dir", str(tmp_path)]
    again = updates(ok(run_cli("fairseq-train", folder / "bin", "--user-dir", USER_DIR, *RUN,
                               *TRANSFER, *start)))  # fmt: skip
    expected = updates(log)
    assert list(again) == list(range(9, 21))
    for update, line in again.items():
        assert line["loss"] == expected[update]["loss"], update


def generate(folder, *flags, name="fairseq-generate", stdin=""):
    path = ["--path", str(folder / "model/checkpoint_best.pt"), "--beam", "2"]
    return run_cli(name, folder / "bin", "--user-dir", USER_DIR, "--cpu", *TASK, *path, *flags,
                   stdin=stdin)  # fmt: skip


def test_the_test_set_is_rewritten_in_its_order(trained):
    folder, _ = trained
    flags = ["--required-batch-size-multiple", "1", "--batch-size", "4", "--num-workers", "0"]
    output = ok(generate(folder, *flags))
    texts = dict(re.findall(r"^S-(\d+)\t(.*)$", output, flags=re.M))
    lines = [line.strip() for s in ("bad", "good") for line in (folder / f"raw/test.{s}").open()]
    assert [texts[str(i)] for i in range(13)] == lines and len(hypotheses(output)) == 13
    own = ok(generate(folder, *flags, "--transfer-to", "own"))
    assert hypotheses(own) != hypotheses(output)


def test_a_typed_line_is_rewritten(trained):
    folder, _ = trained
    found = {
        style: hypotheses(
            ok(
                generate(
                    folder,
                    *("--transfer-to", style),
                    name="fairseq-interactive",
                    stdin="the noun1 is great\n",
                )
            )
        )
        for style in ("bad", "good", "other")
    }
    assert all(len(lines) == 1 for lines in found.values())
    assert found["other"] in (found["bad"], found["good"])


def test_the_judges_are_trained_and_judge(trained, tmp_path):
    from fairseq_eisl.evaluation.metrics.accuracy import accuracy
    from fairseq_eisl.evaluation.metrics.perplexity import perplexity

    folder, _ = trained
    where = ["--save-dir", str(tmp_path / "classifier"), "--max-epoch", "12"]
    small = ["--embed-dim", "12", "--classifier-channels", "8", "--dropout", "0"]
    output = ok(run_cli("fairseq-train", folder / "bin", "--user-dir", USER_DIR, *RUN,
                        *("--arch", "style_classifier", "--criterion", "style_classification"),
                        *small, *where))  # fmt: skip
    assert "valid_classified" in output
    sentences = [line for s in ("bad", "good") for line in (folder / f"raw/test.{s}").open()]
    own, path = ["bad"] * 6 + ["good"] * 7, str(tmp_path / "classifier/checkpoint_best.pt")
    found = accuracy(sentences, own, path)
    assert found.score == 100 and "styles:bad,good" in found.signature
    assert accuracy(sentences, own[::-1], path).score < 50
    with pytest.raises(ValueError, match="--wanted-styles has 2 lines for 13 hypotheses"):
        accuracy(sentences, own[:2], path)
    with pytest.raises(
        ValueError, match="'nice' is no style of the classifier; it knows bad, good"
    ):
        accuracy(sentences, ["nice"] * 13, path)
    with pytest.raises(ValueError, match="no classifier .* but StyleTransferModel"):
        accuracy(sentences, own, str(folder / "model/checkpoint_best.pt"))
    with pytest.raises(ValueError, match="no language model but StyleClassifierModel"):
        perplexity(sentences, path)


def test_perplexity_is_that_of_the_language_models_own_validation(trained, tmp_path):
    from fairseq_eisl.evaluation.metrics.perplexity import perplexity

    folder, _ = trained
    for split in ("train", "valid"):
        text = "".join((folder / f"raw/{split}.{s}").read_text() for s in ("bad", "good"))
        (tmp_path / f"{split}.txt").write_text(text)
    ok(run_cli("fairseq-preprocess", "--only-source", "--destdir", tmp_path / "bin",
               *("--trainpref", tmp_path / "train.txt", "--validpref", tmp_path / "valid.txt"),
               *("--srcdict", folder / "bin/dict.good.txt")))  # fmt: skip
    output = ok(run_cli(
        "fairseq-train", tmp_path / "bin", "--user-dir", USER_DIR, *CPU, "--task",
        *("language_modeling", "--arch", "lstm_lm", "--decoder-embed-dim", "8"),
        *("--decoder-hidden-size", "8", "--decoder-out-embed-dim", "8", "--decoder-layers", "1"),
        *("--decoder-attention", "0", "--sample-break-mode", "eos", "--tokens-per-sample", "32"),
        *("--optimizer", "adam", "--lr", "0.01", "--max-tokens", "200", "--max-epoch", "3"),
        *("--save-dir", tmp_path / "lm", "--required-batch-size-multiple", "1"),
    ))  # fmt: skip
    told = float(re.findall(r"valid on 'valid' subset.*?\| ppl ([\d.]+)", output)[-1])
    lines = (tmp_path / "valid.txt").read_text().splitlines()
    found = perplexity(lines, str(tmp_path / "lm/checkpoint_last.pt"))
    assert found.score == pytest.approx(told, rel=2e-3) and "lstm_lm" in found.signature
    shuffled = [" ".join(line.split()[::-1]) for line in lines]
    assert perplexity(shuffled, str(tmp_path / "lm/checkpoint_last.pt")).score > found.score
    with (tmp_path / "bin/dict.txt").open("a") as f:  # preprocessed again, with more words
        f.write("".join(f"new{i} 1\n" for i in range(20)))
    with pytest.raises(ValueError) as error:
        perplexity(lines, str(tmp_path / "lm/checkpoint_last.pt"))
    assert str(error.value) == (
        f"{tmp_path}/lm/checkpoint_last.pt: its weights do not fit the dictionary in "
        f"{tmp_path}/bin, which has changed since"
    )


def test_wrong_data_end_the_training_with_one_line(trained, tmp_path):
    folder, _ = trained
    code, output = run_cli("fairseq-train", folder / "raw", "--user-dir", USER_DIR, *RUN, *TRANSFER,
                           *("--save-dir", tmp_path))  # fmt: skip
    assert code and "there are no files SPLIT.A-B.A.idx of two styles A and B" in output
