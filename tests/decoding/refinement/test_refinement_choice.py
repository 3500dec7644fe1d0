"""After non-autoregressive decoding: repeats, reranking; and flags that cannot work."""

from argparse import Namespace

import pytest
import torch

from fairseq_eisl.decoding.fairseq import refinement
from fairseq_eisl.decoding.fairseq.refinement import RefinementGenerator
from tests import toy as toy_corpus
from tests.decoding.refinement.models import (
    BOS,
    CMLM,
    CRF,
    EOS,
    LEV,
    LIMITS,
    NAT,
    PAD,
    UNK,
    assert_equal,
    decode,
    each_arch,
    generator,
    sample_of,
)
from tests.toy import NAT_ARCHS

# -- after decoding --------------------------------------------------------------------------


@each_arch
def test_repeats_are_removed_everywhere(build, arch):
    made = build(arch)
    options = {"max_iter": 2, "retain_history": True}
    shorter = 0
    for plain, found in zip(decode(made, **options), decode(made, **options, remove_repeats=True)):
        assert found["score"] == plain["score"]
        assert len(plain["history"]) == len(found["history"])
        for before, after in zip([plain, *plain["history"]], [found, *found["history"]]):
            tokens = before["tokens"].tolist()
            kept = [i for i, t in enumerate(tokens) if i == 0 or t != tokens[i - 1]]
            assert after["tokens"].tolist() == [tokens[i] for i in kept]
            if before["positional_scores"] is not None:
                assert torch.equal(after["positional_scores"], before["positional_scores"][kept])
            shorter += len(kept) < len(tokens)
    assert shorter > 0


@pytest.fixture(scope="module")
def reranker(toy):
    made = toy_corpus.setup(toy.bin, *LIMITS, scale=2)
    made.model.eval()
    return made


def naive_score(model, source, tokens):
    """Mean log-probability of the words and eos, one sentence without any padding."""
    words = [t for t in tokens if t not in (BOS, PAD, EOS)]
    source = torch.tensor([[t for t in source if t not in (BOS, PAD)]])
    prefix = torch.tensor([[EOS, *words]])
    with torch.no_grad():
        logits = model(source, torch.tensor([source.size(1)]), prefix)
    log_probs = model.get_normalized_probs(logits, log_probs=True)[0]
    return sum(log_probs[i, t].item() for i, t in enumerate([*words, EOS])) / (len(words) + 1)


