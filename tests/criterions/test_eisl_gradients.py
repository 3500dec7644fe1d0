"""What a batch is made of changes neither the loss of a sentence nor its gradient."""

import pytest
import torch
from torch.nn import functional as F

from tests.criterions.conftest import (
    SENTENCES,
    assert_update_freq_changes_nothing,
)
from tests.tolerances import assert_near
from tests.toy import ARCHS

PAD = 1
MIXES = {
    "gumbel, greedy": {"ngram": "1,2"},
    "sample": {"train_decoding": "sample"},
    "with cross entropy": {"ce_factor": 0.5, "label_smoothing": 0.1},
    "teacher forcing": {"train_decoding": "teacher-forcing", "ngram": "2,0"},
}


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("mix", MIXES)
def test_update_freq_gives_the_gradients_of_the_whole_batch(build, arch, mix):
    assert_update_freq_changes_nothing(lambda: build("--lr", "0", arch=arch, scale=2, **MIXES[mix]))


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("mix", MIXES)
def test_a_batch_is_the_sum_of_its_sentences(build, arch, mix):
    made = build(arch=arch, scale=2, **MIXES[mix])

    def losses(sentences, ids):
        torch.manual_seed(4)
        sample = made.sample(sentences, ids)
        loss = made.criterion(made.model, sample, reduce=False)[0]
        return dict(zip(sample["id"].tolist(), loss))

    together = losses(SENTENCES, range(8))
    for index, sentence in enumerate(SENTENCES):
        alone = losses([sentence], [index])[index]
        assert_near(together[index], alone, torch.float32, f"{sentence!r}")


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize("mix", MIXES)
def test_more_padding_changes_nothing(build, arch, mix):
    made = build(arch=arch, scale=2, **MIXES[mix])

    def loss_and_gradient(more: int):
        sample = made.sample(SENTENCES)
        net_input = sample["net_input"]
        sample["target"] = F.pad(sample["target"], (0, more), value=PAD)
        net_input["prev_output_tokens"] = F.pad(
            net_input["prev_output_tokens"], (0, more), value=PAD
        )
        torch.manual_seed(4)
        made.model.zero_grad()
        loss, _, log = made.criterion(made.model, sample)
        loss.backward()
        return loss, log, {n: p.grad.clone() for n, p in made.model.named_parameters()}

    loss, log, grads = loss_and_gradient(0)
    padded_loss, padded_log, padded_grads = loss_and_gradient(3)
    assert_near(padded_loss, loss, torch.float32, "loss")
    for name in log:
        assert float(padded_log[name]) == pytest.approx(float(log[name]), rel=1e-4, abs=1e-5), name
    for name in grads:
        assert_near(padded_grads[name], grads[name], torch.float32, name)


def test_both_losses_get_a_gradient_through_one_forward(build):
    """Cross entropy and EISL together give the sum of their gradients."""

    def gradients(**options):
        made = build(**options)
        torch.manual_seed(1)
        made.criterion(made.model, made.sample(SENTENCES))[0].backward()
        return {n: p.grad for n, p in made.model.named_parameters()}

    eisl, ce = gradients(), gradients(ngram_factor=0.0, ce_factor=1.0)
    for name, grad in gradients(ce_factor=1.0).items():
        assert_near(grad, eisl[name] + ce[name], torch.float32, name)


@pytest.mark.parametrize("ce_factor", [0.0, 1.0])
def test_a_sentence_whose_target_is_all_padding_adds_nothing(build, ce_factor):
    made = build(ce_factor=ce_factor)

    def gradients(sentences, blank_row=None):
        sample = made.sample(sentences)
        if blank_row is not None:
            row = sample["id"].tolist().index(blank_row)
            sample["target"][row] = PAD
        torch.manual_seed(1)
        made.model.zero_grad()
        loss = made.criterion(made.model, sample)[0]
        loss.backward()
        return loss, {n: p.grad.clone() for n, p in made.model.named_parameters()}

    loss, grads = gradients(SENTENCES[:2])
    with_blank, blank_grads = gradients(SENTENCES[:3], blank_row=2)
    assert_near(with_blank, loss, torch.float32)
    for name, grad in grads.items():
        assert_near(blank_grads[name], grad, torch.float32, name)
