"""``--criterion eisl``: the loss it gives, and the numbers it logs."""

import math

import pytest
import torch
from fairseq.logging import metrics

from fairseq_eisl.criterions.eisl import EISLCriterion
from fairseq_eisl.losses import eisl_loss, random_numbers
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near
from tests.toy import ARCHS

PAD, EOS = 1, 2


def forced_logits(made, sample):
    return made.model(**sample["net_input"])[0]


def evaluate(made, sample, **kwargs):
    made.model.eval()
    made.criterion.eval()
    with torch.no_grad():
        return made.criterion(made.model, sample, **kwargs)


def reduced(criterion, logs) -> dict:
    """What fairseq shows for the logging outputs of some workers, unrounded."""
    with metrics.aggregate(new_root=True) as seen:
        criterion.reduce_metrics(logs)
    return {
        name: meter.fn(seen) if hasattr(meter, "fn") else float(meter.avg)
        for name, meter in seen.items()
    }


# -- the loss ------------------------------------------------------------------------------


@pytest.mark.parametrize("arch", ARCHS)
@pytest.mark.parametrize(
    "flags, options",
    [
        ({}, {"ngrams": (2, 3, 4)}),
        (
            {"ngram": "1,0", "ngram_weight": "0.8,0.2", "position_selection": "hard"},
            {"ngrams": (1, 0), "weights": (0.8, 0.2), "selection": "hard"},
        ),
        (
            {"ngram": "2", "ngram_sum": True, "log_prob_floor": -3.0, "selection_on": "prob"},
            {"ngrams": (2,), "normalize": False, "floor": -3.0, "selection_on": "prob"},
        ),
        (
            {"ngram": "1,2", "gumbel_temperature": 0.3, "ngram_factor": 2.0},
            {"ngrams": (1, 2), "temperature": 0.3},
        ),
    ],
)
def test_teacher_forced_it_is_eisl_loss_of_the_logits(build, arch, flags, options):
    """In evaluation, where nothing is random: gumbel becomes softmax."""
    made = build(arch=arch, train_decoding="teacher-forcing", **flags)
    sample = made.sample(SENTENCES)
    loss, size, log = evaluate(made, sample)
    mask = sample["target"].ne(PAD)
    options = {"selection": "softmax", **options}
    expected = eisl_loss(
        forced_logits(made, sample),
        sample["target"],
        output_mask=mask,
        target_mask=mask,
        reduction="sum",
        **options,
    )
    factor = flags.get("ngram_factor", 1.0)
    assert_near(loss, factor * expected, torch.float32, "loss")
    assert size == len(SENTENCES)
    assert_near(log["eisl"], expected, torch.float32, "eisl")


@pytest.mark.parametrize("arch", ARCHS)
def test_on_a_candidate_it_is_eisl_loss_of_the_logits_there(build, arch):
    """In training: greedy candidate, Gumbel noise from the sentences' seeds."""
    made = build(arch=arch, ngram="1,2")
    sample = made.sample(SENTENCES)
    torch.manual_seed(3)
    loss, _, _ = made.criterion(made.model, sample)
    seeds = random_numbers.fold(sample["id"], 3)
    candidates = made.criterion._candidates(made.model, sample, seeds)
    net_input = dict(sample["net_input"], prev_output_tokens=candidates.prefix)
    expected = eisl_loss(
        made.model(**net_input)[0],
        sample["target"],
        output_mask=candidates.mask,
        target_mask=sample["target"].ne(PAD),
        ngrams=(1, 2),
        generator=seeds,
        reduction="sum",
    )
    assert_near(loss, expected, torch.float32)


