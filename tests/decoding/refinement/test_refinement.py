"""Decoding with the five non-autoregressive models: what fits and what is tried."""

import pytest
import torch
from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
from torch.nn import functional as F

from fairseq_eisl.decoding.fairseq import decoder_methods
from fairseq_eisl.decoding.fairseq.refinement import RefinementGenerator
from tests.criterions.conftest import SENTENCES
from tests.decoding.refinement.models import (
    BOS,
    CMLM,
    CRF,
    EOS,
    LEV,
    LIMIT,
    NAT,
    PAD,
    PREDICTS_LENGTH,
    assert_blank,
    assert_equal,
    decode,
    each_arch,
    predict,
    sample_of,
)
from tests.toy import NAT_ARCHS

# -- a batch and its sentences ---------------------------------------------------------------

BEAMS = {
    "one length": {},
    "contiguous": {"beam_size": 3},
    "top-k": {"beam_size": 3, "length_candidates": "top-k"},
}


@each_arch
@pytest.mark.parametrize("beam", BEAMS)
@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("max_iter", [0, 3])
def test_a_padded_batch_is_decoded_like_its_sentences(build, arch, beam, models, max_iter):
    if (arch == LEV and beam != "one length") or (arch == CRF and models > 1):
        pytest.skip("not for this model")
    made, others = build(arch), [build(arch, seed=3)] * (models - 1)
    options = {"max_iter": max_iter, **BEAMS[beam]}
    together = decode(made, others=others, **options)
    for sentence, found in zip(SENTENCES, together):
        assert_equal(found, decode(made, [sentence], others, **options)[0])
    assert len({tuple(found["tokens"].tolist()) for found in together}) > 2
    assert beam != "one length" or len({len(found["tokens"]) for found in together}) > 1


@pytest.mark.parametrize("seed", range(12))
def test_sentences_that_are_edited_while_others_rest(build, seed):
    made, other = build(LEV, seed=seed, tame=seed % 3 > 0), build(LEV, seed=seed + 1)
    for others in ([], [other]):
        options = {"max_iter": 4, "eos_penalty": seed % 2}
        together = decode(made, others=others, **options)
        for sentence, found in zip(SENTENCES, together):
            assert_equal(found, decode(made, [sentence], others, **options)[0])


@pytest.mark.parametrize("models", [1, 2])
@pytest.mark.parametrize("flags", [["--src-embedding-copy"], ["--pred-length-offset"]])
def test_flags_of_the_model(build, flags, models):
    made, others = build(NAT, *flags), [build(NAT, *flags, seed=3)] * (models - 1)
    for options in BEAMS.values():
        together = decode(made, others=others, **options)
        for sentence, found in zip(SENTENCES, together):
            assert_equal(found, decode(made, [sentence], others, **options)[0])


@each_arch
def test_stock_gives_the_same_where_it_gives_something(build, arch):
    made = build(arch)
    stock, ours = (
        decode(made, ["w1 w2 w3"], max_iter=0, kind=kind)
        for kind in (IterativeRefinementGenerator, RefinementGenerator)
    )
    assert_equal(ours[0], stock[0])


@pytest.mark.parametrize("arch", [arch for arch in NAT_ARCHS if arch != CRF])
def test_an_ensemble_of_equals_is_one_of_them(build, arch):
    made, same = build(arch), build(arch)
    for one, two in zip(decode(made, max_iter=3), decode(made, others=[same], max_iter=3)):
        assert_equal(two, one)
    # and no model stays in an ensemble
    other = build(arch, seed=3)
    before = decode(made, max_iter=3)
    decode(made, others=[other], max_iter=3)
    for one, two in zip(before, decode(made, max_iter=3)):
        assert_equal(two, one)


@each_arch
def test_the_history_ends_with_the_hypothesis(build, arch):
    made = build(arch)
    for found in decode(made, max_iter=2, retain_history=True):
        history = [entry["tokens"].tolist() for entry in found["history"]]
        assert history[0][0] == BOS and history[0][-1] == EOS and len(history) > 1
        assert history[-1] == found["tokens"].tolist()


# -- lengths ---------------------------------------------------------------------------------


@each_arch
@pytest.mark.parametrize("options", [{}, {"eos_penalty": 5.0}, {"max_length": 9}])
def test_no_model_leaves_its_position_table(build, arch, options):
    beams = BEAMS.values() if arch in PREDICTS_LENGTH else [{}]
    limit = options.get("max_length", LIMIT)
    for flags in [[], ["--pred-length-offset"]] if arch in PREDICTS_LENGTH else [[]]:
        made = build(arch, *flags, tame=False)
        for beam in beams:
            found = decode(made, max_iter=3, retain_history=True, **options, **beam)
            for hypothesis in found:
                for entry in [hypothesis, *hypothesis["history"]]:
                    assert len(entry["tokens"]) <= limit


