"""EISL on the outputs of the five non-autoregressive models."""

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.criterions.eisl import released_losses
from fairseq_eisl.criterions.nat_outputs import NATOutput, NATOutputs, Symbols, nat_outputs
from fairseq_eisl.losses import EISLOptions
from tests import toy as toy_corpus
from tests.criterions.conftest import (
    EXTRA,
    SENTENCES,
    assert_update_freq_changes_nothing,
    loss_and_gradient,
)
from tests.tolerances import assert_near
from tests.toy import NAT_ARCHS, NAT_TASK

PAD = 1
MIXES = {
    "eisl": {},
    "with cross entropy": {"ce_factor": 0.5},
    "specials as words": {"eisl_special": "include", "ngram": "1,2"},
    "no specials, all steps": {"eisl_special": "exclude", "eisl_steps": "all"},
}
each_arch = pytest.mark.parametrize("arch", NAT_ARCHS)
each_mix = pytest.mark.parametrize("mix", MIXES)


@pytest.fixture(scope="module")
def build(toy):
    """``tests.toy.setup`` of a non-autoregressive model."""

    def make(arch, *flags, **options):
        flags = (*EXTRA.get(arch, []), *flags)
        return toy_corpus.setup(toy.bin, *flags, arch=arch, scale=2, **options)

    return make


def outputs_of(made, sample):
    """The words of the model alone."""
    arguments = made.model, sample, len(made.task.target_dictionary), made.criterion.symbols
    return nat_outputs(*arguments)._replace(others={})


@each_arch
@each_mix
def test_more_padding_changes_nothing(build, arch, mix):
    made = build(arch, **MIXES[mix])

    def run(more):
        sample = made.sample(SENTENCES)
        for name in ("target", "prev_target"):
            sample[name] = F.pad(sample[name], (0, more), value=PAD)
        return loss_and_gradient(made, sample)

    loss, _, log, grads = run(0)
    padded_loss, _, padded_log, padded_grads = run(3)
    assert_near(padded_loss, loss, torch.float32, "loss")
    for name in log:
        assert float(padded_log[name]) == pytest.approx(float(log[name]), rel=1e-4, abs=1e-5), name
    for name in grads:
        assert_near(padded_grads[name], grads[name], torch.float32, name)


@each_arch
@each_mix
def test_a_batch_is_the_sum_of_its_sentences_in_any_order(build, arch, mix):
    made = build(arch, **MIXES[mix])

    def losses(sentences, ids):
        torch.manual_seed(4)
        sample = made.sample(sentences, ids)
        loss, size, _ = made.criterion(made.model, sample, reduce=False)
        assert size == len(sentences)
        return dict(zip(sample["id"].tolist(), loss))

    together = losses(SENTENCES, range(8))
    shuffled = losses(SENTENCES[::-1], range(7, -1, -1))
    alone = {i: losses([sentence], [i])[i] for i, sentence in enumerate(SENTENCES)}
    if arch == "nacrf_transformer":  # its likelihood comes as one mean, spread over the batch
        together, shuffled, alone = ({0: sum(x.values())} for x in (together, shuffled, alone))
    for index, loss in together.items():
        assert_near(shuffled[index], loss, torch.float32, f"{index} shuffled")
        assert_near(alone[index], loss, torch.float32, f"{index} alone")


@each_arch
def test_update_freq_gives_the_gradients_of_the_whole_batch(build, arch):
    assert_update_freq_changes_nothing(
        lambda: build(arch, "--lr", "0", ce_factor=0.5, label_smoothing=0.1)
    )


@each_arch
def test_observed_and_padded_slots_get_no_gradient(build, arch):
    made = build(arch, eisl_steps="all", ce_factor=1.0)
    sample = made.sample(SENTENCES)
    outputs = outputs_of(made, sample)
    words = outputs.words
    words.logits.retain_grad()
    losses = made.criterion.nat_losses(outputs, torch.arange(len(SENTENCES)))
    (losses.sequence.sum() + losses.ce.sum()).backward()
    grad = words.logits.grad.abs().sum(2)
    predicted = words.mask & words.targets.ne(PAD)
    assert predicted.any() and (grad[~predicted] == 0).all() and (grad[predicted] > 0).all()