@pytest.mark.parametrize("smoothing", [0.0, 0.1])
@pytest.mark.parametrize("arch", ARCHS)
def test_without_eisl_it_is_cross_entropy_per_sentence(build, arch, smoothing):
    """The mean over each sentence's tokens, summed over sentences, of fairseq's own criterion."""
    made = build(arch=arch, ngram_factor=0.0, ce_factor=1.0, label_smoothing=smoothing)
    stock = build(arch=arch, criterion="label_smoothed_cross_entropy", label_smoothing=smoothing)
    loss, size, _ = made.criterion(made.model, made.sample(SENTENCES))
    expected = sum(
        stock.criterion(made.model, one)[0] / one["ntokens"]
        for one in (made.sample([s]) for s in SENTENCES)
    )
    assert size == len(SENTENCES)
    assert_near(loss, expected, torch.float32)
    parameters = list(made.model.parameters())
    ours, theirs = (torch.autograd.grad(value, parameters) for value in (loss, expected))
    for found, wanted in zip(ours, theirs):
        assert_near(found, wanted, torch.float32, "gradient")


def test_the_factors_mix_both_losses(build):
    def loss(**options):
        made = build(label_smoothing=0.1, **options)
        torch.manual_seed(1)
        return made.criterion(made.model, made.sample(SENTENCES))[0]

    eisl, ce = loss(), loss(ngram_factor=0.0, ce_factor=1.0)
    mixed = loss(ngram_factor=0.5, ce_factor=0.25)
    assert_near(mixed, 0.5 * eisl + 0.25 * ce, torch.float32)


def test_gumbel_noise_changes_with_the_update_and_not_with_the_call(build):
    made = build(ngram="1,2")
    sample = made.sample(SENTENCES)

    def loss(seed):
        torch.manual_seed(seed)
        return made.criterion(made.model, sample)[0].item()

    assert loss(1) == loss(1) != loss(2)


@pytest.mark.parametrize("arch", ARCHS)
def test_validation_repeats_whatever_the_seed(build, arch):
    made = build(arch=arch, train_decoding="sample")
    sample = made.sample(SENTENCES)
    logs = []
    for seed in (1, 2):
        torch.manual_seed(seed)
        logs.append(evaluate(made, sample)[2])
    assert logs[0] == logs[1]


@pytest.mark.parametrize("arch", ARCHS)
def test_validations_perplexity_is_that_of_cross_entropy(build, arch):
    made, stock = build(arch=arch), build(arch=arch, criterion="cross_entropy")
    batches = [made.sample(SENTENCES[:3]), made.sample(SENTENCES[3:])]
    ours = reduced(made.criterion, [evaluate(made, batch)[2] for batch in batches])
    stock = stock._replace(model=made.model)
    theirs = reduced(stock.criterion, [evaluate(stock, batch)[2] for batch in batches])
    assert ours["nll_loss"] == pytest.approx(theirs["loss"], rel=1e-5)
    assert ours["ppl"] == pytest.approx(theirs["ppl"], rel=1e-3)  # rounded by fairseq


@pytest.mark.parametrize("training", [True, False])
def test_nan_is_not_silent(build, training):
    made = build()
    with torch.no_grad():
        made.model.decoder.layers[0].fc1.weight[0, 0] = math.nan
    made.criterion.train(training)
    loss, _, log = made.criterion(made.model, made.sample(SENTENCES))
    assert math.isnan(loss) and math.isnan(log["loss"]) and math.isnan(log["eisl"])


def test_impossible_tokens_stay_finite(build):
    """Logits of minus infinity are floored, forward and backward."""
    made = build(ngram="1,2")
    forward = made.model.forward

    def without_w3(**net_input):
        logits, extra = forward(**net_input)
        column = torch.arange(logits.size(2)) == made.task.target_dictionary.index("w3")
        return logits.masked_fill(column, -math.inf), extra

    made.model.forward = without_w3
    loss, _, _ = made.criterion(made.model, made.sample(SENTENCES))
    loss.backward()
    assert math.isfinite(loss)
    assert all(p.grad.isfinite().all() for p in made.model.parameters())


# -- what it logs --------------------------------------------------------------------------

