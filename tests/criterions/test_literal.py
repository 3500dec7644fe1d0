"""The comparison methods on models, beside a literal reading of their scores: values, gradients."""

import itertools
import math

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.evaluation.metrics.sentence_bleu import sentence_bleu
from fairseq_eisl.losses import reference
from tests import toy as toy_corpus
from tests.criterions.conftest import loss_and_gradient
from tests.tolerances import assert_near

PAD, EOS = 1, 2
AR, NAT = "transformer", "nonautoregressive_transformer"
# Every order of their words can be tried.
SHORT = ["w1 w2 w7 w9", "w3", ("w1 w2 w3 w4 w5 w6", "w1 w2"), ("w9", "w4 w4 w12"), ""]


def scores_of(made, sample):
    """(B, T, V) of all positions, teacher-forced, or of all slots."""
    given = sample["net_input"]
    if "prev_target" not in sample:
        return made.model(**given)[0]
    source = given["src_tokens"], given["src_lengths"]
    return made.model(*source, sample["prev_target"], sample["target"])["word_ins"]["out"]


def cross_entropy(logits, targets):
    """(B,) means over the tokens of each sentence."""
    pairs = ((row[t.ne(PAD)], t[t.ne(PAD)]) for row, t in zip(logits, targets))
    return torch.stack([F.cross_entropy(row, t) for row, t in pairs])


def weighted(kind, **numbers):
    def losses(logits, targets):
        return reference.token_weighted_loss(logits, targets, targets.ne(PAD), kind, **numbers)

    return losses


def bag(logits, targets):
    """All pairs of the vocabulary, those of the target among them."""
    losses = []
    for row, target in zip(logits.softmax(2), targets):
        row, tokens = row[target.ne(PAD)], target[target.ne(PAD)].tolist()
        counts = torch.zeros(row.size(1), row.size(1), dtype=row.dtype)
        for pair in zip(tokens, tokens[1:]):
            counts[pair] += 1
        expected = sum(a[:, None] * b[None, :] for a, b in zip(row, row[1:]))
        losses.append((expected - counts).abs().sum() / (2 * (len(tokens) - 1)))
    return torch.stack(losses)


def oaxe(skip):
    """Words in their best order, start and end in their places."""

    def losses(logits, targets):
        found = []
        for row, target in zip(logits, targets):
            real = int(target.ne(PAD).sum())
            words = torch.zeros(1, len(target)).bool()
            words[0, 1 : real - 1] = True
            mean = reference.oaxe_loss(row.unsqueeze(0), target.unsqueeze(0), words, skip=skip)[0]
            count = _kept(row[1 : real - 1], target[1 : real - 1], skip)
            marks = -sum(row[t].log_softmax(0)[target[t]] for t in (0, real - 1))
            found.append((mean * count + marks) / (count + 2))
        return torch.stack(found)

    return losses


def _kept(row, words, skip):
    """How many words of the best order are at least as likely as ``skip``."""
    log_probs = row.detach().log_softmax(1)[:, words]
    orders = itertools.permutations(range(len(words)))
    best = max(orders, key=lambda o: sum(float(log_probs[t, s]) for t, s in enumerate(o)))
    return sum(float(log_probs[t, s]) >= math.log(skip) for t, s in enumerate(best))


CASES = {
    "tailr": (AR, "token_weighted", {}, weighted("tailr")),
    "error norm": (
        *(AR, "token_weighted", {"token_weighting": "error_norm"}),
        weighted("error_norm"),
    ),
    "convex": (NAT, "token_weighted", {"token_weighting": "convex"}, weighted("convex")),
    "truncation": (AR, "loss_truncation", {}, cross_entropy),
    "truncation of slots": (NAT, "loss_truncation", {}, cross_entropy),
    "bag": (NAT, "bag_of_ngrams", {}, bag),
    "oaxe": (NAT, "oaxe", {"oaxe_skip": 0.05}, oaxe(0.05)),
}


# Loss truncation is cross entropy itself.
MIXED = [(c, f) for c in CASES for f in (0.0, 0.3) if not (f and c.startswith("truncation"))]


