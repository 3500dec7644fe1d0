"""Models with latent alignments: slots, glancing, what begins with vanilla NAT, decoding."""

import math
from argparse import Namespace

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.models.glancing import glance, parsed_ratio
from fairseq_eisl.tasks.initial_weights import load_initial_weights
from tests import toy as toy_corpus
from tests.toy import LATENT_ARCHS

SENTENCES = ["w1 w2 al@@ x w7", "w3", ("w9 w4", "w4 w4 w4 w1"), ""]
each_arch = pytest.mark.parametrize("arch", LATENT_ARCHS)
CRITERIONS = {"ctc_transformer": "ctc_loss", "dag_transformer": "dag_loss"}


@pytest.fixture(scope="module")
def build(toy):
    """``tests.toy.setup`` of a model with its likelihood."""

    def make(arch, *flags, **options):
        criterion = CRITERIONS[arch]
        return toy_corpus.setup(toy.bin, *flags, arch=arch, criterion=criterion, **options)

    return make


def outputs(made, sample):
    net_input = sample["net_input"]
    return made.model(
        *(net_input["src_tokens"], net_input["src_lengths"]),
        *(sample["prev_target"], sample["target"]),
    )["word_ins"]


@each_arch
@pytest.mark.parametrize("scale", [1, 3])
def test_there_are_so_many_slots_for_each_source_token(build, arch, scale):
    made = build(arch, "--upsample-scale", str(scale))
    sample = made.sample(SENTENCES)
    found = outputs(made, sample)
    lengths = sample["net_input"]["src_lengths"] * scale
    assert found["output_mask"].sum(1).tolist() == lengths.tolist()
    symbols = len(made.task.target_dictionary) + (arch == "ctc_transformer")
    assert found["out"].shape == (4, int(lengths.max()), symbols)


@each_arch
def test_slots_stay_within_the_position_table(build, arch):
    made = build(arch, "--upsample-scale", "4", "--max-target-positions", "12")
    found = outputs(made, made.sample(SENTENCES))
    assert found["output_mask"].sum(1).max() == 12


@each_arch
def test_padding_changes_nothing(build, arch):
    made = build(arch)
    together = outputs(made, made.sample(SENTENCES))
    rows = made.sample(SENTENCES)["id"].tolist()
    for number, sentence in enumerate(SENTENCES):
        alone, b = outputs(made, made.sample([sentence])), rows.index(number)
        count = alone["out"].size(1)
        torch.testing.assert_close(together["out"][b, :count], alone["out"][0])
        if arch == "dag_transformer":
            torch.testing.assert_close(together["links"][b, :count, :count], alone["links"][0])


def test_transitions_are_probabilities_of_later_vertices(build):
    made = build("dag_transformer")
    found = outputs(made, made.sample(SENTENCES))
    real, links = found["output_mask"], found["links"].exp()
    last = real.sum(1) - 1
    place = torch.arange(real.size(1))
    inner = real & (place < last.unsqueeze(1))
    assert links.dtype == torch.float32
    assert torch.allclose(links.sum(2), inner.float(), atol=1e-5)
    assert not links.tril().any()


def test_the_start_symbol_needs_no_slot_of_ctc(build):
    made = build("ctc_transformer")
    sample = made.sample(SENTENCES)
    mask = outputs(made, sample)["mask"]
    assert mask.sum(1).tolist() == (sample["target"].ne(1).sum(1) - 1).tolist()


# -- initial weights -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "arch, fresh",
    [
        ("ctc_transformer", ["decoder.embed_blank.weight", "decoder.blank_bias"]),
        (
            "dag_transformer",
            [f"decoder.transitions.{n}.{p}" for n in ("gate", "key", "query")
             for p in ("bias", "weight")],
        ),
    ],
)  # fmt: skip
def test_training_begins_with_vanilla_nat(toy, build, tmp_path, arch, fresh):
    path = tmp_path / "nat.pt"
    nat = toy_corpus.setup(toy.bin, arch="nonautoregressive_transformer", seed=1).model
    torch.save({"model": nat.state_dict()}, path)
    made = build(arch, "--init-weights", str(path), scale=1.0)
    assert torch.equal(made.model.decoder.layers[0].fc1.weight, nat.decoder.layers[0].fc1.weight)
    assert sorted(load_initial_weights(made.model, str(path))) == sorted(fresh)


