"""The comparison methods through fairseq-train: from a CE checkpoint, resumed, on two workers."""

import json
import re

import pytest
import torch

from tests.test_cli_repeats import LOG, noisy_task, ok, updates
from tests.toy import (
    ARCHS,
    LANGUAGES,
    NAT_ARCHS,
    NAT_TASK,
    TRAINING,
    USER_DIR,
    start_cli,
    start_two_ranks,
    train,
)

NAT, CMLM = "nonautoregressive_transformer", "cmlm_transformer"
TRUNCATION = [
    *("--truncation-window", "60", "--truncation-warmup", "40", "--truncation-interval", "20"),
]
CLEAN_TEXT = ["--clean-text", "{bin}/valid.en-de.de"]
BLEU = ["--eval-bleu", "--best-checkpoint-metric", "bleu", "--maximize-best-checkpoint-metric"]
# As many batches as two workers share, and one more: the second has none in the last update.
ODD = ["--max-tokens", "240"]
RIVALS = {
    "token_weighted": ("transformer", ["--token-weighting", "tailr"]),
    "token_weighted clean text": ("transformer", ["--token-weighting", "none", *CLEAN_TEXT]),
    "eisl clean text": ("transformer", ["--ngram", "1,2", *CLEAN_TEXT]),
    "token_weighted slots": (CMLM, ["--token-weighting", "convex", "--ce-factor", "0.1"]),
    "bag_of_ngrams": (NAT, ["--bag-factor", "0.9", "--ce-factor", "0.1"]),
    "policy_gradient": ("transformer", ["--pg-samples", "2", "--ce-factor", "0.3", *BLEU]),
    "policy_gradient ema": (
        *("transformer", ["--pg-baseline", "ema", "--pg-ema-decay", "0.5", *ODD]),
    ),
    "best_of_n": ("transformer", ["--hypotheses", "3"]),
    "contrastive_margin": ("transformer", ["--hypotheses", "2", "--ce-factor", "0.3"]),
    "loss_truncation": ("transformer", [*TRUNCATION, *ODD]),
    "oaxe": (CMLM, ["--oaxe-skip", "0.01"]),
    "axe": (CMLM, ["--axe-skip-penalty", "2"]),
    "axe more slots": (NAT, ["--axe-length-factor", "1.5"]),
}
KEEP = ("loss_truncation", "policy_gradient ema")
each_rival = pytest.mark.parametrize("rival", RIVALS)


def flags_of(rival, toy):
    arch, flags = RIVALS[rival]
    flags = [flag.format(bin=toy.bin) for flag in flags]
    task = NAT_TASK if arch in NAT_ARCHS else ["--task", "noisy_translation"]
    return [*task, "--criterion", rival.split()[0], *flags, "--target-noise", "repeat:0.3", *LOG]


@pytest.fixture(scope="module")
def cross_entropy(toy, tmp_path_factory):
    """A checkpoint of a few updates of cross entropy, by architecture."""
    found = {}
    for arch in {arch for arch, _ in RIVALS.values()}:
        folder = tmp_path_factory.mktemp(arch)
        stock = "nat_loss" if arch in NAT_ARCHS else "label_smoothed_cross_entropy"
        short = ["--criterion", stock, "--max-update", "6", "--no-epoch-checkpoints"]
        task = [] if arch in NAT_ARCHS else ["--task", "noisy_translation"]
        ok(train(toy.bin, folder, *task, *short, arch=arch))
        found[arch] = folder / "checkpoint_best.pt"
    return found


@each_rival
def test_it_goes_on_from_cross_entropy_and_resumes(toy, cross_entropy, tmp_path, rival):
    arch, flags = RIVALS[rival][0], flags_of(rival, toy)
    start = ["--finetune-from-model", str(cross_entropy[arch]), "--max-epoch", "1"]
    saving = ["--save-interval-updates", "5", "--no-epoch-checkpoints"]
    output = ok(train(toy.bin, tmp_path / "whole", *flags, *start, *saving, arch=arch))
    expected = updates(output)
    assert len(expected) > 8 and rival.split()[0] in expected[1], expected[1]
    # There is no cross entropy where slots and words do not belong together.
    assert ("valid_nll_loss" in output) == ("more slots" not in rival)
    rewarded = rival.split()[0] in ("policy_gradient", "best_of_n", "contrastive_margin")
    assert (f"valid_{rival.split()[0]}" in output) != rewarded
    assert ("valid_bleu" in output) == ("--eval-bleu" in flags)
    path = tmp_path / "whole/checkpoint_1_5.pt"
    rest = ["--restore-file", str(path), "--max-epoch", "1"]
    found = updates(ok(train(toy.bin, tmp_path / "rest", *flags, *rest, arch=arch)))
    assert list(found) == list(range(6, max(expected) + 1))
    for update, line in found.items():
        assert line["loss"] == expected[update]["loss"], update
    state = torch.load(path, weights_only=False)
    assert not state.get("criterion")  # the model is not in it twice
    kept = state["extra_state"].get("criterion_state", {})
    assert ("values" in kept) == (rival == "loss_truncation")
    if rival == "loss_truncation":  # it had begun to leave sentences out
        assert any(float(line["truncated"]) > 0 for line in found.values())


def print_parameters():
    """Validation says what the parameters are, and what the criterion keeps (in the child that
    calls this)."""
    from fairseq_eisl.criterions.base import SequenceCriterion

    forward = SequenceCriterion.forward

    def spy(self, model, sample, reduce=True):
        if not self.training:
            total = sum(p.detach().double().abs().sum().item() for p in model.parameters())
            print(f"PARAMETERS {total!r}")
            kept = getattr(self, "kept_state", dict)()
            print(f"KEPT {json.dumps(kept, default=torch.Tensor.tolist)}")
        return forward(self, model, sample, reduce)

    SequenceCriterion.forward = spy


@each_rival
def test_two_workers_have_one_model_and_it_is_that_of_one(toy, tmp_path, rival):
    """One worker with --update-freq 2 sees the same sentences in an update."""
    arch, flags = RIVALS[rival][0], flags_of(rival, toy)
    flags = [
        *(str(toy.bin), "--user-dir", USER_DIR, *TRAINING, *LANGUAGES, *flags, "--no-save"),
        *("--arch", arch, *{**ARCHS, **NAT_ARCHS}[arch], "--max-epoch", "1", "--dropout", "0"),
    ]
    ranks = start_two_ranks(*flags, "--save-dir", str(tmp_path / "ranks"), before=print_parameters)
    alone = start_cli(
        *("fairseq-train", *flags, "--save-dir", str(tmp_path / "alone"), "--update-freq", "2"),
        before=print_parameters,
    )
    outputs = [ok(child.wait(240)) for child in (*ranks, alone)]
    first, second, one = (set(re.findall(r"PARAMETERS (\S+)", output)) for output in outputs)
    assert len(first) == len(one) == 1 and first == second
    # A threshold or a running mean sees the sentences of two workers at once.
    if rival not in KEEP:
        assert float(*one) == pytest.approx(float(*first), rel=1e-5)
        return
    kept, others, alone = (json.loads(re.search("KEPT (.*)", output)[1]) for output in outputs)
    assert kept == others and kept != alone
    if rival == "loss_truncation":  # of every sentence once
        assert kept["seen"] == alone["seen"] == 200 and len(kept["values"]) == 60


def test_the_second_worker_ends_without_a_batch(toy):
    task = noisy_task(toy)
    sizes = {"max_tokens": 240, "required_batch_size_multiple": 8, "seed": 1}
    assert len(task.get_batch_iterator(task.dataset("train"), **sizes)) % 2 == 1
