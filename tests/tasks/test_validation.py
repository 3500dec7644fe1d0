"""A validation is the same in every run and for every batch, and says how it decodes."""

import json
import re

import pytest
import torch
from fairseq import tasks

from tests.criterions.conftest import SENTENCES
from tests.toy import NAT_ARCHS, parse, setup, train

INAT, LEV = "iterative_nonautoregressive_transformer", "levenshtein_transformer"
CASES = {arch: (arch, []) for arch in NAT_ARCHS}
CASES["iNAT, sampled"] = (INAT, ["--stochastic-approx", "--train-step", "3", "--dae-ratio", "1"])
CASES["deletions, sampled"] = (LEV, ["--sampling-for-deletion"])


def validate(made, samples, seed):
    """Loss and BLEU's counts, summed over batches."""
    torch.manual_seed(seed)
    made.criterion.eval()  # as the trainer does
    total = {}
    for sample in samples:
        loss, size, log = made.task.valid_step(sample, made.model, made.criterion)
        numbers = {k: v for k, v in log.items() if not k.startswith("_bleu")}
        for name, value in {**numbers, "loss": loss, "sample_size": size}.items():
            total[name] = total.get(name, 0) + float(value)
    return total


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("position", ["gumbel", "softmax"])
def test_the_loss_depends_neither_on_the_run_nor_on_batches(toy, case, position):
    arch, flags = CASES[case]
    # Flat, so that samples differ; but not where a rounding error would decide.
    scale = 1.0 if "sampled" in case else 2.0
    made = setup(toy.bin, *flags, arch=arch, scale=scale, position_selection=position)
    if arch == LEV:
        torch.nn.init.normal_(made.model.decoder.embed_word_del.weight)  # fairseq starts at zero
    sentences = SENTENCES[:7]
    whole = made.sample(sentences)
    expected = validate(made, [whole], seed=1)
    assert validate(made, [made.sample(sentences)], seed=2) == expected
    split = [made.sample([s], ids=[i]) for i, s in enumerate(sentences)]
    assert validate(made, split, seed=3) == pytest.approx(expected, rel=1e-4)


@pytest.mark.parametrize("case", [INAT, "deletions, sampled"])
def test_training_keeps_its_noise(toy, case):
    arch, flags = CASES[case]
    made = setup(toy.bin, *flags, arch=arch, scale=1.0)
    validate(made, [made.sample(SENTENCES)], seed=1)
    made.model.train()
    drawn = []
    for seed in range(4):
        torch.manual_seed(seed)
        sample = made.sample(SENTENCES)
        source = (sample["net_input"][name] for name in ("src_tokens", "src_lengths"))
        outputs = made.model(*source, sample["prev_target"], sample["target"])
        drawn.append([(o["out"].tolist(), o["tgt"].tolist()) for o in outputs.values()])
    assert any(one != drawn[0] for one in drawn)


# -- what is said ----------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arch, flags, decoding, words",
    [
        (
            *("transformer", [], {"beam": 4, "lenpen": 0.6, "max_len_a": 1.2, "max_len_b": 10}),
            "beam 4, length penalty 0.6, 1.2 x source [+] 10 tokens",
        ),
        (
            *("cmlm_transformer", [], {"iter_decode_max_iter": 4, "iter_decode_with_beam": 5}),
            "4 refinement iterations, 5 length candidates .contiguous.$",
        ),
        (
            *("cmlm_transformer", ["--length-candidates", "top-k", "--remove-repeats"]),
            *({"iter_decode_with_beam": 2}, "9 ref.* 2 length cand.* .top-k., repeats removed$"),
        ),
        (
            *("nonautoregressive_transformer", [], {}),
            "0 refinement iterations, 1 length candidate$",
        ),
    ],
)
def test_the_log_says_once_how_validation_decodes(toy, caplog, arch, flags, decoding, words):
    caplog.set_level("INFO")
    bleu = ["--eval-bleu", "--eval-bleu-args", json.dumps(decoding)]
    setup(toy.bin, *bleu, *flags, arch=arch)
    found = [m for m in caplog.messages if m.startswith("validation decodes with ")]
    assert len(found) == 1 and re.search(words, found[0]), found


@pytest.mark.parametrize("flag", [None, "--left-pad-source", "--left-pad-target"])
def test_the_configuration_says_where_padding_is(toy, flag):
    """In what is logged and saved, as in the batches."""
    flags = ["--criterion", "eisl", *([flag] if flag else [])]
    cfg = parse(str(toy.bin), *flags, arch="cmlm_transformer").task
    assert (cfg.left_pad_source, cfg.left_pad_target) == (False, False)
    cfg = parse(str(toy.bin), *flags, arch="transformer").task
    sides = flag != "--left-pad-source", flag == "--left-pad-target"
    assert (cfg.left_pad_source, cfg.left_pad_target) == sides
    for arch in ("cmlm_transformer", "transformer"):
        cfg = parse(str(toy.bin), *flags, arch=arch).task
        task = tasks.setup_task(cfg)
        task.load_dataset("valid")
        data = task.dataset("valid")
        batch = data.collater([data[i] for i in range(8)])
        for rows, left in (
            (batch["net_input"]["src_tokens"], cfg.left_pad_source),
            (batch["target"], cfg.left_pad_target),
        ):
            assert rows.eq(1).any() and bool(rows[:, 0].eq(1).any()) is left


def test_the_log_and_the_checkpoint_agree(toy, tmp_path):
    flags = ["--criterion", "eisl", "--max-update", "1", "--disable-validation"]
    code, output = train(toy.bin, tmp_path, *flags, arch="cmlm_transformer")
    assert code == 0, output[-2000:]
    assert "'left_pad_source': False" in output and "'left_pad_source': True" not in output
    state = torch.load(tmp_path / "checkpoint_last.pt")
    assert state["cfg"]["task"]["left_pad_source"] is False
