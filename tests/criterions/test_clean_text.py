"""``--clean-text`` on eisl and token_weighted: what is counted, where, and what is refused."""

import logging
import re

import pytest
import torch
from fairseq.data import data_utils, indexed_dataset

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
    """By hand: of the noisy targets and the text, both with a symbol for the start or without."""
    dictionary = made.task.target_dictionary
    clean = list(data_utils.load_indexed_dataset(prefix, dictionary))
    noisy = list(pairs_of(made).tgt)
    if noisy[0][0] == dictionary.bos():
        clean = [torch.cat([row.new_tensor([dictionary.bos()]), row]) for row in clean]
    counts = (count_ngrams(text, len(dictionary)) for text in (clean, noisy))
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


@pytest.mark.parametrize("smoothing", [0.0, 0.2])
def test_cross_entropy_beside_the_loss_is_weighed_as_well(build, text, smoothing):
    """The NLL of the log is not; with the factor of EISL 0 nothing else is trained."""
    options = {"clean_text": text, "ce_factor": 0.5, "label_smoothing": smoothing}
    made = loaded(build(*NOISE, ngram_factor=0.0, **options))
    sample = made.sample(SENTENCES)
    target, mask = sample["target"], sample["target"].ne(PAD)
    log_probs = made.model(**sample["net_input"])[0].log_softmax(2)
    own = log_probs.gather(2, target.unsqueeze(2)).squeeze(2)
    # Of fairseq: the share is spread over the other symbols alone.
    spread = smoothing / (log_probs.size(2) - 1)
    smoothed = (1 - smoothing - spread) * own + spread * log_probs.sum(2)
    counts = weights_of(made, text)(target).of_tokens()
    for training, weights in ((True, counts), (False, torch.ones_like(counts))):
        made.criterion.train(training)
        _, _, log = made.criterion(made.model, sample)
        expected = (smoothed * weights).masked_fill(~mask, 0.0).sum(1) / mask.sum(1).clamp(min=1)
        assert_near(log["ce"], -expected.sum(), torch.float32)
        assert_near(log["nll"], -own.masked_fill(~mask, 0.0).sum(), torch.float32)
    made.criterion.train()
    loss, _, log = made.criterion(made.model, sample)
    assert_near(loss, 0.5 * log["ce"], torch.float32)
    both = loaded(build(*NOISE, **options, **TEACHER))
    alone = loaded(build(*NOISE, **{**options, "ce_factor": 0.0}, **TEACHER))
    parts = [each.criterion(each.model, sample)[0] for each in (both, alone, made)]
    assert_near(parts[0], parts[1] + parts[2], torch.float32)


@pytest.mark.parametrize("arch", ["nonautoregressive_transformer", "cmlm_transformer"])
def test_sentences_of_the_text_begin_as_targets_do(build, text, arch):
    """Else the first word of each would be a pair that nothing is known of."""
    made = loaded(build("--target-noise", "blank:0.5", arch=arch, clean_text=text))
    dictionary = made.task.target_dictionary
    assert pairs_of(made).tgt[0][0] == dictionary.bos()
    target = torch.tensor([[dictionary.bos(), dictionary.unk(), dictionary.eos()]])
    found = made.criterion.training_weights(target)
    assert found.pairs.max() < 0.1 and found.of_tokens()[0, 1] < 0.1
    assert found.pairs.equal(weights_of(made, text)(target).pairs)


def test_sentences_of_the_text_end_as_targets_do(build, text):
    """Targets of a pretrained BART have the symbol of their language behind EOS."""
    options = {"criterion": "token_weighted", "token_weighting": "none"}
    made = loaded(build(*NOISE, clean_text=text, **options))
    pairs, symbol = pairs_of(made), 7
    pairs.tgt = [torch.cat([ids, ids.new_tensor([symbol])]) for ids in pairs.tgt]
    eos = made.task.target_dictionary.eos()
    weights = made.criterion.ngram_weights
    found = weights(torch.tensor([[eos, symbol]]))
    # As often in either text, but for the share of the lengths.
    assert found.pairs[0, 0] > 0.5 and found.tokens[0, 1] > 0.5


