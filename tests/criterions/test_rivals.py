"""What holds for every comparison method: padding, singletons, update-freq, half precision."""

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.criterions import candidate_flags
from tests import toy as toy_corpus
from tests.criterions.conftest import (
    EXTRA,
    SENTENCES,
    assert_update_freq_changes_nothing,
    loss_and_gradient,
)
from tests.criterions.rivals import CASES, FLAGS, PAIRS
from tests.tolerances import assert_near

PAD = 1
each_pair = pytest.mark.parametrize("case, arch", PAIRS)


@pytest.fixture(scope="module")
def make(toy):
    def make(case, arch, *flags, **more):
        criterion, _, options = CASES[case]
        flags = (*EXTRA.get(arch, []), *FLAGS.get(case, []), *flags)
        scale = 2 if arch in toy_corpus.NAT_ARCHS else 1
        rest = {"criterion": criterion, "scale": scale, **options, **more}
        return toy_corpus.setup(toy.bin, *flags, arch=arch, **rest)

    return make


@each_pair
def test_more_padding_changes_nothing(make, case, arch):
    made = make(case, arch)

    def run(more):
        sample = made.sample(SENTENCES)
        names = ["target", *(["prev_target"] if arch in toy_corpus.NAT_ARCHS else [])]
        for name in names:
            sample[name] = F.pad(sample[name], (0, more), value=PAD)
        inputs = sample["net_input"]
        inputs["prev_output_tokens"] = F.pad(inputs["prev_output_tokens"], (0, more), value=PAD)
        return loss_and_gradient(made, sample)

    (loss, _, log, grads), (padded_loss, _, padded_log, padded_grads) = run(0), run(3)
    assert_near(padded_loss, loss, torch.float32, "loss")
    assert log.keys() == padded_log.keys() and case.split()[0] in log
    for name in grads:
        assert_near(padded_grads[name], grads[name], torch.float32, name)
    assert any(grad.abs().sum() > 0 for grad in grads.values())


@each_pair
def test_a_batch_is_the_sum_of_its_sentences(make, case, arch):
    made = make(case, arch)

    def losses(sentences, ids):
        torch.manual_seed(4)
        sample = made.sample(sentences, ids)
        loss, size, _ = made.criterion(made.model, sample, reduce=False)
        assert size == len(sentences)
        return dict(zip(sample["id"].tolist(), loss))

    together = losses(SENTENCES, range(8))
    alone = {i: losses([sentence], [i])[i] for i, sentence in enumerate(SENTENCES)}
    if arch == "nacrf_transformer":  # its likelihood comes as one mean, spread over the batch
        together, alone = ({0: sum(x.values())} for x in (together, alone))
    for index, loss in together.items():
        assert_near(alone[index], loss, torch.float32, str(index))


@each_pair
def test_update_freq_gives_the_gradients_of_the_whole_batch(make, case, arch):
    assert_update_freq_changes_nothing(lambda: make(case, arch, "--lr", "0"))


@each_pair
@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
def test_half_precision_is_finite(make, case, arch, dtype):
    made = make(case, arch)
    made.model.to(dtype)
    loss, _, _, grads = loss_and_gradient(made, made.sample(SENTENCES))
    assert loss.isfinite() and all(grad.isfinite().all() for grad in grads.values())


@pytest.mark.parametrize("case", CASES)
def test_validation_logs_what_training_does_and_the_likelihood(make, case):
    made = make(case, CASES[case][1][0])
    made.criterion.eval()
    made.model.eval()
    with torch.no_grad():
        _, _, log = made.criterion(made.model, made.sample(SENTENCES))
    rewarded = case.startswith(("policy_gradient", "best_of_n", "contrastive_margin"))
    name = [] if rewarded else [case.split()[0]]
    likelihood = [] if case in FLAGS else ["nll", "nll_tokens", "ce"]
    assert {*likelihood, *name} <= log.keys()


@pytest.mark.parametrize(
    "criterion, options, words",
    [
        ("token_weighted", {"tailr_gamma": 1.5}, r"--tailr-gamma must be in \[0, 1\], not 1.5"),
        (
            "token_weighted",
            {"convex_power": -1.0},
            "--convex-power must be a finite number above 0",
        ),
        ("token_weighted", {"ce_factor": -1.0}, "--ce-factor must be a finite number"),
        ("policy_gradient", {"pg_samples": 1, "pg_baseline": "rloo"}, "--pg-samples must be 2 or"),
        ("policy_gradient", {"pg_ema_decay": 1.0}, r"--pg-ema-decay must be in \[0, 1\), not 1.0"),
        ("policy_gradient", {"output_max_len_b": 0}, "--output-max-len-b must be 1 or more, not 0"),
        ("best_of_n", {"hypotheses": 0}, "--hypotheses must be 1 or more, not 0"),
        ("contrastive_margin", {"hypotheses": 1}, "--hypotheses must be 2 or more, not 1"),
        ("contrastive_margin", {"margin": -1.0}, "--margin must be a finite number, 0 or above"),
        ("axe", {"axe_skip_penalty": 0.5}, "--axe-skip-penalty must be a finite number, 1 or abo"),
        ("axe", {"axe_factor": -1.0}, "--axe-factor must be a finite number, 0 or above, not -1"),
        ("axe", {"axe_factor": 0.0}, "--axe-factor and --ce-factor are both 0"),
        ("axe", {"axe_blank": "<blank>"}, "--axe-blank: '<blank>' is not in the target dictionary"),
        ("axe", {"axe_blank": "<unk>"}, "--axe-blank: '<unk>' has a meaning of its own; choose a"),
        ("oaxe", {"oaxe_skip": 1.0}, r"--oaxe-skip must be in \[0, 1\), not 1.0"),
        ("bag_of_ngrams", {"bag_ngram": 0}, "--bag-ngram must be 1 or more, not 0"),
        ("bag_of_ngrams", {"bag_factor": 0.0}, "--bag-factor and --ce-factor are both 0"),
    ],
)
def test_a_wrong_flag_is_named(toy, criterion, options, words):
    rewarded = criterion in ("policy_gradient", "best_of_n", "contrastive_margin")
    arch = "transformer" if rewarded else "cmlm_transformer"
    with pytest.raises(ValueError, match=words):
        toy_corpus.setup(toy.bin, arch=arch, criterion=criterion, **options)


def test_an_idle_number_is_said(make, caplog):
    made = make("token_weighted dft", "transformer", tailr_gamma=0.5)
    with caplog.at_level("WARNING", logger="fairseq_eisl"):
        made.criterion(made.model, made.sample(SENTENCES))
    lines = [r.getMessage() for r in caplog.records if "no effect" in r.message]
    assert lines == ["--tailr-gamma 0.5: no effect with --token-weighting dft"]


def test_criterions_without_candidates_have_no_flags_of_candidates():
    fields = candidate_flags.SequenceCriterionConfig.__dataclass_fields__
    assert "train_decoding" not in fields and "ce_factor" in fields