@each_arch
def test_cross_entropy_alone_is_nat_loss_for_one_sentence(build, arch):
    """Every other term and factor included: what stays of the stock loss stays the same."""
    flags = ("--label-smoothing", "0.1")
    if arch == "nacrf_transformer":
        flags = (*flags, "--word-ins-loss-factor", "0.5", "--length-loss-factor", "0.3")
    ours = build(arch, *flags, ngram_factor=0.0, ce_factor=1.0)
    stock = build(arch, *flags, criterion="nat_loss")
    for sentence in SENTENCES[:6]:
        sample = ours.sample([sentence])
        loss, _, _, grads = loss_and_gradient(ours, sample)
        expected, _, _, expected_grads = loss_and_gradient(stock, sample)
        assert_near(loss, expected, torch.float32, sentence)
        for name, grad in expected_grads.items():
            assert_near(grads[name], grad, torch.float32, name)


@each_arch
def test_released_cross_entropy_is_nat_loss_for_a_batch(build, arch):
    ours = build(
        *(arch, "--label-smoothing", "0.1"),
        **{"ngram_factor": 0.0, "ce_factor": 1.0, "eisl_compat": "released"},
    )
    stock = build(arch, "--label-smoothing", "0.1", criterion="nat_loss")
    sample = ours.sample(SENTENCES)
    loss, size, _, grads = loss_and_gradient(ours, sample)
    expected, stock_size, _, expected_grads = loss_and_gradient(stock, sample)
    assert size == stock_size == 1
    assert_near(loss, expected, torch.float32)
    for name, grad in expected_grads.items():
        assert_near(grads[name], grad, torch.float32, name)


@pytest.mark.parametrize("n, value", [(1, 1.075649), (2, 0.988172)])
def test_released_eisl_counts_padding(build, n, value):
    """Worked out by hand: y = [a, b, pad], P = [(.5, .25, .25), (.25, .5, .25), (1/3, 1/3, 1/3)].

    n = 1: position weights are proportional to p, so each column costs
    -sum p ln p / sum p: a and b 1.0694, pad 1.0880; the mean is 1.0756.
    """
    probabilities = torch.tensor([[0.5, 0.25, 0.25], [0.25, 0.5, 0.25], [1 / 3, 1 / 3, 1 / 3]])
    target = torch.tensor([[0, 2, 1]])  # the pad column holds id 1
    logits = probabilities[:, [0, 2, 1]].log().unsqueeze(0)
    words = NATOutput(logits, target, target.ne(PAD))
    symbols = Symbols(bos=-1, pad=PAD, eos=-2)
    outputs = NATOutputs(words, {}, batch=1, symbols=symbols)
    options = EISLOptions((n,), selection="softmax")
    loss, _, _ = released_losses(outputs, options, torch.tensor([0]))
    assert loss.item() == pytest.approx(value, abs=1e-6)
    # Without padding as a target and as a slot, the same sentence costs less.
    made = build(
        "nonautoregressive_transformer",
        **{"ngram": str(n), "position_selection": "softmax", "eisl_special": "include"},
    )
    made.criterion.symbols = symbols
    ours = made.criterion.nat_losses(outputs, torch.tensor([0]))
    assert ours.sequence.item() == pytest.approx({1: 0.924196, 2: 0.693147}[n], abs=1e-6)


@pytest.mark.parametrize(
    "given, weights, same, same_weights",
    [
        ((3, 4, 0), None, (3, 4), None),  # 0 comes to 4 here
        ((0, 4, -1, 3), None, (4, 3), None),
        ((2, 2), (0.3, 0.7), (2,), None),
        ((2, 9), (0.3, 0.7), (2,), None),  # does not fit
        ((9, -7), None, (4,), None),  # neither fits
        ((1, 0), (0.3, 0.7), (1, 4), (0.3, 0.7)),
    ],
)
def test_released_orders_that_come_to_one_are_one(given, weights, same, same_weights):
    torch.manual_seed(1)
    targets = torch.randint(4, 9, (2, 4))
    words = NATOutput(torch.randn(2, 4, 9), targets)
    outputs = NATOutputs(words, {}, batch=2, symbols=Symbols(0, 1, 2))

    def losses(ngrams, weights):
        options = EISLOptions(ngrams, weights, selection="softmax")
        return released_losses(outputs, options, torch.arange(2))

    assert_near(losses(given, weights)[0], losses(same, same_weights)[0], torch.float32)
    # Logged for each order that was given, and the one that all are too long for.
    terms = losses(given, weights)[2]
    assert terms.losses.shape == (2, len(given) + 1)


def test_released_keeps_its_noise_in_validation_and_ours_does_not(build):
    for compat, repeatable in (("released", False), ("none", True)):
        made = build("nonautoregressive_transformer", eisl_compat=compat)
        made.criterion.eval()
        made.model.eval()
        sample, values = made.sample(SENTENCES), set()
        for seed in range(3):
            torch.manual_seed(seed)
            values.add(made.criterion(made.model, sample)[0].item())
        assert (len(values) == 1) == repeatable