def test_what_is_counted_is_the_same_in_every_epoch(build, text):
    """Where noise is drawn anew, a training that goes on counts what it counted at its start."""
    found, noisy = [], []
    for epoch in (1, 5):
        made = loaded(build(*NOISE, "--target-noise-resample", clean_text=text))
        made.task.dataset("train").set_epoch(epoch)
        found.append(made.criterion.training_weights(made.sample(SENTENCES)["target"]))
        noisy.append(made.task.dataset("train").tgt[3].tolist())
    assert noisy[0] != noisy[1]
    assert found[0].pairs.equal(found[1].pairs) and found[0].tokens.equal(found[1].tokens)


def test_the_training_set_may_have_another_name(build, text, caplog):
    made = build("--train-subset", "valid", clean_text=text, **TEACHER)
    made.task.load_dataset("valid")
    made.task.load_dataset("train")
    with caplog.at_level(logging.INFO, logger="fairseq_eisl"):
        made.criterion(made.model, made.sample(SENTENCES))
    assert "counted 20 training targets and 20 clean sentences" in caplog.text


INAT = "iterative_nonautoregressive_transformer"


@pytest.fixture
def logged(monkeypatch):
    """What a criterion logs of SENTENCES where every n-gram weighs ``factor``."""

    def found(made, factor):
        def alike(targets):
            tokens = torch.full(targets.shape, factor)
            return NGramWeights(tokens, tokens[:, 1:])

        monkeypatch.setattr(made.criterion, "training_weights", alike)
        torch.manual_seed(1)
        return made.criterion(made.model, made.sample(SENTENCES))[2]

    return found


@pytest.mark.parametrize("arch", ["cmlm_transformer", INAT, "ctc_transformer", "dag_transformer"])
def test_models_that_are_not_autoregressive(build, text, logged, arch):
    """All weights doubled, the loss is, and the cross entropy; no likelihood of alignments is."""
    made = loaded(build(arch=arch, clean_text=text, ngram="2,3", ce_factor=0.5))
    one, two = logged(made, 1.0), logged(made, 2.0)
    assert two["order_2"].item() == pytest.approx(2 * one["order_2"].item(), rel=1e-5)
    times = 1 if arch in ("ctc_transformer", "dag_transformer") else 2
    assert two["ce"].item() == pytest.approx(times * one["ce"].item(), rel=1e-5)


def test_later_refinement_steps_are_weighed_where_they_have_cross_entropy_alone(
    build, text, logged
):
    options = {"eisl_steps": "first", "eisl_special": "include"}
    made = loaded(build(arch=INAT, clean_text=text, ngram="2", **options))
    one, three = logged(made, 1.0), logged(made, 3.0)
    assert three["eisl"].item() == pytest.approx(3 * one["eisl"].item(), rel=1e-5)


def test_it_says_what_was_counted(build, text, caplog):
    made = loaded(build("--target-noise", "blank:0.5", clean_text=text, **TEACHER))
    with caplog.at_level(logging.INFO, logger="fairseq_eisl"):
        for _ in range(2):
            made.criterion(made.model, made.sample(SENTENCES))
    lines = [r.getMessage() for r in caplog.records if r.getMessage().startswith("clean text")]
    assert len(lines) == 2
    assert "counted 200 training targets and 20 clean sentences" in lines[0]
    assert "tokens that lose most: <unk> 0.01 (" in lines[1]


@pytest.mark.parametrize(
    "name, message",
    [
        ("nothing", r"there is no \S+/nothing.bin and no \S+/nothing.idx \(fairseq-preprocess"),
        ("valid.en-de.de.bin", r"the prefix of both is \S+/valid.en-de.de\)"),
        ("", r"is a folder; the prefixes in it are \S+/test.en-de.de, "),
    ],
)
def test_a_text_that_is_not_there(build, toy, caplog, name, message):
    """Said at once, and refused before the first update; validation needs no text."""
    path = str(toy.bin / name) if name else str(toy.bin)
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        made = build(clean_text=path, **TEACHER)
    assert re.search(rf"--clean-text {re.escape(path)}: .*{message}", caplog.text)
    sample = made.sample(SENTENCES)
    with pytest.raises(ValueError, match=message):
        made.criterion(made.model, sample)
    made.criterion.eval()
    assert made.criterion(made.model, sample)[0] > 0


