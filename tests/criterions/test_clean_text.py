"""``--clean-text`` on eisl and token_weighted: what is counted, where, and what is refused."""

import logging

import pytest
import torch
from fairseq.data import data_utils

from fairseq_eisl.losses import CleanTextWeights, NGramWeights, count_ngrams, eisl_loss
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near

PAD = 1
NOISE = ["--target-noise", "repeat:0.5"]
TEACHER = {"ngram": "1,2", "train_decoding": "teacher-forcing", "position_selection": "softmax"}


@pytest.fixture
def text(toy):
    """The prefix of a text without noise: the targets of the validation set."""
    return str(toy.bin / "valid.en-de.de")


def loaded(made):
    """With its training set, as a training has it."""
    made.task.load_dataset("train")
    return made


def pairs_of(made):
    """The training set, without what makes decoder inputs of its targets."""
    pairs = made.task.dataset("train")
    return getattr(pairs, "dataset", pairs)


def weights_of(made, prefix, smoothing=0.3, cap=5.0):
    """By hand: of the noisy targets and the text, without what marks the start."""
    dictionary = made.task.target_dictionary
    clean = data_utils.load_indexed_dataset(prefix, dictionary)
    noisy = pairs_of(made).tgt
    texts = ([row[row != dictionary.bos()] for row in text] for text in (clean, noisy))
    counts = (count_ngrams(text, len(dictionary)) for text in texts)
    return CleanTextWeights(*counts, smoothing=smoothing, cap=cap)


def test_training_weighs_n_grams_and_validation_does_not(build, text):
    made = loaded(build(*NOISE, clean_text=text, clean_text_cap=3.0, **TEACHER))
    sample = made.sample(SENTENCES)
    target, logits = sample["target"], made.model(**sample["net_input"])[0]
    mask = target.ne(PAD)
    masks = {"output_mask": mask, "target_mask": mask, "reduction": "sum"}
    found = weights_of(made, text, cap=3.0)(target)
    assert found.tokens[mask].unique().numel() > 3 and found.pairs.min() < 0.3
    options = {"ngrams": (1, 2), "selection": "softmax", **masks}
    loss, _, _ = made.criterion(made.model, sample)
    assert_near(loss, eisl_loss(logits, target, ngram_weights=found, **options), torch.float32)
    made.criterion.eval()
    loss, _, _ = made.criterion(made.model, sample)
    assert_near(loss, eisl_loss(logits, target, **options), torch.float32)


def test_cross_entropy_weighs_each_token_behind_the_one_before(build, text):
    options = {"criterion": "token_weighted", "token_weighting": "none"}
    made = loaded(build(*NOISE, clean_text=text, **options))
    sample = made.sample(SENTENCES)
    target, mask = sample["target"], sample["target"].ne(PAD)
    log_probs = made.model(**sample["net_input"])[0].log_softmax(2)
    own = log_probs.gather(2, target.unsqueeze(2)).squeeze(2).masked_fill(~mask, 0.0)
    tokens, pairs = weights_of(made, text)(target)
    counts = torch.cat([tokens[:, :1], pairs], 1)
    for training, expected in ((True, own * counts), (False, own)):
        made.criterion.train(training)
        loss, _, _ = made.criterion(made.model, sample)
        assert_near(loss, -(expected.sum(1) / mask.sum(1)).sum(), torch.float32)


@pytest.mark.parametrize("arch", ["nonautoregressive_transformer", "cmlm_transformer"])
def test_a_start_symbol_that_the_text_lacks_counts_fully(build, text, arch):
    made = loaded(build(*NOISE, arch=arch, clean_text=text))
    bos = made.task.target_dictionary.bos()
    assert pairs_of(made).tgt[0][0] == bos
    target = made.sample(SENTENCES)["target"]
    found = made.criterion.training_weights(target)
    assert found.tokens[:, 0].eq(1).all() and found.pairs[:, 0].eq(1).all()
    expected = weights_of(made, text)(target)
    assert found.pairs.equal(expected.pairs) and found.pairs.min() < 0.3