@each_arch
def test_positions_of_words_become_those_of_their_slots(toy, build, tmp_path, arch):
    """Slot t of three for each token is near word t / 3; another model of three keeps its own."""
    path = tmp_path / "nat.pt"
    nat = toy_corpus.setup(toy.bin, arch="nonautoregressive_transformer", seed=1).model
    torch.save({"model": nat.state_dict()}, path)
    made = build(arch, "--upsample-scale", "3", "--init-weights", str(path), scale=1.0)
    first = nat.pad + 1
    words = nat.decoder.embed_positions.weight[first:]
    slots = made.model.decoder.embed_positions.weight[first:]
    assert torch.allclose(slots[:7:3], words[:3]) and torch.equal(slots[0], words[0])
    assert torch.allclose(slots[4], (2 * words[1] + words[2]) / 3, atol=1e-6)
    assert torch.equal(
        made.model.encoder.embed_positions.weight, nat.encoder.embed_positions.weight
    )
    again = {"model": made.model.state_dict(), "cfg": {"model": Namespace(upsample_scale=3)}}
    torch.save(again, path)
    other = build(arch, "--upsample-scale", "3", "--init-weights", str(path), scale=1.0)
    assert torch.equal(other.model.decoder.embed_positions.weight[first:], slots)


def test_the_blank_is_likely_enough_to_be_learnt(build):
    made = build("ctc_transformer", scale=1.0)
    words = len(made.task.target_dictionary)
    width = made.model.decoder.embed_blank.weight.size(1)
    logits = made.model.decoder.output_layer(torch.zeros(1, 1, width))
    blank = logits.softmax(2)[0, 0, words].item()
    assert blank == pytest.approx(1 / (1 + math.exp(2)), rel=1e-4)
    # A checkpoint from before has none, and says what it said.
    state = {k: v for k, v in made.model.state_dict().items() if k != "decoder.blank_bias"}
    made.model.load_state_dict(made.model.upgrade_state_dict(state) or state)
    assert made.model.decoder.blank_bias.item() == 0


def test_transitions_may_know_how_far_they_go(build):
    """The usual distance is likeliest before anything is learnt, and each head learns its own."""
    made = build("dag_transformer", "--upsample-scale", "3", "--jump-scores", "8", scale=1.0)
    found = outputs(made, made.sample(SENTENCES))
    links = found["links"][0]
    assert links[0].argmax() == 3 and links[2].argmax() == 5
    assert torch.allclose(links.exp().sum(1)[:4], torch.ones(4), atol=1e-5)
    assert links[0, 9].isclose(links[0, 10], atol=0.2)  # farther than 8
    links[0, 3].backward()
    jump = made.model.decoder.transitions.jump
    assert jump.size(1) == 8 and jump.grad[:, 2].all()
    assert build("dag_transformer").model.decoder.transitions.jump is None
    with pytest.raises(ValueError, match="--jump-scores must be 0 or more, not -1"):
        build("dag_transformer", "--jump-scores", "-1")


# -- glancing --------------------------------------------------------------------------------------


