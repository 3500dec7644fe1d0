"""Decoding of non-autoregressive models: lengths, candidates, reranking, repeats."""

from argparse import Namespace

import pytest
import torch

from fairseq_eisl.tasks import _refinement as refinement
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.tolerances import assert_near
from tests.toy import NAT_ARCHS

BOS, PAD, EOS, UNK = range(4)
ONE_PASS = ("nonautoregressive_transformer", "nacrf_transformer")
LEVENSHTEIN = "levenshtein_transformer"


def build(toy, arch, *flags, seed=2):
    made = toy_corpus.setup(toy.bin, *flags, arch=arch, seed=seed, scale=2)
    made.model.eval()
    return made


def decode(made, sample, models=None, **options):
    generator = refinement.RefinementGenerator(
        made.task.target_dictionary,
        max_length=options.pop("max_length", made.task.cfg.max_target_positions),
        **options,
    )
    return [best for best, *_ in generator.generate(models or [made.model], sample)]


@pytest.mark.parametrize("beam", [1, 3])
@pytest.mark.parametrize("iterations", [0, 3])
@pytest.mark.parametrize("arch", NAT_ARCHS)
def test_a_padded_batch_is_decoded_like_its_sentences(toy, arch, iterations, beam):
    if beam > 1 and arch == LEVENSHTEIN:
        pytest.skip("predicts no length")
    made = build(toy, arch)
    options = {"max_iter": iterations, "beam_size": beam}
    sample = made.sample(SENTENCES)
    together = dict(zip(sample["id"].tolist(), decode(made, sample, **options)))
    for index, sentence in enumerate(SENTENCES):
        (alone,) = decode(made, made.sample([sentence]), **options)
        assert alone["tokens"].equal(together[index]["tokens"]), sentence
        assert_near(together[index]["score"], alone["score"], torch.float32, sentence)


@pytest.mark.parametrize("arch", NAT_ARCHS)
def test_which_models_are_made_for_one_pass(toy, arch):
    model = build(toy, arch).model
    assert refinement.is_one_pass(model) == (arch in ONE_PASS)
    assert refinement.validation_iterations(model) == (0 if arch in ONE_PASS else 9)


def always_longest(model):
    """Make the length head sure of the last class, 255 tokens."""
    table = model.decoder.embed_length.weight
    with torch.no_grad():
        table.zero_()
    stock = model.decoder.forward_length

    def forward_length(**options):
        scores = torch.zeros_like(stock(**options))
        scores[:, 255] = 1.0
        return scores.log_softmax(1)

    model.decoder.forward_length = forward_length


@pytest.mark.parametrize("flags", [(), ("--pred-length-offset",)])
@pytest.mark.parametrize("choice", refinement.LENGTH_CANDIDATES)
@pytest.mark.parametrize("arch", [a for a in NAT_ARCHS if a != LEVENSHTEIN])
def test_predicted_lengths_stay_in_the_position_table(toy, arch, choice, flags):
    limits = ("--max-source-positions", "16", "--max-target-positions", "16")
    made = build(toy, arch, *limits, *flags)
    always_longest(made.model)
    for beam in (1, 5):
        found = decode(
            *(made, made.sample(SENTENCES[:3])),
            **{"max_iter": 1, "beam_size": beam, "length_candidates": choice},
        )
        assert all(2 <= len(hypothesis["tokens"]) <= 16 for hypothesis in found)
    shorter = decode(made, made.sample(SENTENCES[:3]), max_iter=0, max_length=5)
    assert all(len(hypothesis["tokens"]) == 5 for hypothesis in shorter)


def test_a_levenshtein_model_that_inserts_without_end_stays_in_the_position_table(toy, monkeypatch):
    """It wants to keep every word and to insert 200 after each."""
    limits = ("--max-source-positions", "16", "--max-target-positions", "16")
    made = build(toy, LEVENSHTEIN, *limits)
    decoder = type(made.model.decoder)

    def always(name, chosen):
        stock = getattr(decoder, name)

        def forward(self, *args, **options):
            scores, attention = stock(self, *args, **options)
            scores = torch.zeros_like(scores)
            scores[..., chosen] = 1.0
            return scores, attention

        monkeypatch.setattr(decoder, name, forward)

    always("forward_mask_ins", 200)
    always("forward_word_del", 0)
    for iterations in (0, 4):
        found = decode(made, made.sample(SENTENCES), max_iter=iterations, max_ratio=20)
        assert all(len(hypothesis["tokens"]) == 16 for hypothesis in found)
    # The model is as it was: nothing of the guard is left behind.
    assert not {"forward_mask_ins", "forward_word_del"} & set(vars(made.model.decoder))


def test_insertions_are_cut_from_the_left_where_the_room_ends():
    """Three tokens, room for 3 more, wanted 2 + 4 (+ 1 after the end, which does not count)."""
    scores = torch.zeros(1, 3, 8)
    for slot, number in enumerate([2, 4, 1]):
        scores[0, slot, number] = 5.0
    real = torch.tensor([[True, True, True, False]])
    out = refinement._bound_insertions(scores, real, 6)
    assert out.argmax(2)[0, :2].tolist() == [2, 1]
    assert out[0, 0].equal(scores[0, 0])  # what fits is not touched
    assert refinement._bound_insertions(scores, real, 9).equal(scores)
    assert refinement._bound_insertions(scores, real, 3).argmax(2)[0, :2].tolist() == [0, 0]


