"""What aligned cross entropy is of a model's slots: as many as target tokens, or more."""

import itertools

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.decoding.fairseq.blanks import BLANK, find_blank, stretched
from fairseq_eisl.losses import reference
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES, loss_and_gradient
from tests.criterions.test_no_waiting import as_on_cuda, lines_that_wait  # noqa: F401 (a fixture)
from tests.losses.memory import LargeStorages
from tests.tolerances import assert_near

BOS, PAD, EOS, UNK = 0, 1, 2, 3
NAT, CMLM = "nonautoregressive_transformer", "cmlm_transformer"
FULL = ["--noise", "full_mask"]
MORE = [*FULL, "--axe-length-factor", "1.5"]
PENALTY = 1.5


@pytest.fixture
def make(toy):
    def make(arch, *flags, **options):
        options = {"criterion": "axe", "axe_skip_penalty": PENALTY, "scale": 2, **options}
        return toy_corpus.setup(toy.bin, *flags, arch=arch, **options)

    return make


def outputs_of(made, sample):
    given = sample["net_input"]
    source = given["src_tokens"], given["src_lengths"]
    return made.model(*source, sample["prev_target"], sample["target"])["word_ins"]


def expected_losses(made, sample, keeps_marks):
    """By the reference, from the model's logits: words aligned, marks at their slots."""
    logits, blank = outputs_of(made, sample)["out"].double(), made.criterion.blank
    losses = []
    for row, shown, target in zip(logits, sample["prev_target"], sample["target"]):
        slots, words = shown.ne(PAD).nonzero().flatten()[1:-1], target[target > EOS]
        masks = torch.ones(1, len(words)).bool(), torch.ones(1, len(slots)).bool()
        given = row[slots].unsqueeze(0), words.unsqueeze(0), blank, *masks, PENALTY
        total = reference.axe_loss(*given)[0] * len(words)
        if not keeps_marks:
            ends = row[[0, int(slots[-1]) + 1 if len(slots) else 1]]
            total = total - ends.log_softmax(1)[[0, 1], [BOS, EOS]].sum()
        losses.append(total / max(1, len(words) + (0 if keeps_marks else 2)))
    return torch.stack(losses)


@pytest.mark.parametrize("arch", [NAT, CMLM])
@pytest.mark.parametrize("flags", [FULL, MORE])
def test_words_are_aligned_to_the_slots_of_words(make, arch, flags):
    """Every sentence has its words and slots alone; the marks of CMLM are never predicted."""
    made = make(arch, *flags, "--length-loss-factor", "0")
    sample = made.sample(SENTENCES)
    loss, _, log = made.criterion(made.model, sample, reduce=False)
    assert_near(loss, expected_losses(made, sample, arch == CMLM), torch.float32)
    assert float(log["axe_words"]) == sample["target"].gt(EOS).sum()
    assert float(log["axe_slots"]) == sample["prev_target"].eq(UNK).sum()


def test_words_that_are_shown_stay_in_place(make):
    """The least of all monotone maps that leave them there, of sentences of up to 4 words."""
    made = make(CMLM, "--length-loss-factor", "0", axe_skip_penalty=1.0)
    sample = made.sample(["w1 w2 w3 w4", "w1 w1 w1", "w7 w8", "w3 w9 w3 w9"])
    target, shown = sample["target"], sample["prev_target"].clone()
    for row in shown:
        row[1] = UNK
    shown[0, 2], shown[1, 2:4], shown[3, 2:4] = target[0, 2], target[1, 2:4], target[3, 2:4]
    sample["prev_target"] = shown
    found, _, _ = made.criterion(made.model, sample, reduce=False)
    costs, blank = -outputs_of(made, sample)["out"].detach().log_softmax(2), made.criterion.blank
    for b in range(4):
        places = [t for t in range(target.size(1)) if target[b, t] > EOS]
        seen = {t for t in places if shown[b, t] != UNK}
        least = min(
            sum(costs[b, t, target[b, s]] for s, t in zip(places, ends) if s not in seen)
            + sum(costs[b, t, blank] for t in set(places) - set(ends))
            for ends in itertools.combinations_with_replacement(places, len(places))
            if all(s == t or not {s, t} & seen for s, t in zip(places, ends))
        )
        assert found[b].item() == pytest.approx(float(least) / (len(places) - len(seen)), rel=1e-5)


# -- more slots than words ------------------------------------------------------------------------