def test_as_many_words_are_shown_as_the_first_pass_is_wrong():
    shown = torch.zeros(2, 5).long()
    expected = torch.tensor([[5, 6, 7, 8, 9]] * 2)
    words = torch.tensor([[1, 1, 1, 1, 0], [1, 1, 0, 0, 0]]).bool()
    written = torch.tensor([[5, 0, 0, 0, 0], [5, 6, 0, 0, 0]])
    draws = torch.tensor([[0.1, 0.4, 0.2, 0.3, 0.0]] * 2)
    wrong = written.ne(expected)
    found = glance(shown, expected, words, wrong, 0.5, draws)
    assert found.tolist() == [[5, 0, 7, 0, 0], [0] * 5]  # 1.5 of 3 mistakes, rounded up; none
    assert glance(shown, expected, words, wrong, 1.0, draws)[0].tolist() == [5, 0, 7, 8, 0]
    assert not glance(shown, expected, words, wrong, 0.0, draws).any()


def test_the_ratio_falls():
    ratio = parsed_ratio("0.5:0.1@200")
    assert [ratio.at(n) for n in (0, 100, 200, 900)] == pytest.approx([0.5, 0.3, 0.1, 0.1])
    assert parsed_ratio("0.25").at(7) == 0.25


@pytest.mark.parametrize("text", ["half", "1.5", "0.5:0.1", "0.5:7@10", "-0.1", "0.5.1"])
def test_a_ratio_that_cannot_be_meant_is_refused(build, text):
    with pytest.raises(ValueError, match="--glancing-ratio must be a number in"):
        build("ctc_transformer", f"--glancing-ratio={text}")


@each_arch
def test_words_are_shown_in_their_slots_in_training_alone(build, arch, monkeypatch):
    made = (
        build(arch, "--glancing-ratio", "1:0@100", "--src-embedding-copy")
        if arch == "dag_transformer"
        else build(arch, "--glancing-ratio", "1:0@100")
    )
    seen, written = [], made.model.decoder.written

    def remember(slots, encoder_out):
        seen.append(slots)
        return written(slots, encoder_out)

    monkeypatch.setattr(made.model.decoder, "written", remember)
    sample = made.sample(SENTENCES)
    torch.manual_seed(1)
    found = outputs(made, sample)
    first, second = seen
    assert torch.equal(first, made.model.slots(sample["net_input"]["src_tokens"]))
    shown = second.ne(first)
    assert shown.any() and not found["out"].isnan().any()
    for b, target in enumerate(sample["target"].tolist()):
        words = [token for token in target if token > 3]
        given = second[b][shown[b]].tolist()
        assert given == [w for w in words if w in given][: len(given)] or set(given) <= set(words)
    for changed in ("after the last update", "eval"):
        seen.clear()
        made.model.set_num_updates(100)
        if changed == "eval":
            made.model.set_num_updates(0)
            made.model.eval()
        outputs(made, sample)
        assert len(seen) == 1 and torch.equal(seen[0], first)


@each_arch
def test_what_is_shown_is_what_the_decoder_reads(build, arch):
    """A word in a slot changes what it says, copies of the source or not."""
    made = build(arch)
    sample = made.sample(["w1 w2 w3"])
    net_input = sample["net_input"]
    encoded = made.model.encoder(net_input["src_tokens"], net_input["src_lengths"])
    slots = made.model.slots(net_input["src_tokens"])
    plain = made.model.decoder.written(slots, encoded).logits
    slots[0, 3] = 7
    assert (made.model.decoder.written(slots, encoded).logits - plain).abs().max() > 1e-3


# -- decoding --------------------------------------------------------------------------------------


def generate(made, sample, *flags, **changes):
    generator = made.task.build_generator([made.model], {})
    for name, value in changes.items():
        setattr(generator, name, value)
    made.model.eval()
    found = generator.generate([made.model], sample)
    return [hypotheses[0] for hypotheses in found]


@each_arch
def test_hypotheses_begin_and_end_as_those_of_other_models(build, arch):
    made = build(arch)
    sample = made.sample(SENTENCES)
    for found in generate(made, sample):
        tokens = found["tokens"].tolist()
        assert tokens[0] == 0 and tokens[-1] == 2 and not {0, 1, 2} & set(tokens[1:-1])
        assert max(tokens) < len(made.task.target_dictionary)
        assert len(found["positional_scores"]) == len(tokens)
        assert (found["positional_scores"] <= 0).all()