@pytest.mark.parametrize("case, factor", MIXED)
def test_losses_and_gradients(toy, case, factor):
    arch, criterion, options, literal = CASES[case]
    flags = ["--length-loss-factor", "0"] if arch == NAT else []
    chosen = {"criterion": criterion, "ce_factor": factor, **options}
    made = toy_corpus.setup(toy.bin, *flags, arch=arch, scale=2, **chosen)
    sample = made.sample(SHORT)
    loss, size, _, grads = loss_and_gradient(made, sample)
    made.model.zero_grad()
    logits, targets = scores_of(made, sample).double(), sample["target"]
    expected = literal(logits, targets).sum() + factor * cross_entropy(logits, targets).sum()
    expected.backward()
    assert size == len(SHORT)
    assert_near(loss, expected, torch.float32, "loss")
    for name, parameter in made.model.named_parameters():
        if parameter.grad is not None:
            assert_near(grads[name], parameter.grad, torch.float32, name)


def greedy(made, sample, row, limit):
    """The likeliest token after the likeliest, of one sentence."""
    inputs = {k: v[row : row + 1] for k, v in sample["net_input"].items()}
    tokens = []
    while len(tokens) < limit and EOS not in tokens:
        prefix = torch.tensor([[EOS, *tokens]])
        with torch.no_grad():
            last = made.model(**{**inputs, "prev_output_tokens": prefix})[0][0, -1]
        last[PAD] = -math.inf
        tokens.append(int(last.argmax()))
    return tokens


@pytest.mark.parametrize("baseline, factor", [("self_critical", 0.0), ("rloo", 0.3)])
def test_policy_gradient(toy, baseline, factor):
    """The model's own samples, each sentence and sample for itself."""
    chosen = {"pg_samples": 3, "pg_baseline": baseline, "ce_factor": factor}
    made = toy_corpus.setup(toy.bin, criterion="policy_gradient", scale=2, **chosen)
    words = made.task.target_dictionary
    sample = made.sample(SHORT)
    loss, _, log, grads = loss_and_gradient(made, sample)
    made.model.zero_grad()

    def reward(tokens, target):
        texts = (words.string(torch.tensor(each), "@@ ").split() for each in (tokens, target))
        return sentence_bleu(*texts)

    expected, advantages = torch.zeros(()), []
    for row, each in enumerate(made.criterion.samples(made.model, sample, 3).tokens.tolist()):
        target = sample["target"][row][sample["target"][row].ne(PAD)].tolist()
        outputs = [[token for token in tokens if token != PAD] for tokens in each]
        rewards = [reward(tokens, target) for tokens in outputs]
        limit = int(1.2 * sample["net_input"]["src_lengths"][row]) + 10
        best = reward(greedy(made, sample, row, limit), target)
        inputs = {k: v[row : row + 1] for k, v in sample["net_input"].items()}
        for k, tokens in enumerate(outputs):
            others = [r for i, r in enumerate(rewards) if i != k]
            base = best if baseline == "self_critical" else sum(others) / 2
            advantages.append(rewards[k] - base)
            prefix = torch.tensor([[EOS, *tokens[:-1]]])
            logits = made.model(**{**inputs, "prev_output_tokens": prefix})[0][0]
            nll = F.cross_entropy(logits, torch.tensor(tokens), reduction="sum")
            expected = expected + advantages[-1] * nll / 3
    expected = expected + factor * cross_entropy(scores_of(made, sample), sample["target"]).sum()
    expected.backward()
    assert len(set(advantages)) > 3
    assert_near(loss, expected, torch.float32, "loss")
    for name, parameter in made.model.named_parameters():
        if parameter.grad is not None:
            assert_near(grads[name], parameter.grad, torch.float32, name)
    from fairseq.logging import metrics

    with metrics.aggregate(new_root=True) as shown:
        made.criterion.reduce_metrics([log])
    spread = torch.tensor(advantages).std(correction=0).item()
    assert float(shown.get_smoothed_values()["advantage_std"]) == pytest.approx(spread, abs=1e-3)
