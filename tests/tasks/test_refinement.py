"""Decoding with the five non-autoregressive models: what fits, what is tried, what is chosen."""

import pytest
import torch
from fairseq.iterative_refinement_generator import IterativeRefinementGenerator
from torch.nn import functional as F

from fairseq_eisl.tasks import _refinement as refinement
from fairseq_eisl.tasks._refinement import RefinementGenerator
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.toy import NAT_ARCHS

BOS, PAD, EOS, UNK = 0, 1, 2, 3
LIMIT = 16
LIMITS = ["--max-source-positions", str(LIMIT), "--max-target-positions", str(LIMIT)]
NAT, CRF, CMLM, LEV = (
    *("nonautoregressive_transformer", "nacrf_transformer"),
    *("cmlm_transformer", "levenshtein_transformer"),
)
PREDICTS_LENGTH = [arch for arch in NAT_ARCHS if arch != LEV]
each_arch = pytest.mark.parametrize("arch", NAT_ARCHS)


@pytest.fixture(scope="module")
def build(toy):
    """A random model of 16 positions, in ``tests.toy.Setup``.

    ``tame``: it predicts lengths below 14 and inserts 0 to 3 words, which random
    models seldom do.
    """

    def make(arch, *flags, tame=True, seed=2):
        made = toy_corpus.setup(toy.bin, *LIMITS, *flags, arch=arch, scale=2, seed=seed)
        decoder = made.model.eval().decoder
        if arch not in NAT_ARCHS:
            return made
        first, count = (0, 4) if arch == LEV else (2, 12)
        if getattr(decoder, "pred_length_offset", False):
            first, count = 125, 7
        classes = torch.arange(256)
        others = (classes < first) | (classes >= first + count)
        with torch.no_grad():
            for name in ("embed_length", "embed_mask_ins", "embed_word_del"):
                if hasattr(decoder, name):  # fairseq starts them at zero
                    weight = getattr(decoder, name).weight.normal_()
                    if tame and len(weight) == 256:
                        weight[others] = 0.5 * weight[first + classes[others] % count]
        return made

    return make


def sample_of(made, sentences=SENTENCES):
    """A batch in the order of ``sentences``."""
    sample = made.sample(sentences)
    order = sample["id"].argsort()
    net_input = {k: v[order] for k, v in sample["net_input"].items() if torch.is_tensor(v)}
    return {"id": sample["id"][order], "net_input": net_input}


def generator(made, **options):
    return RefinementGenerator(made.task.target_dictionary, **options)


def decode(made, sentences=SENTENCES, others=(), kind=RefinementGenerator, **options):
    """The best hypothesis of each sentence."""
    models = [made.model, *(other.model for other in others)]
    found = kind(made.task.target_dictionary, **options).generate(models, sample_of(made, sentences))
    return [hypotheses[0] for hypotheses in found]


def assert_equal(found, expected):
    assert found["tokens"].tolist() == expected["tokens"].tolist()
    assert float(found["score"]) == pytest.approx(float(expected["score"]), abs=1e-5)
    torch.testing.assert_close(
        found["positional_scores"], expected["positional_scores"], rtol=0, atol=1e-5
    )
    assert found["steps"] == expected["steps"]


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
    assert len({tuple(found["tokens"].tolist()) for found in together}) > 3
    if beam == "one length":
        assert len({len(found["tokens"]) for found in together}) > 2


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


@pytest.fixture
def first_inputs(monkeypatch):
    """What models are given to decode in the first pass."""
    seen = []
    for arch in PREDICTS_LENGTH:
        from fairseq.models import ARCH_MODEL_REGISTRY

        model = ARCH_MODEL_REGISTRY[arch]
        if "forward_decoder" in vars(model):
            stock = model.forward_decoder

            def watched(self, out, *args, stock=stock, **options):
                if out.step == 0:
                    seen.append(out.output_tokens.clone())
                return stock(self, out, *args, **options)

            monkeypatch.setattr(model, "forward_decoder", watched)
    return seen


def assert_blank(rows, lengths):
    """Rows of ``lengths`` that say nothing else, and no column of padding only."""
    expected = [[BOS] + [UNK] * (n - 2) + [EOS] + [PAD] * (max(lengths) - n) for n in lengths]
    assert rows.tolist() == expected


def predict(made, monkeypatch, scores):
    """Let the length head say (256,) log-probabilities, whatever it reads."""

    def forward_length(normalize, encoder_out):
        return scores.log_softmax(0).expand(encoder_out["encoder_out"][0].size(1), -1)

    monkeypatch.setattr(made.model.decoder, "forward_length", forward_length)


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
    decode(made)
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
        probabilities += setup.model.decoder.forward_length(True, encoded).exp()
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
    out = refinement._bound_insertions(scores, real, limit, most, eos_penalty)
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


def test_a_penalty_on_inserting_nothing_is_foreseen():
    scores = torch.tensor([[[2.0, 1.0, 0.0], [2.0, 0.0, 1.0]]])
    real = torch.ones(1, 3).bool()
    assert insertions(scores, real, 3)[1].tolist() == [[0, 0]]
    assert insertions(scores, real, 3, eos_penalty=5.0)[1].tolist() == [[0, 0]]
    assert insertions(scores, real, 5, eos_penalty=5.0)[1].tolist() == [[1, 1]]


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


# -- after decoding --------------------------------------------------------------------------


@each_arch
def test_repeats_are_removed_everywhere(build, arch):
    made = build(arch)
    options = {"max_iter": 2, "retain_history": True}
    shorter = 0
    for plain, found in zip(decode(made, **options), decode(made, **options, remove_repeats=True)):
        assert found["score"] == plain["score"]
        for before, after in zip(
            [plain, *plain["history"]], [found, *found["history"]], strict=True
        ):
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
        assert hypothesis["score"] == pytest.approx(expected, abs=1e-5), row


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
        assert best["score"] == pytest.approx(max(scores), abs=1e-5)
        assert naive_score(reranker.model, source, best["tokens"].tolist()) == pytest.approx(
            max(scores), abs=1e-5
        )


def test_the_reranker_can_read_every_candidate(build, toy):
    made = build(NAT, tame=False)
    short = toy_corpus.setup(toy.bin, *LIMITS[:2], "--max-target-positions", "9", arch="bart_base")
    short.model.eval()
    for found in decode(made, others=[short], beam_size=5, reranking=True):
        assert len(found["tokens"]) <= 8


def test_a_hypothesis_without_tokens_never_wins(build):
    rows = [[float("nan")], [-3.0], [-2.0], [float("nan")]]
    finalized = [[{"score": torch.tensor(score)}] for (score,) in rows]
    found = generator(build(NAT)).rerank(refinement._OwnScores(), finalized, None, 2)
    assert [h[0]["score"] for h in found] == [-float("inf"), -3.0, -2.0, -float("inf")]


# -- flags -----------------------------------------------------------------------------------


def test_models_are_told_apart(build, reranker):
    passes = {arch: refinement.validation_iterations(build(arch).model) for arch in NAT_ARCHS}
    assert passes == {arch: 0 if arch in (NAT, CRF) else 9 for arch in NAT_ARCHS}
    assert not refinement.is_one_pass(reranker.model)


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