@pytest.mark.parametrize("steps", ["first", "all"])
def test_refinement_steps_are_told_apart(build, steps):
    """Two steps: EISL of the first, and EISL or cross entropy of the second, averaged."""
    options = {"eisl_steps": steps, "position_selection": "softmax", "ce_factor": 1.0}
    made = build("iterative_nonautoregressive_transformer", **options)
    sample, seeds = made.sample(SENTENCES), torch.arange(8)
    outputs = outputs_of(made, sample)
    assert outputs.words.targets.size(0) == 16
    both = made.criterion.nat_losses(outputs, seeds).sequence

    def one_step(first):
        part = outputs._replace(words=outputs.words.rows(first, first + 8))
        return made.criterion.nat_losses(part, seeds)

    first, second = one_step(0), one_step(8)
    other = second.sequence if steps == "all" else second.ce
    assert_near(both, (first.sequence + other) / 2, torch.float32)


@pytest.mark.parametrize(
    "arch, option, name",
    [
        ("nacrf_transformer", "crf_loss_factor", "word_crf"),
        ("levenshtein_transformer", "mask_ins_loss_factor", "mask_ins"),
        ("levenshtein_transformer", "word_del_loss_factor", "word_del"),
    ],
)
def test_factors_of_the_other_terms(build, arch, option, name):
    values = {}
    for factor in (0.0, 1.0, 2.5):
        made = build(arch, **{option: factor})
        values[factor], _, log, _ = loss_and_gradient(made, made.sample(SENTENCES))
    term = log[f"part_{name}"]
    assert term > 0
    assert_near(values[1.0] - values[0.0], term, torch.float32)
    assert_near(values[2.5] - values[0.0], 2.5 * term, torch.float32)


def test_a_batch_without_masked_tokens_gives_a_zero_of_the_graph(build):
    made = build("cmlm_transformer", "--length-loss-factor", "0", ce_factor=1.0)
    sample = made.sample(["", "w1 w2"])
    sample["prev_target"] = sample["target"].clone()  # nothing is masked
    loss, _, log, grads = loss_and_gradient(made, sample)
    assert loss == 0 and loss.isfinite()
    assert all((grad == 0).all() for grad in grads.values())
    assert all(torch.isfinite(torch.as_tensor(float(value))) for value in log.values())


@each_arch
def test_a_gradient_reaches_every_parameter_and_the_log_is_finite(build, arch):
    made = build(arch)
    loss, _, log, grads = loss_and_gradient(made, made.sample(SENTENCES))
    missing = {n for n, _ in made.model.named_parameters()} - set(grads)
    assert not missing and loss.isfinite()
    assert all(torch.isfinite(torch.as_tensor(float(value))) for value in log.values())


@pytest.mark.parametrize(
    "arch, flags, words",
    [
        ("nonautoregressive_transformer", ["--noise", "random_delete"], "random_delete does not"),
        ("levenshtein_transformer", ["--noise", "full_mask"], "needs --noise random_delete"),
        ("nonautoregressive_transformer", ["--full-mask-prob", "0.5"], "goes with --noise random"),
        ("cmlm_transformer", ["--full-mask-prob", "1.5"], "must be in .0, 1., not 1.5"),
        ("nacrf_transformer", ["--crf-loss-factor", "-1"], "--crf-loss-factor must be a finite"),
        ("transformer", NAT_TASK, "is autoregressive; it needs --task noisy_translation "),
        ("transformer", ["--eisl-compat", "released"], "is for non-autoregressive models only"),
    ],
)
def test_flags_that_do_not_go_together_are_named(toy, arch, flags, words):
    with pytest.raises(ValueError, match=words):
        made = toy_corpus.setup(toy.bin, *toy_corpus.LANGUAGES, *flags, arch=arch)
        made.criterion(made.model, made.sample(SENTENCES))


def test_the_task_for_a_model_is_named(toy):
    ar, nat_made = toy_corpus.setup(toy.bin), toy_corpus.setup(toy.bin, arch="cmlm_transformer")
    with pytest.raises(ValueError, match="it needs --task noisy_translation_lev"):
        ar.criterion(nat_made.model, ar.sample(SENTENCES))  # as with --task translation
    with pytest.raises(ValueError, match="it needs --task noisy_translation_lev"):
        ar.task.build_model(nat_made.cfg.model)
    with pytest.raises(ValueError, match="nat_loss trains non-autoregressive models"):
        toy_corpus.setup(toy.bin, criterion="nat_loss")
    with pytest.raises(ValueError, match="cross_entropy trains autoregressive models"):
        toy_corpus.setup(toy.bin, arch="cmlm_transformer", criterion="cross_entropy")