TRAINING_LOG = {
    *("loss", "ntokens", "nsentences", "sample_size", "eisl", "target_tokens"),
    *("selection_entropy", "selection_rows", "candidate_tokens", "candidate_repeats"),
    *("order_2", "order_2_sentences", "order_short", "order_short_sentences"),
}
CE_LOG = {"ce", "nll", "nll_tokens"}


@pytest.mark.parametrize("ce_factor", [0.0, 1.0])
@pytest.mark.parametrize("training", [True, False])
def test_logged_values_are_plain_numbers(build, training, ce_factor):
    made = build(ce_factor=ce_factor, ngram="2")
    made.criterion.train(training)
    sample = made.sample(SENTENCES)
    log = made.criterion(made.model, sample)[2]
    assert log["sample_size"] == log["nsentences"] == len(SENTENCES)
    assert log["ntokens"] == log["target_tokens"] == sample["target"].ne(PAD).sum()
    assert made.criterion.logging_outputs_can_be_summed() is True
    for name, value in log.items():
        if torch.is_tensor(value):
            assert value.dim() == 0 and not value.requires_grad, name
        else:
            assert type(value) in (int, float), name
    assert set(log) == (TRAINING_LOG if training and not ce_factor else TRAINING_LOG | CE_LOG)


def test_two_workers_by_hand():
    """Sums over two workers; averages over sentences or tokens, weighted by their number."""
    first = {
        **dict(loss=6.0, eisl=5.0, ntokens=10, nsentences=2, sample_size=2, target_tokens=10),
        **dict(ce=2.0, nll=10 * math.log(2), nll_tokens=10),
        **{"order_2": 3.0, "order_2_sentences": 2, "order_-1": 0.0, "order_-1_sentences": 0},
        **{"order_short": 0.0, "order_short_sentences": 0},
        **dict(candidate_tokens=8, candidate_repeats=1, selection_entropy=1.0, selection_rows=2),
    }
    second = {
        **dict(loss=3.0, eisl=1.0, ntokens=5, nsentences=1, sample_size=1, target_tokens=5),
        **dict(ce=4.0, nll=20 * math.log(2), nll_tokens=5),
        **{"order_2": 0.0, "order_2_sentences": 0, "order_-1": 7.0, "order_-1_sentences": 1},
        **{"order_short": 0.0, "order_short_sentences": 0},
        **dict(candidate_tokens=2, candidate_repeats=1, selection_entropy=0.5, selection_rows=1),
    }
    expected = {
        "loss": 9 / 3,
        "eisl": 6 / 3,
        "eisl_2": 3 / 2,  # over the sentences that use the order
        "eisl_-1": 7 / 1,
        "ce": 6 / 3,
        "nll_loss": 30 / 15,  # bits a token, as fairseq
        "ppl": 2.0 ** (30 / 15),
        "candidate_length": 10 / 3,
        "target_length": 15 / 3,
        "repetition": 100 * 2 / 10,
        "selection_entropy": 1.5 / 3,
    }
    assert reduced(EISLCriterion, [first, second]) == pytest.approx(expected)
    tensors = [{k: torch.tensor(v) for k, v in log.items()} for log in (first, second)]
    assert reduced(EISLCriterion, tensors) == pytest.approx(expected, rel=1e-6)


