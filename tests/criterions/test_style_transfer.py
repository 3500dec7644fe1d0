"""``--criterion style_transfer``: each part of the model learns from its own losses alone."""

import pytest
import torch
from fairseq.logging import metrics
from torch.nn import functional as F

from fairseq_eisl.criterions.transfer_scores import transfer_score
from fairseq_eisl.losses import eisl_loss, random_numbers
from fairseq_eisl.losses.soft_tokens import soft_tokens
from tests.criterions.style import build, mark_nouns, preprocess, write_styles
from tests.tolerances import assert_near

FACTORS = {"style_factor": 2.0, "fluency_factor": 0.5, "eisl_factor": 0.5}
PARTS = {
    "generator": ("encoder.", "decoder."),
    "classifier": ("classifier.",),
    "language": ("language.",),
}
OFF = dict.fromkeys((*FACTORS, "ce_factor", "content_factor"), 0.0)


@pytest.fixture(scope="module")
def data(tmp_path_factory):
    folder = tmp_path_factory.mktemp("styles")
    write_styles(folder / "raw")
    code, output = preprocess(folder / "raw", folder / "bin")
    assert code == 0, output
    return folder / "bin"


def gradients(made, sample, update=0):
    torch.manual_seed(4)
    made.model.zero_grad()
    made.model.set_num_updates(update)
    loss, size, log = made.criterion(made.model, sample)
    loss.backward()
    grads = {n: p.grad.clone() for n, p in made.model.named_parameters() if p.grad is not None}
    return loss.detach(), size, log, grads


def touched(grads):
    return {n for n, g in grads.items() if g.abs().sum() > 0}


def test_the_style_loss_reaches_the_encoder_and_the_style_embedding_and_not_the_classifier(data):
    with_style = build(data, **{**OFF, "style_factor": 2.0})
    without = build(data, **OFF)
    sample = with_style.sample()
    found, plain = (gradients(made, sample)[3] for made in (with_style, without))
    assert all(n.startswith(("classifier.", "language.")) for n in touched(plain))
    reached = touched(found) - touched(plain)
    for name in ("encoder.gru.weight_ih_l0", "encoder.embed_style.weight", "decoder.cell.weight_hh",
                 "encoder.embed_tokens.weight", "decoder.output.weight"):  # fmt: skip
        assert name in reached, name
    for name, grad in plain.items():  # the classifier learns from real sentences alone
        if name.startswith(("classifier.", "language.")):
            assert torch.equal(found[name], grad), name


@pytest.mark.parametrize("feedback", ["straight-through", "soft", "argmax"])
@pytest.mark.parametrize("part", ["style_factor", "fluency_factor", "eisl_factor"])
def test_every_term_of_the_transferred_sentence_trains_the_generator_alone(data, part, feedback):
    made = build(data, **{**OFF, part: 1.0}, soft_feedback=feedback)
    plain = build(data, **OFF, soft_feedback=feedback)
    sample = made.sample()
    found, before = gradients(made, sample)[3], gradients(plain, sample)[3]
    assert "encoder.gru.weight_hh_l0" in touched(found) - touched(before)
    for name in before:
        if name.startswith(("classifier.", "language.")):
            assert torch.equal(found[name], before[name]), name


def test_one_optimiser_is_as_good_as_three(data):
    """Three Adams, each over the losses of its own part, end where one over the sum does."""
    one, three = (build(data, **FACTORS) for _ in range(2))
    optimiser = torch.optim.Adam(one.model.parameters(), lr=0.01)
    groups = {
        part: [p for n, p in three.model.named_parameters() if n.startswith(names)]
        for part, names in PARTS.items()
    }
    several = {part: torch.optim.Adam(group, lr=0.01) for part, group in groups.items()}
    for update in range(3):
        sample = one.sample()
        gradients(one, sample, update)
        optimiser.step()
        # The original's way: each part's own losses, backwards on their own.
        kept = {}
        for part, group in groups.items():
            torch.manual_seed(4)
            three.model.zero_grad()
            loss = part_loss(three, sample, part)
            for p, grad in zip(group, torch.autograd.grad(loss, group, allow_unused=True)):
                kept[p] = grad
        for p, grad in kept.items():
            p.grad = grad
        for each in several.values():
            each.step()
    for (name, a), b in zip(one.model.named_parameters(), three.model.parameters()):
        torch.testing.assert_close(a, b, msg=name)