def test_ctc_says_the_best_symbols_merged(build):
    made = build("ctc_transformer")
    sample = made.sample(SENTENCES)
    found = generate(made, sample, blank=None)
    best = outputs(made, sample)
    for b, hypothesis in enumerate(found):
        symbols = best["out"][b, best["output_mask"][b]].argmax(1).tolist()
        merged = [s for s, after in zip(symbols, [*symbols[1:], None]) if s != after]
        words = [s for s in merged if 2 < s < best["out"].size(2) - 1]
        assert hypothesis["tokens"][1:-1].tolist() == words


@pytest.mark.parametrize("search", ["greedy", "lookahead", "viterbi"])
def test_the_search_is_a_flag(build, search):
    from fairseq_eisl.decoding.latent import path_of

    made = build("dag_transformer", "--dag-search", search, "--dag-length-penalty", "0.5")
    sample = made.sample(SENTENCES)
    found = generate(made, sample, blank=None)
    best = outputs(made, sample)
    scores, tokens = best["out"].log_softmax(2).max(2)
    path = path_of(best["links"], scores, best["output_mask"], search, 0.5)
    for b, hypothesis in enumerate(found):
        said = [t for t in tokens[b][path[b]].tolist() if t > 2]
        assert hypothesis["tokens"][1:-1].tolist() == said


@pytest.mark.parametrize(
    "arch, flags, line",
    [
        ("ctc_transformer", ["--dag-search", "greedy"], "--dag-search greedy: no effect with CTC"),
        ("dag_transformer", ["--dag-search", "greedy"], None),
        (
            "dag_transformer",
            ["--dag-length-penalty", "0.5"],
            "--dag-length-penalty 0.5: no effect with --dag-search lookahead",
        ),
    ],
)
def test_a_search_without_effect_is_said(build, caplog, arch, flags, line):
    made = build(arch, *flags)
    caplog.clear()
    made.task.build_generator([made.model], {})
    lines = [record.message for record in caplog.records if "no effect" in record.message]
    assert len(lines) == (line is not None) and all(each.startswith(line) for each in lines)


@each_arch
def test_further_passes_change_nothing(build, arch):
    made = build(arch)
    sample = made.sample(SENTENCES)
    once = [found["tokens"].tolist() for found in generate(made, sample)]
    again = generate(made, sample, max_iter=3, adaptive=False)
    assert [found["tokens"].tolist() for found in again] == once


@each_arch
@pytest.mark.parametrize(
    "changes, words",
    [
        ({"beam_size": 3}, "predicts no length"),
        ({"length_factor": 1.5}, "predicts no length"),
    ],
)
def test_what_such_models_do_not_have_is_said(build, arch, changes, words):
    made = build(arch)
    with pytest.raises(ValueError, match=words):
        generate(made, made.sample(SENTENCES), **changes)


@each_arch
@pytest.mark.parametrize(
    "flags, words",
    [
        (["--noise", "random_mask"], "needs --noise full_mask"),
        (["--upsample-scale", "0"], "--upsample-scale must be 1 or more, not 0"),
        (["--axe-length-factor", "1.2"], "needs as many slots as target words"),
        (["--dag-length-penalty", "-1"], "--dag-length-penalty must be a finite number"),
    ],
)
def test_wrong_flags_are_named(build, arch, flags, words):
    with pytest.raises(ValueError, match=words):
        build(arch, *flags)


def test_gradients_reach_every_parameter(build):
    for arch in LATENT_ARCHS:
        made = build(arch, scale=1.0)
        loss, _, _ = made.criterion(made.model, made.sample(SENTENCES))
        loss.backward()
        for name, parameter in made.model.named_parameters():
            assert parameter.grad is not None and parameter.grad.isfinite().all(), name
            if "key.bias" not in name:  # a softmax does not see it
                assert F.relu(parameter.grad.abs()).sum() > 0, name