@pytest.mark.parametrize("arch", ["cmlm_transformer", "ctc_transformer", "dag_transformer"])
def test_models_that_are_not_autoregressive(build, text, monkeypatch, arch):
    """All weights doubled, the loss is."""
    made = loaded(build(arch=arch, clean_text=text, ngram="2,3"))
    sample, losses = made.sample(SENTENCES), []
    for factor in (1.0, 2.0):

        def alike(targets, factor=factor):
            tokens = torch.full(targets.shape, factor)
            return NGramWeights(tokens, tokens[:, 1:])

        monkeypatch.setattr(made.criterion, "training_weights", alike)
        torch.manual_seed(1)
        _, _, log = made.criterion(made.model, sample)
        losses.append(log["order_2"])
    assert losses[1].item() == pytest.approx(2 * losses[0].item(), rel=1e-5)


def test_it_says_what_was_counted(build, text, caplog):
    made = loaded(build("--target-noise", "blank:0.5", clean_text=text, **TEACHER))
    with caplog.at_level(logging.INFO, logger="fairseq_eisl"):
        for _ in range(2):
            made.criterion(made.model, made.sample(SENTENCES))
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("clean text")]
    assert len(lines) == 2
    assert "counted 200 training targets and 20 clean sentences" in lines[0]
    assert "tokens that lose most: <unk> 0.00 (" in lines[1]


def test_a_text_that_is_not_there(build, toy):
    with pytest.raises(ValueError, match=r"--clean-text: there is no \S+/nothing.bin with \S+"):
        build(clean_text=str(toy.bin / "nothing"))


def test_a_text_of_another_dictionary(build, toy, tmp_path):
    for end in ("bin", "idx"):
        source = toy.bin / f"valid.en-de.de.{end}"
        (tmp_path / f"valid.en-de.de.{end}").write_bytes(source.read_bytes())
    lines = (toy.bin / "dict.de.txt").read_text().splitlines()
    path = tmp_path / "dict.de.txt"
    path.write_text("".join(f"{line}\n" for line in [*lines[1::-1], *lines[2:]]))
    with pytest.raises(ValueError, match="is not the dictionary of the targets: id 4 is '"):
        build(clean_text=str(tmp_path / "valid.en-de.de"))
    path.write_text("".join(f"{line}\n" for line in [*lines, "<mask> 1"]))  # as denoising's
    build(clean_text=str(tmp_path / "valid.en-de.de"))


def test_targets_that_are_not_loaded(build, text):
    made = build(clean_text=text, **TEACHER)
    with pytest.raises(ValueError, match=r"--train-subset train, which \w+ has not loaded \(loade"):
        made.criterion(made.model, made.sample(SENTENCES))


@pytest.mark.parametrize("criterion", ["eisl", "token_weighted"])
@pytest.mark.parametrize(
    "options, message",
    [
        ({"clean_text_smoothing": 0.0}, "--clean-text-smoothing must be a finite number above 0"),
        ({"clean_text_cap": 0.5}, "--clean-text-cap must be 1 or above"),
    ],
)
def test_numbers_that_cannot_be_meant(build, criterion, options, message):
    with pytest.raises(ValueError, match=message):
        build(criterion=criterion, **options)


def test_a_compatible_loss_weighs_nothing(build, text):
    with pytest.raises(ValueError, match="--clean-text .*: to --eisl-compat released all n-grams"):
        build(arch="cmlm_transformer", clean_text=text, eisl_compat="released")


@pytest.mark.parametrize("criterion", ["eisl", "token_weighted"])
def test_its_numbers_without_a_text_are_said(build, caplog, criterion):
    made = build(criterion=criterion, clean_text_cap=9.0)
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        made.criterion(made.model, made.sample(SENTENCES))
    assert "--clean-text-cap 9.0: no effect without --clean-text" in caplog.text