def test_the_most_likely_lengths_are_tried(toy):
    """top-k: the k best classes of the length distribution; contiguous: those around the best."""
    made = build(toy, "cmlm_transformer")
    model, tried = made.model, []
    scores = torch.full((1, 256), -9.0)
    scores[0, [4, 9, 6, 12]] = torch.tensor([3.0, 2.0, 1.0, 0.0])
    model.decoder.forward_length = lambda **options: scores.log_softmax(1)
    stock = model.forward_decoder

    def forward_decoder(out, *args, **options):
        tried.append(out.output_tokens.ne(PAD).sum(1).tolist())
        return stock(out, *args, **options)

    model.forward_decoder = forward_decoder
    for choice, expected in (("top-k", [4, 9, 6]), ("contiguous", [3, 4, 5])):
        tried.clear()
        decode(
            *(made, made.sample(["w1 w2"])),
            **{"max_iter": 0, "beam_size": 3, "length_candidates": choice},
        )
        assert tried == [expected]


def test_repeats_are_removed_with_their_scores(toy):
    made = build(toy, "nonautoregressive_transformer")
    sample = made.sample(SENTENCES)
    plain = decode(made, sample, max_iter=0)
    clean = decode(made, sample, max_iter=0, remove_repeats=True, retain_history=True)
    assert any(len(a["tokens"]) > len(b["tokens"]) for a, b in zip(plain, clean))
    for before, after in zip(plain, clean):
        kept, scores = [], []
        for token, score in zip(before["tokens"].tolist(), before["positional_scores"].tolist()):
            if not kept or kept[-1] != token:
                kept.append(token)
                scores.append(score)
        assert after["tokens"].tolist() == kept
        assert after["positional_scores"].tolist() == scores
        assert after["score"] == before["score"] and after["history"]


@pytest.mark.parametrize("left_pad", [False, True])
def test_reranking_is_the_mean_log_probability_of_each_hypothesis(toy, left_pad):
    made, ranker = build(toy, "cmlm_transformer"), build(toy, "transformer")
    sample = made.sample(SENTENCES[:4])
    if left_pad:
        source, lengths = sample["net_input"]["src_tokens"], sample["net_input"]["src_lengths"]
        rows = [row[:n].roll(0) for row, n in zip(source, lengths)]
        for i, row in enumerate(rows):
            source[i] = PAD
            source[i, source.size(1) - len(row) :] = row
    options = {"max_iter": 0, "beam_size": 3}
    models = [made.model, ranker.model]
    best = decode(made, sample, models, reranking=True, **options)
    # Literally: each candidate length alone, scored alone.
    generator = refinement.RefinementGenerator(made.task.target_dictionary, **options)
    candidates = []
    stock = generator.rerank
    generator.reranking = True

    def rerank(reranker, finalized, encoder_input, beam_size):
        candidates.extend(hypothesis[0]["tokens"] for hypothesis in finalized)
        return stock(reranker, finalized, encoder_input, beam_size)

    generator.rerank = rerank
    generator.generate(models, sample)
    assert len(candidates) == 12
    for row in range(4):
        source = sample["net_input"]["src_tokens"][row]
        source = source[source.ne(PAD)][1:].unsqueeze(0)  # without bos
        means = []
        for tokens in candidates[3 * row : 3 * row + 3]:
            prefix = tokens[:-1].clone().unsqueeze(0)
            prefix[0, 0] = EOS
            length = torch.tensor([source.size(1)])
            with torch.no_grad():
                log_probs = ranker.model(source, length, prefix)[0].log_softmax(2)[0]
            means.append(log_probs.gather(1, tokens[1:, None]).mean())
        means = torch.stack(means)
        assert_near(best[row]["score"], means.max(), torch.float32)
        assert best[row]["tokens"].equal(candidates[3 * row + int(means.argmax())])


@pytest.mark.parametrize("arch", [a for a in NAT_ARCHS if a != "nacrf_transformer"])
def test_two_models_make_an_ensemble(toy, arch):
    made, other = build(toy, arch), build(toy, arch, seed=5)
    alone = build(toy, arch)
    sample = made.sample(SENTENCES)
    both = decode(made, sample, [made.model, other.model], max_iter=1)
    single = decode(alone, sample, max_iter=1)
    assert len(both) == len(SENTENCES)
    twice = build(toy, arch)
    same = decode(twice, sample, [twice.model, build(toy, arch).model], max_iter=1)
    for a, b in zip(single, same):
        assert a["tokens"].equal(b["tokens"])


def test_options_that_cannot_work_are_named(toy):
    made = build(toy, LEVENSHTEIN)
    sample, dictionary = made.sample(SENTENCES), made.task.target_dictionary
    with pytest.raises(ValueError, match="--iter-decode-with-beam 3: Levenshtein.* no length"):
        decode(made, sample, beam_size=3)
    with pytest.raises(ValueError, match="needs two models, --path NAT.pt:AR.pt"):
        decode(made, sample, reranking=True)
    with pytest.raises(ValueError, match="'nearest' is unknown; choose from contiguous, top-k"):
        refinement.RefinementGenerator(dictionary, length_candidates="nearest")
    with pytest.raises(ValueError, match="--iter-decode-with-beam must be 1 or more, not 0"):
        refinement.RefinementGenerator(dictionary, beam_size=0)


@pytest.mark.parametrize("arch", NAT_ARCHS)
def test_the_task_decodes_validation_as_the_model_is_meant(toy, arch):
    task, model = (build(toy, arch)[i] for i in (1, 2))
    expected = refinement.validation_iterations(model)
    assert task.build_generator([model], Namespace()).max_iter == expected
    assert task.build_generator([model], Namespace(iter_decode_max_iter=2)).max_iter == 2