@pytest.mark.parametrize("left", [False, True])
def test_reranking_scores_each_hypothesis_as_if_alone(build, reranker, left):
    made = build(NAT)
    source = sample_of(made)["net_input"]["src_tokens"]
    lengths = source.ne(PAD).sum(1)
    if left:
        rows = [row.roll(int(row.eq(PAD).sum())) for row in source]
        source = torch.stack(rows)
    rows = [
        [BOS, 5, 6, 7, EOS],
        [BOS, EOS],
        [BOS, 9, PAD, 8, EOS],  # what a model may write in the midst
        [BOS, 9, EOS, 8, EOS],
        [BOS, 9, BOS, 8, 8, 8, EOS],
        [4, UNK, 9],  # neither bos nor eos
        [],
        [BOS, *range(4, 17), EOS],
    ] * 3
    hypotheses = [[{"tokens": torch.tensor(row, dtype=torch.long), "score": 0.0}] for row in rows]
    with torch.no_grad():
        found = generator(made, beam_size=3).rerank(
            reranker.model, hypotheses, [source, lengths], 3
        )
    for i, (row, (hypothesis,)) in enumerate(zip(rows, found)):
        expected = naive_score(reranker.model, source[i // 3].tolist(), row)
        if set(row) <= {BOS, EOS}:  # beside candidates with words
            expected = -float("inf")
        assert float(hypothesis["score"]) == pytest.approx(expected, abs=1e-5), row


def test_generate_reads_both_checkpoints(toy, tmp_path):
    ar = ["--task", "noisy_translation", "--criterion", "cross_entropy"]
    for arch, flags in {NAT: ["--criterion", "nat_loss"], "transformer": ar}.items():
        save = tmp_path / arch
        code, output = toy_corpus.train(toy.bin, save, *flags, "--max-update", "1", arch=arch)
        assert code == 0, output
    code, output = toy_corpus.run_cli(
        *("fairseq-generate", toy.bin, "--user-dir", toy_corpus.USER_DIR, *toy_corpus.NAT_TASK),
        *("--path", f"{tmp_path / NAT}/checkpoint_last.pt:{save}/checkpoint_last.pt"),
        *("--iter-decode-max-iter", "0", "--iter-decode-with-beam", "3"),
        *("--required-batch-size-multiple", "1", "--iter-decode-with-external-reranker"),
        *toy_corpus.CPU,
    )
    assert code == 0 and len(toy_corpus.hypotheses(output)) == 10


@pytest.mark.parametrize("arch", [NAT, CMLM])
@pytest.mark.parametrize("beam", [2, 5])
@pytest.mark.parametrize("choice", refinement.LENGTH_CANDIDATES)
def test_the_reranker_chooses(build, reranker, monkeypatch, arch, beam, choice):
    made, candidates = build(arch), []
    stock = RefinementGenerator.rerank

    def watched(self, model, finalized, *args):
        candidates[:] = [list(hypotheses) for hypotheses in finalized]
        return stock(self, model, finalized, *args)

    monkeypatch.setattr(RefinementGenerator, "rerank", watched)
    options = {"max_iter": 1, "beam_size": beam, "length_candidates": choice, "reranking": True}
    found = decode(made, others=[reranker], **options)
    sources = sample_of(made)["net_input"]["src_tokens"].tolist()
    for i, (source, best) in enumerate(zip(sources, found)):
        rows = [c[0]["tokens"].tolist() for c in candidates[beam * i : beam * (i + 1)]]
        scores = [naive_score(reranker.model, source, row) for row in rows]
        assert float(best["score"]) == pytest.approx(max(scores), abs=1e-5)
        assert naive_score(reranker.model, source, best["tokens"].tolist()) == pytest.approx(
            max(scores), abs=1e-5
        )


def test_the_reranker_can_read_every_candidate(build, toy):
    made = build(NAT, tame=False)
    short = toy_corpus.setup(toy.bin, *LIMITS[:2], "--max-target-positions", "9", arch="bart_base")
    short.model.eval()
    for found in decode(made, others=[short], beam_size=5, reranking=True):
        assert len(found["tokens"]) <= 8


def test_a_hypothesis_without_words_never_wins(build):
    """Each row is a candidate of a beam of two; the better one of its two scores is crossed out."""
    own, nothing = [BOS, 9, EOS], -float("inf")
    beams = [
        (([], float("nan")), (own, -3.0), [nothing, -3.0]),
        (([BOS, EOS], 0.0), (own, -7.0), [nothing, -7.0]),
        ((own, -7.0), ([BOS, EOS, PAD, BOS, EOS], -0.1), [-7.0, nothing]),
        (([BOS, UNK, EOS], -7.0), ([EOS], 0.0), [-7.0, nothing]),
        # Where there is no word at all, the scores stay.
        (([BOS, EOS], -1.0), ([BOS, EOS, EOS], -2.0), [-1.0, -2.0]),
    ]
    finalized = [
        [{"tokens": torch.tensor(tokens, dtype=torch.long), "score": torch.tensor(score)}]
        for beam in beams
        for tokens, score in beam[:2]
    ]
    found = generator(build(NAT)).rerank(refinement.OwnScores(), finalized, None, 2)
    assert [float(h[0]["score"]) for h in found] == [s for beam in beams for s in beam[2]]


@pytest.mark.parametrize("arch", [arch for arch in NAT_ARCHS if arch != LEV])
@pytest.mark.parametrize("choice", refinement.LENGTH_CANDIDATES)
@pytest.mark.parametrize("ar", [False, True])
def test_no_translation_is_empty_where_a_candidate_has_words(build, reranker, arch, choice, ar):
    """A model that is sure of the length 2, of bos and eos, and of no word."""
    made = build(arch)
    model, decoder = made.model, made.model.decoder
    length, fill = decoder.forward_length, model.forward_decoder

    def forward_length(normalize, encoder_out):
        scores = torch.zeros_like(length(normalize=normalize, encoder_out=encoder_out))
        source = int((~encoder_out["encoder_padding_mask"][0]).sum(1).max())
        scores[:, 130 - source if decoder.pred_length_offset else 2] = 1.0
        return scores.log_softmax(1) if normalize else scores

    def forward_decoder(decoder_out, *args, **options):
        found = fill(decoder_out, *args, **options)
        last = found.output_tokens.ne(PAD).sum(1, keepdim=True) - 1
        found.output_tokens[:, 0] = BOS
        found.output_tokens.scatter_(1, last, EOS)
        found.output_scores[:, 0] = 0.0
        found.output_scores.scatter_(1, last, 0.0)
        return found

    decoder.forward_length, model.forward_decoder = forward_length, forward_decoder
    try:
        sentence = ["w1 w2 w3"]
        assert decode(made, sentences=sentence, max_iter=0)[0]["tokens"].tolist() == [BOS, EOS]
        options = {"max_iter": 1, "beam_size": 5, "length_candidates": choice, "reranking": ar}
        others = [reranker] if ar else []
        (found,) = decode(made, sentences=sentence, others=others, **options)
    finally:
        del decoder.forward_length, model.forward_decoder
    assert set(found["tokens"].tolist()) - {BOS, PAD, EOS}
    assert float(found["score"]) > -float("inf")


# -- flags -----------------------------------------------------------------------------------


def test_models_are_told_apart(build, reranker):
    passes = {arch: refinement.validation_iterations(build(arch).model) for arch in NAT_ARCHS}
    assert passes == {arch: 0 if arch in (NAT, CRF) else 9 for arch in NAT_ARCHS}
    assert not refinement.is_one_pass(reranker.model)


@each_arch
def test_the_task_decodes_validation_as_the_model_is_meant(build, arch):
    task, model = build(arch).task, build(arch).model
    expected = refinement.validation_iterations(model)
    assert task.build_generator([model], Namespace()).max_iter == expected
    assert task.build_generator([model], Namespace(iter_decode_max_iter=2)).max_iter == 2


def test_wrapped_models_are_decoded_from_inside(build):
    made = build(NAT)
    wrapped = made._replace(model=torch.nn.DataParallel(made.model))
    for one, two in zip(decode(made), decode(wrapped)):
        assert_equal(two, one)


@pytest.mark.parametrize(
    "arch, options, words",
    [
        (NAT, {"length_candidates": "all"}, "'all' is unknown; choose from contiguous, top-k"),
        (NAT, {"beam_size": 0}, "--iter-decode-with-beam must be 1 or more, not 0"),
        (LEV, {"beam_size": 3}, "--iter-decode-with-beam 3: LevenshteinTransformerModel predicts"),
        (NAT, {"beam_size": 3, "reranking": True}, "needs two models, --path NAT.pt:AR.pt"),
        ("transformer", {}, "TransformerModel is autoregressive; decode it with --task noisy_tr"),
    ],
)
def test_flags_that_cannot_be_are_named(build, arch, options, words):
    with pytest.raises(ValueError, match=words):
        decode(build(arch), **options)


@pytest.mark.parametrize(
    "arch, options, words",
    [
        (CRF, {}, "NACRFTransformerModel decodes alone, not in an ensemble of 2"),
        (NAT, {"reranking": True}, "it needs --iter-decode-with-beam 2 or more, not 1"),
        (NAT, {"reranking": True, "beam_size": 2}, "must be autoregressive; NATransformerModel is"),
    ],
)
def test_models_that_do_not_go_together_are_named(build, arch, options, words):
    with pytest.raises(ValueError, match=words):
        decode(build(arch), others=[build(arch)], **options)