@each_arch
def test_stock_leaves_it(build, arch):
    """If this fails, fairseq has been mended."""
    with pytest.raises(IndexError):
        decode(build(arch, tame=False), max_iter=3, kind=IterativeRefinementGenerator)


@pytest.mark.parametrize("arch", PREDICTS_LENGTH)
@pytest.mark.parametrize("flags", [[], ["--pred-length-offset"]])
def test_the_longest_and_the_shortest_length_are_clamped(
    build, monkeypatch, first_inputs, arch, flags
):
    made = build(arch, *flags)
    for length, expected in ((255, LIMIT), (0, 2)):
        predict(made, monkeypatch, F.one_hot(torch.tensor(length), 256) * 50.0)
        decode(made)
        assert_blank(first_inputs.pop(), [expected] * len(SENTENCES))
        decode(made, beam_size=3, length_candidates="top-k")
        rows = first_inputs.pop().view(len(SENTENCES), 3, -1)
        assert (rows[:, 0].ne(PAD).sum(1) == expected).all()
    assert not first_inputs


@pytest.mark.parametrize("arch", PREDICTS_LENGTH)
def test_contiguous_lengths_lie_around_the_most_likely(build, first_inputs, arch):
    made = build(arch)
    decode(made, max_length=12)
    most_likely = first_inputs.pop().ne(PAD).sum(1).tolist()
    for beam, steps in ((2, (-1, 0)), (5, (-2, -1, 0, 1, 2))):
        decode(made, beam_size=beam, max_length=12)
        expected = [min(max(n + step, 2), 12) for n in most_likely for step in steps]
        assert_blank(first_inputs.pop(), expected)


@pytest.mark.parametrize("offset", [False, True])
@pytest.mark.parametrize("models", [1, 2])
def test_top_k_lengths_are_the_k_most_likely(build, first_inputs, offset, models):
    flags = ["--pred-length-offset"] if offset else []
    made, others = build(NAT, *flags), [build(NAT, *flags, seed=3)] * (models - 1)
    net_input = sample_of(made)["net_input"]
    probabilities = 0
    for setup in (made, *others):
        encoded = setup.model.encoder(net_input["src_tokens"], net_input["src_lengths"])
        probabilities += setup.model.decoder.forward_length(True, encoded).double().exp()
    decode(made, others=others, beam_size=4, length_candidates="top-k")
    rows = first_inputs.pop()
    expected = []
    for row, source in zip(probabilities.tolist(), net_input["src_lengths"].tolist()):
        share = {}
        for c, p in enumerate(row):
            length = min(max(c - 128 + source if offset else c, 2), LIMIT)
            share[length] = share.get(length, 0.0) + p
        expected += sorted(share, key=share.get, reverse=True)[:4]
    assert_blank(rows, expected)


def test_more_candidates_than_lengths(build, first_inputs):
    made = build(NAT)
    assert len(decode(made, beam_size=9, length_candidates="top-k", max_length=5)) == 8
    lengths = first_inputs.pop().ne(PAD).sum(1).view(8, 9)
    assert all(set(row) == {2, 3, 4, 5} for row in lengths.tolist())


# -- Levenshtein -----------------------------------------------------------------------------


def insertions(scores, real, limit, most=255, eos_penalty=0.0):
    most = torch.full((len(real),), most)
    out = decoder_methods.bound_insertions(scores, real, limit, most, eos_penalty)
    final = out.clone()
    final[..., 0] -= eos_penalty
    return out, final.argmax(2).clamp(max=255)