@pytest.mark.parametrize("arch", [NAT, CMLM])
def test_the_decoder_sees_more_slots_and_the_length_stays_the_targets_own(make, arch):
    made, plain = make(arch, *MORE), make(arch, *FULL)
    sample = made.sample(SENTENCES)
    lengths = sample["target"].ne(PAD).sum(1)
    shown = sample["prev_target"]
    for row, length in zip(shown.tolist(), stretched(lengths, 1.5).tolist()):
        assert row == [BOS, *[UNK] * (length - 2), EOS] + [PAD] * (shown.size(1) - length)
    (loss, _, log, grads), (other, _, plain_log, _) = (
        loss_and_gradient(m, m.sample(SENTENCES)) for m in (made, plain)
    )
    assert loss != other and log["part_length"] == plain_log["part_length"]
    assert {n for n, _ in made.model.named_parameters()} == set(grads)
    assert "nll" not in log and {"candidate_tokens", "blanks", "skipped"} <= log.keys()


@pytest.mark.parametrize("arch", [NAT, CMLM])
def test_padding_and_the_rest_of_the_batch_change_nothing(make, arch):
    made = make(arch, *MORE)

    def losses(sentences, ids, more=0):
        sample = made.sample(sentences, ids)
        for name in ("target", "prev_target"):
            sample[name] = F.pad(sample[name], (0, more), value=PAD)
        loss, _, _ = made.criterion(made.model, sample, reduce=False)
        return dict(zip(sample["id"].tolist(), loss))

    together, padded = losses(SENTENCES, range(8)), losses(SENTENCES, range(8), 4)
    for i, sentence in enumerate(SENTENCES):
        assert_near(losses([sentence], [i])[i], together[i], torch.float32, sentence)
        assert_near(padded[i], together[i], torch.float32, sentence)


def test_no_row_outgrows_the_position_table(make):
    """The longest has no room for more; the others have, though both are as wide as each other."""
    longest = 16  # of the toy corpus
    limits = ["--max-target-positions", str(longest), "--length-loss-factor", "0"]
    made = make(CMLM, *MORE, *limits)
    made.task.load_dataset("train", data_selector=None)
    data = made.task.dataset("train")
    order = sorted(range(len(data)), key=lambda i: data.sizes[i][1])
    assert data.sizes[order[-1]][1] == longest
    for items in (order[-2:], order[:1] + order[-1:]):
        sample = data.collater([data[i] for i in items])
        lengths = sample["target"].ne(PAD).sum(1)
        assert sample["more_slots"]
        found = sample["prev_target"].ne(PAD).sum(1)
        assert found.tolist() == stretched(lengths, 1.5).clamp(max=longest).tolist()
        loss, _, log = made.criterion(made.model, sample, reduce=False)
        assert_near(loss, expected_losses(made, sample, True), torch.float32)
    assert sample["target"].shape == sample["prev_target"].shape and found[0] != found[1]


def test_validation_has_the_same_slots(make):
    made = make(NAT, *MORE)
    made.task.load_dataset("valid")
    data = made.task.dataset("valid")
    sample = data.collater([data[i] for i in range(4)])
    _, _, log = made.task.valid_step(sample, made.model, made.criterion)
    lengths = stretched(sample["target"].ne(PAD).sum(1), 1.5)
    assert sample["prev_target"].ne(PAD).sum(1).tolist() == lengths.tolist()
    assert "axe" in log and "ce" not in log and "nll" not in log


def test_nothing_is_kept_for_each_pair_of_slots_and_each_word(make):
    """No tensor of sentences x slots x slots x vocabulary, whose costs are looked up."""
    made = make(NAT, *MORE)
    sample = made.sample(SENTENCES)
    batch, slots = sample["prev_target"].shape
    with LargeStorages(4 * batch * slots**2 * len(made.task.target_dictionary)) as large:
        made.criterion(made.model, sample)[0].backward()
    assert not large.storages


# -- the log -------------------------------------------------------------------------------------


@pytest.mark.parametrize("flags", [FULL, MORE])
def test_blanks_are_no_words_of_the_candidate(make, flags):
    made = make(NAT, *flags)
    sample = made.sample(SENTENCES)
    word = outputs_of(made, sample)["out"].argmax(2)
    slots = sample["prev_target"].eq(UNK)
    made.criterion.blank = int(word[slots].bincount().argmax())  # what it likes to say
    rows = [[t for t in row[mask].tolist() if t != made.criterion.blank]
            for row, mask in zip(word, slots)]  # fmt: skip
    _, _, log = made.criterion(made.model, sample)
    assert log["candidate_tokens"] == sum(map(len, rows)) < slots.sum()
    assert log["candidate_repeats"] == sum(a == b for row in rows for a, b in zip(row, row[1:]))