def part_loss(made, sample, part):
    """The losses of one part of the model, as a sum over sentences."""
    criterion, model = made.criterion, made.model
    seeds = criterion.seeds(sample)
    logits, extra = model(
        **sample["net_input"], content_mask=None, temperature=1.0,
        seeds=random_numbers.fold(seeds, 1), feedback="straight-through",
    )  # fmt: skip
    outputs, target, styles = extra["outputs"], sample["target"], sample["net_input"]["styles"]
    if part == "classifier":
        return F.cross_entropy(outputs.classified, styles, reduction="sum")
    real = target.ne(made.task.dictionary.pad())
    if part == "language":
        return sum(F.cross_entropy(s[m], t[m]) for s, t, m in zip(outputs.language, target, real))
    loss = F.cross_entropy(logits[real], target[real], reduction="sum")
    soft = outputs.soft
    loss = loss + 2.0 * F.cross_entropy(outputs.soft_classified, 1 - styles, reduction="sum")
    scores = outputs.soft_language.log_softmax(2)
    for weights, score, mask in zip(soft.weights, scores, soft.mask):
        loss = loss - 0.5 * (weights * score).sum(1)[mask].mean()
    eisl = eisl_loss(
        soft.logits, target, output_mask=soft.mask, target_mask=real, reduction="sum",
        generator=random_numbers.fold(seeds, 2),
    )  # fmt: skip
    return loss + 0.5 * eisl


def test_the_eisl_term_is_eisl_loss_of_the_same_logits(data):
    made = build(data, eisl_factor=0.5, ngram="1,2", ngram_weight="0.8,0.2")
    sample = made.sample()
    _, _, log, _ = gradients(made, sample)
    torch.manual_seed(4)
    seeds = made.criterion.seeds(sample)
    soft = made.model(
        **sample["net_input"], content_mask=None, temperature=1.0,
        seeds=random_numbers.fold(seeds, 1),
    )[1]["outputs"].soft  # fmt: skip
    expected = eisl_loss(
        soft.logits, sample["target"], output_mask=soft.mask, ngrams=(1, 2), weights=(0.8, 0.2),
        target_mask=sample["target"].ne(made.task.dictionary.pad()), reduction="sum",
        generator=random_numbers.fold(seeds, 2),
    )  # fmt: skip
    assert log["eisl"].item() == pytest.approx(expected.item(), rel=1e-6)


@pytest.mark.parametrize("training", [True, False])
def test_a_batch_is_the_sum_of_its_sentences_and_padding_changes_nothing(data, training):
    made = build(data, **FACTORS, content_factor=0.1)
    mark_nouns(made.task)
    made.model.train(training), made.criterion.train(training)
    lengths = {len(made.task.datasets["valid"][i]["tokens"]) for i in range(18)}
    assert len(lengths) > 1
    whole, _, log, grads = gradients(made, made.sample())
    singles = [gradients(made, made.sample(i)) for i in range(18)]
    assert_near(sum(s[0] for s in singles), whole, torch.float32)
    for key in log:
        total = sum(float(s[2][key]) for s in singles)
        assert total == pytest.approx(float(log[key]), rel=1e-4, abs=1e-4), key
    for name, grad in grads.items():
        assert_near(sum(s[3][name] for s in singles), grad, torch.float32, name)


def test_nothing_is_transferred_before_the_pretraining_ends(data):
    made = build(data, **FACTORS, pretrain_updates=5)
    sample = made.sample()
    before, after = (gradients(made, sample, update)[2] for update in (4, 5))
    assert "style" not in before and {"style", "fluency", "eisl"} <= set(after)
    made.criterion.eval(), made.model.eval()
    assert "transferred_right" in gradients(made, sample, 0)[2]  # validation always is


def test_the_temperature_falls_after_the_pretraining(data):
    made = build(
        data, pretrain_updates=10, soft_temperature_interval=4, soft_temperature_min=0.2,
        soft_temperature=0.8,
    )  # fmt: skip
    found = [made.criterion.temperature(u) for u in (0, 10, 13, 14, 17, 18, 100)]
    assert found == pytest.approx([0.8, 0.8, 0.8, 0.4, 0.4, 0.2, 0.2])
    assert build(data).criterion.temperature(10**6) == 1.0