@pytest.mark.parametrize("content, message", [(b"", "no index of"), (b"x" * 40, "no index of")])
def test_a_text_that_cannot_be_read(build, tmp_path, content, message):
    for end in ("bin", "idx"):
        (tmp_path / f"text.{end}").write_bytes(content)
    made = build(clean_text=str(tmp_path / "text"), **TEACHER)
    with pytest.raises(ValueError, match=message):
        made.criterion(made.model, made.sample(SENTENCES))


def test_a_text_of_another_dictionary(build, toy, tmp_path, caplog):
    for end in ("bin", "idx"):
        source = toy.bin / f"valid.en-de.de.{end}"
        (tmp_path / f"valid.en-de.de.{end}").write_bytes(source.read_bytes())
    lines = (toy.bin / "dict.de.txt").read_text().splitlines()
    path = tmp_path / "dict.de.txt"
    path.write_text("".join(f"{line}\n" for line in [*lines[1::-1], *lines[2:]]))
    made = loaded(build(clean_text=str(tmp_path / "valid.en-de.de"), **TEACHER))
    sample = made.sample(SENTENCES)
    with pytest.raises(ValueError, match="is not the dictionary of the targets: id 4 is '"):
        made.criterion(made.model, sample)
    path.write_text("".join(f"{line}\n" for line in [*lines, "<mask> 1"]))  # as denoising's
    made.criterion(made.model, sample)
    path.unlink()
    made = loaded(build(clean_text=str(tmp_path / "valid.en-de.de"), **TEACHER))
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        made.criterion(made.model, sample)
    assert "so that its ids cannot be checked" in caplog.text


def test_targets_that_are_not_loaded(build, text):
    made = build(clean_text=text, **TEACHER)
    with pytest.raises(ValueError, match=r"--train-subset train is not loaded \(loaded: nothing\)"):
        made.criterion(made.model, made.sample(SENTENCES))
    made.task.datasets["train"] = made.sample(SENTENCES)  # something without pairs
    with pytest.raises(ValueError, match=r"weighs the targets of sentence pairs; \w+ has none"):
        made.criterion(made.model, made.sample(SENTENCES))
    made.task.cfg.data = "one:two"
    with pytest.raises(ValueError, match=r"one data folder; 2 are given: one:two"):
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


@pytest.mark.parametrize("arch, said", [("ctc_transformer", True), ("cmlm_transformer", False)])
def test_a_likelihood_of_alignments_is_not_weighed_which_is_said(build, text, caplog, arch, said):
    made = loaded(build(arch=arch, clean_text=text, ngram_factor=0.0, ce_factor=1.0))
    with caplog.at_level(logging.WARNING, logger="fairseq_eisl"):
        made.criterion(made.model, made.sample(SENTENCES))
    assert (
        f"--clean-text {text}: no effect on the training with --ngram-factor 0" in caplog.text
    ) == said


def test_a_text_in_fairseqs_older_format(build, toy, text, tmp_path):
    """Of --dataset-impl lazy or cached, which fairseq takes for the one that must read ahead."""
    prefix = str(tmp_path / "older")
    builder = indexed_dataset.IndexedDatasetBuilder(f"{prefix}.bin")
    for row in data_utils.load_indexed_dataset(text, None):
        builder.add_item(row)
    builder.finalize(f"{prefix}.idx")
    target = build().sample(SENTENCES)["target"]
    older, newer = (
        loaded(build(clean_text=path, **TEACHER)).criterion.ngram_weights(target)
        for path in (prefix, text)
    )
    assert older.tokens.equal(newer.tokens) and older.pairs.equal(newer.pairs)


@pytest.mark.parametrize(
    "options",
    [
        {"criterion": "token_weighted", "token_weighting": "none"},
        {"ngram_factor": 0.0, "ce_factor": 1.0},
    ],
)
def test_padding_on_the_left_changes_nothing(build, text, options):
    made = loaded(build("--left-pad-target", *NOISE, clean_text=text, **options))
    batch = made.sample(SENTENCES)
    assert batch["target"][:, 0].eq(PAD).any()
    whole = made.criterion(made.model, batch)[0]
    each = [
        made.criterion(made.model, made.sample([line], [i]))[0] for i, line in enumerate(SENTENCES)
    ]
    assert_near(sum(each), whole, torch.float32)