def test_shares_of_blanks_and_skipped_words_are_shown(make):
    from fairseq.logging import metrics

    made = make(NAT, *MORE)
    _, _, log = made.criterion(made.model, made.sample(SENTENCES))
    # As many slots are left over as words share: slots = words - skipped + blanks.
    assert log["axe_slots"] - log["blanks"] == log["axe_words"] - log["skipped"]
    with metrics.aggregate() as shown:
        made.criterion.reduce_metrics([log])
    values = shown.get_smoothed_values()
    for name, every in (("blanks", "axe_slots"), ("skipped", "axe_words")):
        share = 100 * float(log[name]) / float(log[every])
        assert float(values[name]) == pytest.approx(share, abs=0.01)


@pytest.mark.parametrize("flags", [FULL, MORE])
def test_a_step_waits_for_nothing(make, as_on_cuda, flags):  # noqa: F811
    assert not lines_that_wait(make(NAT, *flags))


# -- bad input ------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arch, flags, options, words",
    [
        (
            NAT,
            ["--length-factor", "0.5"],
            {},
            "--length-factor must be a finite number, 1 or above",
        ),
        (
            NAT,
            ["--axe-length-factor", "0"],
            {},
            "--axe-length-factor must be a finite number, 1 or",
        ),
        (NAT, ["--axe-length-factor", "nan"], {}, "--axe-length-factor must be a finite number, 1"),
        (
            *(CMLM, ["--axe-length-factor", "1.5"], {}),
            "--axe-length-factor 1.5 goes with --noise full_mask, not with random_mask",
        ),
        (
            *("nacrf_transformer", MORE, {}),
            "--axe-length-factor 1.5 is for NATransformerModel and CMLMNATransformerModel; NACRF",
        ),
        (
            *("iterative_nonautoregressive_transformer", MORE, {}),
            "--axe-length-factor 1.5 is for NATransformerModel and CMLMNATransformerModel; IterNA",
        ),
        (NAT, MORE, {"ce_factor": 0.5}, "--ce-factor 0.5: cross entropy needs as many slots"),
        (
            NAT,
            ["--axe-blank", "word"],
            {},
            "--axe-blank: 'word' is not in the target dictionary of",
        ),
        (NAT, ["--axe-blank", "<pad>"], {}, "--axe-blank: '<pad>' has a meaning of its own"),
    ],
)
def test_a_flag_that_cannot_be_meant_is_named(make, arch, flags, options, words):
    with pytest.raises(ValueError, match=words) as error:
        make(arch, *flags, **options)
    assert "\n" not in str(error.value)


@pytest.mark.parametrize("criterion", ["eisl", "oaxe", "bag_of_ngrams", "nat_loss"])
def test_more_slots_are_for_axe(toy, criterion):
    words = f"--axe-length-factor 1.5 is for --criterion axe; {criterion} needs as many slots"
    with pytest.raises(ValueError, match=words):
        toy_corpus.setup(toy.bin, *MORE, arch=NAT, criterion=criterion)


def test_without_the_usual_blank_only_axe_asks_for_one(toy, tmp_path):
    """A dictionary of 8, 16, ... symbols has nothing to round it up."""
    toy_corpus.preprocess(toy.raw, tmp_path, "--joined-dictionary", "--padding-factor", "1")
    made = toy_corpus.setup(tmp_path, arch=NAT)
    assert made.task.blank is None and BLANK not in made.task.target_dictionary
    with pytest.raises(ValueError, match="add the line 'madeupword0000 0' to the end of the dict"):
        toy_corpus.setup(tmp_path, arch=NAT, criterion="axe")
    size = len(made.task.target_dictionary)
    for side in ("en", "de"):
        with open(tmp_path / f"dict.{side}.txt", "a") as file:
            file.write(f"{BLANK} 0\n")
    made = toy_corpus.setup(tmp_path, arch=NAT, criterion="axe")
    assert made.task.blank == made.criterion.blank == size
    assert find_blank(made.task.target_dictionary, BLANK) == size