def test_validation_repeats_and_says_what_the_transferred_sentences_are(data):
    made = build(data, **FACTORS)
    made.criterion.eval(), made.model.eval()
    sample = made.sample()
    first, second = (gradients(made, sample)[2] for _ in range(2))
    torch.manual_seed(99)
    other = made.criterion(made.model, sample)[2]
    for key in first:
        assert float(first[key]) == float(second[key]) == float(other[key]), key
    assert first["transferred"] == 18 and 0 <= first["transferred_right"] <= 18


def test_soft_words_end_with_their_sentence(data):
    """After its own end symbol, and beyond the length of its source, a sentence has no words."""
    made = build(data)
    sample = made.sample()
    soft = made.model(
        **sample["net_input"], content_mask=None, temperature=1.0, seeds=sample["id"]
    )[1]["outputs"].soft
    eos, lengths = made.task.dictionary.eos(), sample["net_input"]["src_lengths"]
    for tokens, mask, length in zip(soft.tokens.tolist(), soft.mask, lengths.tolist()):
        ends = tokens.index(eos) + 1 if eos in tokens else len(tokens)
        assert mask.sum() == min(ends, length) and mask[: int(mask.sum())].all()
    noise = torch.stack(
        [random_numbers.gumbel(random_numbers.fold(sample["id"], t), soft.logits.size(2))
         for t in range(soft.logits.size(1))], 1,
    )  # fmt: skip
    torch.testing.assert_close(soft.weights, soft_tokens(soft.logits, 1.0, noise))


def test_the_original_programs_losses(data):
    options = {**OFF, "style_factor": 1.0, "style_compat": "original", "soft_feedback": "argmax"}
    made = build(data, **options)
    _, _, log, _ = gradients(made, made.sample())
    # A softmax taken twice leaves a loss of at least log(1 + exp(-1)) = 0.313262 for two styles.
    assert log["style"] / 18 > 0.313262 and log["classifier"] / 18 > 0.313262
    mark_nouns(made.task)
    content = build(data, **{**options, "style_factor": 0.0, "content_factor": 1.0})
    mark_nouns(content.task)
    _, _, log, grads = gradients(content, content.sample())
    assert log["content"] > 0 and "encoder.gru.weight_hh_l0" not in touched(grads)
    real = build(data, **{**OFF, "content_factor": 1.0})
    mark_nouns(real.task)
    assert "encoder.gru.weight_hh_l0" in touched(gradients(real, real.sample())[3])


@pytest.mark.parametrize(
    "options, words",
    [
        ({"style_factor": -1.0}, "--style-factor must be a finite number, 0 or above, not -1.0"),
        ({"soft_temperature": 0.0}, "--soft-temperature must be a number above 0, not 0.0"),
        ({"pretrain_updates": -1}, "--pretrain-updates must be 0 or more, not -1"),
        ({"accuracy_goal": 101.0}, "--accuracy-goal is a percentage, 0 to 100, not 101.0"),
        ({"ngram": "two"}, "--ngram must be whole numbers"),
        ({"style_compat": "original"}, "--style-compat original goes with --soft-feedback argmax"),
    ],
)
def test_wrong_flags_are_named(data, options, words):
    with pytest.raises(ValueError, match=words):
        build(data, **options)


def test_content_words_must_be_known(data):
    made = build(data, content_factor=0.1)
    with pytest.raises(ValueError, match="--content-factor 0.1 needs --content-words"):
        made.criterion(made.model, made.sample())


def test_another_model_is_refused(data):
    made = build(data)
    inner = torch.nn.Linear(2, 2)
    with pytest.raises(ValueError, match="trains --arch style_transfer, not Linear"):
        made.criterion(inner, made.sample())


def test_the_score_that_chooses_is_the_same_for_any_number_of_workers(data):
    """Their logs reach the criterion as one, summed up."""
    made = build(data, **FACTORS, accuracy_goal=60.0)
    made.criterion.eval(), made.model.eval()
    logs = [gradients(made, made.sample(i))[2] for i in range(2)]
    summed = {key: sum(log[key] for log in logs) for key in logs[0]}
    found = []
    for given in (logs, [summed]):
        with metrics.aggregate(new_root=True) as shown:
            made.criterion.reduce_metrics(given)
        found.append(shown.get_smoothed_values())
    assert found[0]["transfer_score"] == found[1]["transfer_score"]
    accuracy, bleu = found[0]["accuracy"], found[0]["bleu"]
    assert found[0]["transfer_score"] == transfer_score(bleu, accuracy, 60.0)
