"""N-grams of targets that count more or less, in the trainers and in the loss function."""

import math
from types import SimpleNamespace

import pytest
import torch

from fairseq_eisl.integrations.huggingface import eisl_compute_loss
from fairseq_eisl.integrations.huggingface.loss_function import cross_entropy
from fairseq_eisl.losses import CleanTextWeights, NGramWeights, count_ngrams, eisl_loss
from tests.integrations.conftest import (
    MODELS,
    VOCABULARY,
    assert_same_gradients,
    collate,
    needs_hugging_face,
    one_update,
    pairs,
    prompts,
    sentences,
    tokenizer,
)

OPTIONS = {"ngrams": (1, 2), "selection": "softmax"}
ARGUMENTS = {
    "ngram": [1, 2],
    "position_selection": "softmax",
    "train_decoding": "teacher-forcing",
    "ce_factor": 0.5,
}
TEXTS = [sentences(2), [row[:-1] * 2 for row in sentences(2)[:4]]]
WEIGHTS = CleanTextWeights(*(count_ngrams(text, VOCABULARY) for text in TEXTS))


def by_hand(logits, labels, weighed=True):
    """The loss of one sentence without padding, times its labels."""
    weights = WEIGHTS(labels[None])
    eisl = eisl_loss(
        logits[None], labels[None], ngram_weights=weights if weighed else None, **OPTIONS
    )
    nll = -logits.log_softmax(1).gather(1, labels[:, None]).squeeze(1)
    counts = torch.cat([weights.tokens[0, :1], weights.pairs[0]]) if weighed else 1.0
    return eisl * len(labels) + 0.5 * (nll * counts).sum()


def test_weights_of_the_loss_function():
    labels = torch.tensor([row + [-100] * (8 - len(row)) for row in sentences(2)])
    logits = torch.randn(8, 8, VOCABULARY, generator=torch.Generator().manual_seed(1))
    outputs = SimpleNamespace(logits=logits, encoder_last_hidden_state=None)
    given = {"ce_factor": 0.5, "ngram_weights": WEIGHTS, **OPTIONS}
    found = eisl_compute_loss(outputs, labels, **given)
    with torch.no_grad():  # as in evaluation
        plain = eisl_compute_loss(outputs, labels, **given)
    for loss, weighed in ((found, True), (plain, False)):
        each = [
            by_hand(scores[: len(row)], torch.tensor(row), weighed)
            for scores, row in zip(logits, sentences(2))
        ]
        torch.testing.assert_close(loss, sum(each) / labels.ne(-100).sum())
    assert abs(found - plain) > 1e-3


def test_the_first_label_has_its_own_weight():
    """Behind a prompt or padding, whose labels are -100, it is no pair with what stands there."""
    weights = NGramWeights(torch.tensor([[1.0, 2.0, 1.0]]), torch.tensor([[9.0, 0.5]]))
    labels = torch.tensor([[-100, 0, 1]])
    loss, _ = cross_entropy(torch.zeros(1, 3, 2), labels, 0.0, weights)
    assert loss.item() == pytest.approx((2.0 + 0.5) * math.log(2))


@pytest.fixture
def trainer(training_arguments):
    """A trainer of a new model, by its name."""
    from datasets import Dataset

    from fairseq_eisl.integrations.huggingface import (
        EISLConfig,
        EISLSFTConfig,
        EISLSFTTrainer,
        EISLTrainer,
    )

    def make(name, rows=8, ngram_weights=WEIGHTS, **more):
        seq2seq = name == "bart"
        kind, config = (EISLTrainer, EISLConfig) if seq2seq else (EISLSFTTrainer, EISLSFTConfig)
        data = pairs() if seq2seq else Dataset.from_list(prompts())
        own = {} if seq2seq else {"bf16": False, "gradient_checkpointing": False}
        rest = {"data_collator": collate} if seq2seq else {"processing_class": tokenizer()}
        return kind(
            model=MODELS[name](),
            args=training_arguments(config, rows, **{**ARGUMENTS, **own, **more}),
            train_dataset=data,
            eval_dataset=data,
            ngram_weights=ngram_weights,
            **rest,
        )

    return make


@needs_hugging_face
@pytest.mark.parametrize("name", ["bart", "gpt2"])
def test_weights_of_the_trainers(trainer, name):
    """The gradient of the loss by hand, of each sentence alone, however the batch is split."""
    update, model, total = one_update(trainer(name)), MODELS[name](), 0.0
    for source, target in zip(sentences(1), map(torch.tensor, sentences(2))):
        if name == "bart":
            logits = model(input_ids=torch.tensor([source]), labels=target[None]).logits[0]
        else:
            row = torch.cat([torch.tensor(source[:-1]), target])
            logits = model(input_ids=row[None]).logits[0, -len(target) - 1 : -1]
        total = total + by_hand(logits, target)
    labels = sum(map(len, sentences(2)))
    (total / labels).backward()
    grads = {key: p.grad for key, p in model.named_parameters() if p.grad is not None}
    assert_same_gradients(update.grads, grads)
    assert update.log["loss"] == pytest.approx((total / labels).item(), rel=1e-3)
    assert_same_gradients(one_update(trainer(name, rows=2)).grads, grads)


@needs_hugging_face
def test_evaluation_weighs_nothing(trainer):
    found = [trainer("bart", ngram_weights=given).evaluate() for given in (None, WEIGHTS)]
    for key in ("eval_loss", "eval_eisl", "eval_nll"):
        assert found[0][key] == found[1][key], key


@needs_hugging_face
def test_what_cannot_be_called_is_refused(trainer):
    weights = WEIGHTS(torch.tensor([[4, 5]]))
    with pytest.raises(ValueError, match="ngram_weights: EISLTrainer calls it with targets"):
        trainer("bart", ngram_weights=weights)