def test_an_order_that_no_sentence_used_is_not_logged():
    """Neither as zero, which reads like a perfect loss, nor as null, which no reader of the JSON
    log expects; the average leaves it out."""
    used, unused = {"order_4": 6.0, "order_4_sentences": 2}, {"order_4": 0, "order_4_sentences": 0}
    rest = dict(loss=1.0, eisl=1.0, sample_size=1, target_tokens=1)
    rest.update(candidate_tokens=1, candidate_repeats=0, selection_entropy=0.0)
    with metrics.aggregate(new_root=True) as seen:
        EISLCriterion.reduce_metrics([{**rest, **unused}])
        assert "eisl_4" not in seen.get_smoothed_values()
        EISLCriterion.reduce_metrics([{**rest, **used}])
        EISLCriterion.reduce_metrics([{**rest, **unused}])
        assert seen.get_smoothed_values()["eisl_4"] == 3
        # After it was logged fairseq empties every meter: of the next updates one uses the order.
        for step, expected in ((unused, None), (used, 3), (unused, 3)):
            if expected is None:
                seen.reset()
            EISLCriterion.reduce_metrics([{**rest, **step}])
            assert seen.get_smoothed_values().get("eisl_4") == expected
        other = type(seen)()
        other.load_state_dict(seen.state_dict())  # as in a checkpoint
        assert other.get_smoothed_values() == seen.get_smoothed_values()


def test_a_candidate_that_is_shorter_than_its_target_has_an_order_of_its_own(build):
    """Order 0 is the target's length, which need not fit into the candidate."""
    made = build(ngram="0", seed=11)
    made.criterion.eval()
    sample = made.sample(SENTENCES)
    losses, _, log = made.criterion(made.model, sample, reduce=False)
    short = int(log["order_short_sentences"])
    assert 0 < short == len(losses) - log["order_0_sentences"]
    assert log["order_0"] + log["order_short"] == pytest.approx(losses.sum().item(), rel=1e-5)
    assert "eisl_short" in reduced(made.criterion, [log])


@pytest.mark.parametrize("training", [True, False])
def test_summed_logs_give_the_same_averages(build, training):
    """fairseq sums the outputs of workers and of --update-freq before it reduces them."""
    made = build(ngram="1,3")
    made.criterion.train(training)
    logs = [made.criterion(made.model, made.sample(s))[2] for s in (SENTENCES[:2], SENTENCES[2:])]
    summed = {key: logs[0][key] + logs[1][key] for key in logs[0]}
    together = reduced(made.criterion, [summed])
    assert reduced(made.criterion, logs) == pytest.approx(together, rel=1e-6)
    whole = made.criterion(made.model, made.sample(SENTENCES))[2]
    if not training:
        assert reduced(made.criterion, [whole]) == pytest.approx(together, rel=1e-5)


def test_logged_terms_make_up_the_loss(build):
    """Orders that a sentence is too short for are not counted there."""
    made = build(ngram="2,0", ngram_weight="1,3", train_decoding="teacher-forcing")
    made.criterion.eval()
    sample = made.sample(["w1 w2 w3", "", "w5"])  # 4, 1 and 2 tokens with EOS
    loss, _, log = made.criterion(made.model, sample, reduce=False)
    assert loss.shape == (3,) and log["loss"] == loss.sum()
    assert log["order_2_sentences"] == 2 and log["order_0_sentences"] == 3
    assert "order_short" not in log  # no sentence is too short for order 0
    # The sentence of EOS alone has order 0 = 1 only, with all the weight.
    one = made.criterion(made.model, made.sample([""]), reduce=False)[2]
    assert loss.sum().item() == pytest.approx(
        float(log["order_2"] + 3 * log["order_0"] + one["order_0"]), rel=1e-5
    )


def test_repeated_tokens_of_the_candidate_are_counted(build):
    made = build(train_decoding="teacher-forcing")
    log = made.criterion(made.model, made.sample(["w1 w1 w1 w2", "w5 w5"]))[2]
    assert log["candidate_repeats"] == 3 and log["candidate_tokens"] == 5 + 3


def test_it_has_no_parameters_and_no_state(build):
    made = build(ce_factor=1.0)
    made.criterion(made.model, made.sample(SENTENCES))
    assert not list(made.criterion.parameters()) and not list(made.criterion.buffers())
    assert not made.criterion.state_dict()
    assert not any(isinstance(v, torch.nn.Module) for v in vars(made.criterion).values())
