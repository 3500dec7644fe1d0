"""Which pieces begin a word: as noise finds words, and as --ngram-units words uses them."""

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

from fairseq_eisl.losses import eisl_loss
from fairseq_eisl.noise import WordUnits
from fairseq_eisl.noise.segmentation import KINDS
from fairseq_eisl.tasks.word_starts import WordStarts
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near
from tests.toy import NAT_ARCHS, make_sample, setup

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
PAD, EOS = 1, 2


def symbols(scheme):
    marks = KINDS[scheme]
    words = ["a", "b", "c"]
    split = [marks.before + w + marks.after for w in words]
    split += [f"{marks.continues}{w}" for w in "de"] + [f"{w}{marks.goes_on}" for w in "fg"]
    return SPECIALS + list(dict.fromkeys([*split, *("h", "i")]))


@settings(derandomize=True, deadline=None, max_examples=60, database=None)
@given(st.data())
@pytest.mark.parametrize("scheme", KINDS)
def test_words_begin_where_noise_finds_them(scheme, data):
    names = symbols(scheme)
    units = WordUnits(names, 4, 3, scheme)
    ids = data.draw(st.lists(st.integers(3, len(names) - 1), min_size=1, max_size=9))
    starts = WordStarts(units)(torch.tensor([ids])).tolist()[0]
    expected = [i == 0 for word in units.split(ids) for i in range(len(word))]
    assert starts == expected


MODELS = ["transformer", "cmlm_transformer", "nonautoregressive_transformer"]


@pytest.mark.parametrize("arch", MODELS)
def test_the_criterion_leaves_torn_words_out(toy, arch):
    """Evaluated, and the target as the candidate: eisl_loss of the same logits and words."""
    nat = arch in NAT_ARCHS
    options = {"ngram": "2,3"} if nat else {"ngram": "2,3", "train_decoding": "teacher-forcing"}
    losses = {}
    for units in ("pieces", "words"):
        made = setup(toy.bin, arch=arch, ngram_units=units, **options)
        made.model.eval(), made.criterion.eval()
        torch.manual_seed(1)
        sample = make_sample(made.task, SENTENCES)
        with torch.no_grad():
            losses[units], _, _ = made.criterion(made.model, sample)
    assert losses["pieces"] != losses["words"]
    if nat:
        return
    target = sample["target"]
    mask = target.ne(PAD)
    rows = [[token for token in row.tolist() if token != PAD] for row in target]
    words = [made.task.word_starts(torch.tensor([row]))[0] for row in rows]
    starts = torch.nn.utils.rnn.pad_sequence(words, batch_first=True)
    assert not starts[mask].all()  # some words have several pieces
    expected = eisl_loss(
        made.model(**sample["net_input"])[0],
        target,
        output_mask=mask,
        target_mask=mask,
        ngrams=(2, 3),
        selection="softmax",
        word_starts=starts,
        reduction="sum",
    )
    assert_near(losses["words"], expected, torch.float32)


def test_a_task_without_words_is_refused(toy):
    with pytest.raises(ValueError, match="--ngram-units words: the task must know where words"):
        flags = ("--task", "translation", "-s", "en", "-t", "de")
        setup(toy.bin, *flags, ngram_units="words")


def test_a_compatible_loss_knows_no_words(toy):
    with pytest.raises(ValueError, match="--ngram-units words: --eisl-compat released"):
        setup(toy.bin, arch="cmlm_transformer", ngram_units="words", eisl_compat="released")