def test_insertions_are_cut_from_the_right_and_only_where_they_must_be():
    wanted = torch.tensor([[3, 0, 4, 2], [3, 0, 4, 2], [1, 2, 9, 9]])
    real = torch.tensor([[1, 1, 1, 1, 1], [1, 1, 1, 1, 1], [1, 1, 1, 0, 0]]).bool()
    scores = torch.randn(3, 4, 10).scatter(2, wanted.unsqueeze(2), 9.0)
    for limit, expected in (
        (14, [[3, 0, 4, 2], [3, 0, 4, 2], [1, 2, 9, 9]]),  # exactly full; padding inserts nothing
        (10, [[3, 0, 2, 0], [3, 0, 2, 0], [1, 2, 9, 9]]),
        (5, [[0, 0, 0, 0], [0, 0, 0, 0], [1, 1, 9, 9]]),
        (4, [[0, 0, 0, 0], [0, 0, 0, 0], [1, 0, 9, 9]]),
    ):
        out, found = insertions(scores, real, limit)
        assert found.tolist() == expected
        same = found == wanted
        assert torch.equal(out[same], scores[same])
    # Five a slot are few enough: the model itself takes no more.
    eager = torch.zeros(1, 2, 10).index_fill(2, torch.tensor(9), 1.0)
    out, _ = insertions(eager, real[:1, :3], 13, most=5)
    assert torch.equal(out, eager)


def test_a_model_that_inserts_without_end_fills_the_table(build, monkeypatch):
    """It wants to keep every word and to insert 200 after each."""
    made = build(LEV)
    for name, chosen in (("forward_mask_ins", 200), ("forward_word_del", 0)):
        stock = getattr(made.model.decoder, name)

        def always(*args, stock=stock, chosen=chosen, **options):
            scores, attention = stock(*args, **options)
            return F.one_hot(torch.tensor(chosen), scores.size(2)).expand_as(
                scores
            ) * 1.0, attention

        monkeypatch.setattr(made.model.decoder, name, always)
    for iterations in (0, 4):
        found = decode(made, max_iter=iterations, max_ratio=20)
        assert all(len(hypothesis["tokens"]) == LIMIT for hypothesis in found)


def test_a_penalty_on_inserting_nothing_is_foreseen():
    scores = torch.tensor([[[2.0, 1.0, 0.0], [2.0, 0.0, 1.0]]])
    real = torch.ones(1, 3).bool()
    assert insertions(scores, real, 3)[1].tolist() == [[0, 0]]
    assert insertions(scores, real, 3, eos_penalty=5.0)[1].tolist() == [[0, 0]]
    assert insertions(scores, real, 5, eos_penalty=5.0)[1].tolist() == [[1, 1]]


def test_no_padding_is_inserted_in_the_midst(build):
    """Stock cuts as many tokens off the end, if no other row of the batch is longer."""
    made = build(LEV, seed=5, tame=True)
    favourite = decode(made)[0]["tokens"][1]
    weight = made.model.decoder.embed_tokens.weight
    with torch.no_grad():
        weight[PAD] = 2 * weight[favourite]
    try:
        together = decode(made, max_iter=3, retain_history=True)
        for sentence, found in zip(SENTENCES, together):
            assert_equal(found, decode(made, [sentence], max_iter=3)[0])
            assert all(entry["tokens"][-1] == EOS for entry in [found, *found["history"]])
    finally:
        weight.data[PAD] = 0


def test_the_model_is_itself_again_even_after_an_error(build, monkeypatch):
    made = build(LEV)
    before = set(vars(made.model.decoder))
    decode(made)
    assert set(vars(made.model.decoder)) == before

    def fail(*args, **options):
        raise RuntimeError("out of memory")

    monkeypatch.setattr(type(made.model), "forward_decoder", fail)
    with pytest.raises(RuntimeError, match="out of memory"):
        decode(made)
    assert set(vars(made.model.decoder)) == before


# -- CMLM ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", [IterativeRefinementGenerator, RefinementGenerator])
@pytest.mark.parametrize("sureness", [-0.1, 0.0])
def test_cmlm_returns_no_masks_and_rewrites_only_words(build, monkeypatch, kind, sureness):
    """The i-th token is 5 + i, with log-probability ``sureness`` * i, whatever else is there."""
    made = build(CMLM)
    predict(made, monkeypatch, F.one_hot(torch.tensor(7), 256) * 50.0)

    def forward(normalize, encoder_out, prev_output_tokens, **unused):
        place = torch.arange(prev_output_tokens.size(1))
        scores = torch.full((*prev_output_tokens.shape, 20), -99.0)
        scores[:, place, 5 + place] = sureness * place
        return scores

    monkeypatch.setattr(made.model.decoder, "forward", forward)
    found = decode(made, ["w1 w2", "w3"], max_iter=9, kind=kind)
    right = [entry["tokens"].tolist() == [BOS, 6, 7, 8, 9, 10, EOS] for entry in found]
    # If this fails, fairseq has been mended.
    assert right == [kind is RefinementGenerator] * 2
    if kind is RefinementGenerator:
        assert float(found[0]["score"]) == pytest.approx(15 * sureness / 7)
