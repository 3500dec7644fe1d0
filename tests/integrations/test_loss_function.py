"""eisl_compute_loss, which needs torch alone, and its use in a stock Trainer."""

from functools import partial
from types import SimpleNamespace

import pytest
import torch
from torch.nn import functional

from fairseq_eisl.integrations import huggingface
from fairseq_eisl.integrations.huggingface import eisl_compute_loss
from fairseq_eisl.losses import eisl_loss
from tests.integrations.conftest import (
    MODELS,
    assert_same_gradients,
    collate,
    needs_hugging_face,
    one_update,
    pairs,
    prompts,
)

LABELS = torch.tensor([[4, 5, 6, 7], [8, 9, -100, -100], [-100, -100, -100, -100]])
OPTIONS = {"ngrams": (1, 2), "selection": "softmax"}


def logits():
    generator = torch.Generator().manual_seed(4)
    return torch.randn(3, 4, 12, generator=generator, requires_grad=True)


def by_hand(scores, labels):
    """Sentence after sentence, without padding: the sum over labels."""
    total = 0.0
    for row, target in zip(scores, labels):
        real = target.ne(-100)
        if real.any():
            total += eisl_loss(row[real][None], target[real][None], **OPTIONS) * real.sum()
    return total


def encoder_decoder(scores):
    return SimpleNamespace(logits=scores, encoder_last_hidden_state=None)


@pytest.mark.parametrize("counts", [None, 6, torch.tensor(24), torch.tensor([12.0])])
def test_it_is_the_mean_over_labels_of_the_whole_batch(counts):
    scores = logits()
    loss = eisl_compute_loss(encoder_decoder(scores), LABELS, counts, **OPTIONS)
    number = 6 if counts is None else float(counts)
    torch.testing.assert_close(loss.squeeze(), by_hand(scores, LABELS) / number)
    (grad,) = torch.autograd.grad(loss.sum(), scores)
    assert grad.abs().sum() > 0 and not grad[1, 2:].any() and not grad[2].any()


def test_several_gpus_of_one_process_are_refused():
    """The trainer gives each replica a row, and multiplies the loss by their number."""
    counts = torch.tensor(24).unsqueeze(0).expand(2, -1)
    with pytest.raises(ValueError, match="nn.DataParallel.*torchrun"):
        eisl_compute_loss(encoder_decoder(logits()), LABELS, counts, **OPTIONS)


def test_labels_of_decoder_only_models_are_shifted():
    scores = logits()
    labels = torch.tensor([[-100, 5, 6, 7], [8, 9, -100, -100], [-100, -100, -100, 4]])
    found = eisl_compute_loss(SimpleNamespace(logits=scores), labels, **OPTIONS)
    torch.testing.assert_close(found, by_hand(scores[:, :-1], labels[:, 1:]) / 5)
    same = eisl_compute_loss({"logits": scores}, labels, shift=True, **OPTIONS)
    assert torch.equal(found, same)
    other = eisl_compute_loss({"logits": scores}, labels, shift=False, **OPTIONS)
    torch.testing.assert_close(other, by_hand(scores, labels) / 6)


def test_cross_entropy_beside_it():
    scores = logits()
    both = eisl_compute_loss(encoder_decoder(scores), LABELS, ce_factor=0.5, label_smoothing=0.1,
                             **OPTIONS)  # fmt: skip
    one = eisl_compute_loss(encoder_decoder(scores), LABELS, **OPTIONS)
    ce = functional.cross_entropy(scores.transpose(1, 2), LABELS, label_smoothing=0.1)
    torch.testing.assert_close(both - one, 0.5 * ce)


def test_without_gradient_there_is_no_noise():
    scores = logits()
    with torch.no_grad():
        one, two = (eisl_compute_loss(encoder_decoder(scores), LABELS, ngrams=(1, 2))
                    for _ in range(2))  # fmt: skip
    assert torch.equal(one, two)
    seeds = torch.tensor([1, 2, 3]), torch.tensor([4, 5, 6])
    noisy = [eisl_compute_loss(encoder_decoder(scores), LABELS, generator=s) for s in seeds]
    assert not torch.equal(*noisy)


@pytest.mark.parametrize(
    "outputs, labels, options, message",
    [
        ({}, LABELS, {}, "outputs have no logits"),
        (encoder_decoder(torch.zeros(3, 4, 12)), None, {}, "there are no labels"),
        (encoder_decoder(torch.zeros(3, 4, 12)), LABELS, {"ngrams": ()}, "ngrams must be"),
    ],
)
def test_wrong_input_is_one_line(outputs, labels, options, message):
    with pytest.raises(ValueError, match=message) as error:
        eisl_compute_loss(outputs, labels, **options)
    assert "\n" not in str(error.value)


def test_what_is_not_installed_is_named(monkeypatch):
    monkeypatch.setitem(huggingface._MODULES, "EISLTrainer", "nothing_such")
    with pytest.raises(ModuleNotFoundError, match="nothing_such"):
        huggingface.EISLTrainer  # noqa: B018
    with pytest.raises(AttributeError, match="no attribute 'EISLTreiner'"):
        huggingface.EISLTreiner  # noqa: B018

    def absent(*_):
        raise ModuleNotFoundError("No module named 'trl'", name="trl")

    monkeypatch.setattr(huggingface.importlib, "import_module", absent)
    with pytest.raises(ImportError, match=r"EISLSFTTrainer needs trl.*fairseq-eisl\[huggingface\]"):
        huggingface.EISLSFTTrainer  # noqa: B018


@needs_hugging_face
@pytest.mark.parametrize("name", ["bart", "gpt2"])
def test_a_stock_trainer_accumulates_it_rightly(training_arguments, name):
    from transformers import Trainer, TrainingArguments

    data = pairs() if name == "bart" else prompts()

    def update(rows, **more):
        return one_update(
            Trainer(
                model=MODELS[name](),
                args=training_arguments(TrainingArguments, rows, **more),
                train_dataset=data,
                data_collator=collate,
                compute_loss_func=partial(eisl_compute_loss, **OPTIONS),
            )
        )

    whole = update(8)
    for parts in (update(2), update(1), update(8, gradient_checkpointing=True)):
        assert_same_gradients(parts.grads, whole.grads)
        assert parts.log["loss"] == pytest.approx(whole.log["loss"], rel=1e-4)
