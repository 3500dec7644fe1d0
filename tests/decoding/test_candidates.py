"""Candidates: decoded token by token from the model, cut at EOS and at the target's length."""

import pytest
import torch

from fairseq_eisl.decoding import AT_EOS, candidates
from fairseq_eisl.decoding.fairseq import candidates as fairseq_candidates
from fairseq_eisl.decoding.fairseq.cached_transformer import CachedTransformer
from fairseq_eisl.decoding.fairseq.candidates import decode, decode_in_parallel
from fairseq_eisl.decoding.fairseq.model_scores import evaluation_mode, unwrapped
from tests.criterions.conftest import SENTENCES
from tests.toy import ARCHS, Child

PAD, EOS = 1, 2
SEEDS = (2, 3, 4)


def literal_greedy(model, sample, row: int, at_eos: str = "end"):
    """The candidate of one sentence: the argmax after the whole prefix, token by token.

    The encoder and decoder run anew for every token, without cache, on the sentence alone.
    """
    source, target = sample["net_input"]["src_tokens"][row], sample["target"][row]
    source = source[source.ne(PAD)].unsqueeze(0)
    prefix, tokens = [EOS], []
    length = int(target.ne(PAD).sum())
    while len(tokens) < length:
        logits = model(source, torch.tensor([source.size(1)]), torch.tensor([prefix]))[0][0, -1]
        logits[PAD] = -float("inf")
        if at_eos == "avoid" and len(tokens) + 1 < length:
            logits[EOS] = -float("inf")
        tokens.append(int(logits.argmax()))
        prefix.append(tokens[-1])
        if tokens[-1] == EOS and at_eos == "end":
            break
    return tokens


@pytest.mark.parametrize("at_eos", AT_EOS)
@pytest.mark.parametrize("arch", ARCHS)
def test_greedy_equals_the_literal_loop(build, arch, at_eos):
    ended = cut = 0
    for seed in SEEDS:
        made = build(arch=arch, seed=seed)
        sample = made.sample(SENTENCES)
        found = decode(made.model, sample, PAD, EOS, at_eos=at_eos)
        made.model.eval()
        for row in range(len(SENTENCES)):
            with torch.no_grad():
                expected = literal_greedy(made.model, sample, row, at_eos)
            size = len(expected)
            assert found.tokens[row, :size].tolist() == expected
            assert found.mask[row].tolist() == [t < size for t in range(found.mask.size(1))]
            assert found.tokens[row, size:].eq(PAD).all()
            assert found.prefix[row, :size].tolist() == [EOS] + expected[:-1]
            ended += size < int(sample["target"][row].ne(PAD).sum())
            cut += EOS not in expected
    assert cut and bool(ended) == (at_eos == "end")  # otherwise the seeds show too little


@pytest.mark.parametrize("arch", ARCHS)
def test_greedy_equals_fairseqs_generator(build, arch):
    """Beam 1 of the SequenceGenerator, up to where the candidate is cut."""
    from fairseq.sequence_generator import SequenceGenerator

    compared = 0
    for seed in SEEDS:
        made = build(arch=arch, seed=seed)
        sample = made.sample(SENTENCES)
        found = decode(made.model, sample, PAD, EOS)
        generator = SequenceGenerator(
            [made.model], made.task.target_dictionary, beam_size=1, max_len_b=20
        )
        for row, (best, *_) in enumerate(generator.generate([made.model], sample)):
            tokens = found.tokens[row][found.mask[row]].tolist()
            if tokens[0] == EOS:
                continue  # the generator wants at least one token
            assert best["tokens"][: len(tokens)].tolist() == tokens
            compared += 1
    assert compared > len(SENTENCES)


def test_a_candidate_starts_like_the_decoder_input(build):
    """Models that start from another token than EOS, e.g. a language tag."""
    made = build()
    sample = made.sample(SENTENCES)
    tag = made.task.target_dictionary.index("w5")
    sample["net_input"]["prev_output_tokens"][:, 0] = tag
    assert decode(made.model, sample, PAD, EOS).prefix[:, 0].eq(tag).all()


# -- sampling ------------------------------------------------------------------------------


def sampled(made, sample, seeds):
    return decode(made.model, sample, PAD, EOS, seeds=torch.as_tensor(seeds))


def test_a_sample_follows_the_models_distribution(build):
    """First and second token of many samples, against the model's probabilities."""
    count = 4000
    made = build(scale=2)
    sample = made.sample([("w1 w2 w3", "w4 w5")] * count)
    found = sampled(made, sample, range(count))
    first, second = found.tokens[:, 0], found.tokens[:, 1]
    common = first[first.ne(EOS)].mode().values
    made.model.eval()
    with torch.no_grad():
        net_input = dict(sample["net_input"], prev_output_tokens=torch.tensor([[EOS, common]]))
        for name in ("src_tokens", "src_lengths"):
            net_input[name] = net_input[name][:1]
        logits = made.model(**net_input)[0][0].double()
    logits[:, PAD] = -float("inf")
    for step, drawn in enumerate((first, second[first.eq(common)])):
        probability = logits[step].softmax(0)
        share = torch.bincount(drawn, minlength=len(probability)) / len(drawn)
        error = (probability * (1 - probability) / len(drawn)).sqrt()
        assert 0.05 < probability.max() < 0.9 and len(drawn) > 200  # a telling distribution
        assert ((share - probability).abs() <= 4.5 * error + 1e-3).all()


def test_a_sample_depends_on_its_seed_alone(build):
    """Not on the other sentences, the padding or the row."""
    made = build(scale=2)
    seeds = torch.arange(len(SENTENCES)) + 50
    sample = made.sample(SENTENCES, ids=range(len(SENTENCES)))
    order = sample["id"].tolist()
    together = sampled(made, sample, seeds[sample["id"]])
    again = sampled(made, sample, seeds[sample["id"]])
    other = sampled(made, sample, seeds[sample["id"]] + 1000)
    assert torch.equal(together.tokens, again.tokens)
    assert not torch.equal(together.tokens, other.tokens)
    for row, index in enumerate(order):
        alone = sampled(made, made.sample([SENTENCES[index]]), seeds[index : index + 1])
        size = int(alone.mask.sum())
        assert together.mask[row].sum() == size
        assert torch.equal(together.tokens[row, :size], alone.tokens[0, :size])


def test_the_criterion_samples_in_training_only(build):
    made = build(scale=2, train_decoding="sample")
    sample = made.sample(SENTENCES)
    seen = []

    def candidates(training: bool, seed: int):
        made.criterion.train(training)
        torch.manual_seed(seed)
        seeds = made.criterion.seeds(sample)
        seen.append(made.criterion._candidates(made.model, sample, seeds).tokens)
        return seen[-1]

    assert torch.equal(candidates(True, 1), candidates(True, 1))
    assert not torch.equal(candidates(True, 1), candidates(True, 2))  # another update
    greedy = decode(made.model, sample, PAD, EOS).tokens
    assert torch.equal(candidates(False, 1), greedy)
    assert not torch.equal(seen[0], greedy)


# -- the model is left as it was -----------------------------------------------------------


def modes(model):
    return {name: module.training for name, module in model.named_modules()}


def test_every_submodule_gets_its_own_mode_back(build):
    made = build("--encoder-layers", "2")
    made.model.encoder.layers[0].eval()  # as fine-tuning with frozen parts does
    made.model.decoder.layers[0].self_attn.eval()
    before = modes(made.model)
    assert set(before.values()) == {True, False}
    made.criterion(made.model, made.sample(SENTENCES))
    assert modes(made.model) == before


def test_modes_come_back_after_an_error(build, monkeypatch):
    made = build()

    def fail(*args, **kwargs):
        raise RuntimeError("in the midst of decoding")

    monkeypatch.setattr(made.model.decoder, "output_layer", fail)
    with pytest.raises(RuntimeError, match="in the midst"):
        made.criterion(made.model, made.sample(SENTENCES))
    assert all(modes(made.model).values())


def test_decoding_has_no_dropout_and_no_gradient(build):
    made = build("--dropout", "0.5")
    sample = made.sample(SENTENCES)
    first, second = (decode(made.model, sample, PAD, EOS).tokens for _ in range(2))
    assert torch.equal(first, second)
    made.model.eval()
    assert torch.equal(decode(made.model, sample, PAD, EOS).tokens, first)
    assert not made.model.training  # evaluation stays evaluation
    made.model.train()
    state = torch.get_rng_state()
    decode(made.model, sample, PAD, EOS)
    assert torch.equal(torch.get_rng_state(), state)
    assert all(p.grad is None for p in made.model.parameters())


@pytest.mark.parametrize("known", [True, False])
def test_it_stops_once_all_have_ended(build, monkeypatch, known):
    """No step is spent on a batch whose candidates have all ended."""
    made = build()
    sample = made.sample(["w1 w2 w3 w4", "w5 w6"])
    steps = []

    def ends(name, owner, step_of):
        method = getattr(owner, name)

        def counted(self, *args, **kwargs):
            steps.append(step_of(*args, **kwargs))
            found = method(self, *args, **kwargs)
            (found[0] if isinstance(found, tuple) else found)[..., EOS] = 1e4
            return found

        monkeypatch.setattr(owner, name, counted)

    if known:
        ends("logits", CachedTransformer, lambda step: step)
    else:
        monkeypatch.setattr(fairseq_candidates, "is_known", lambda decoder: False)

        def cached_step(tokens, encoder_out, incremental_state):
            assert incremental_state is not None
            return tokens.size(1) - 1

        ends("forward", type(made.model.decoder), cached_step)
    found = decode(made.model, sample, PAD, EOS)
    assert steps == [0] and found.tokens[:, 0].eq(EOS).all() and found.mask.sum() == 2


class _Wrapper(torch.nn.Module):
    def __init__(self, module):
        super().__init__()
        self.module = module

    def forward(self, *args, **kwargs):
        return self.module(*args, **kwargs)


def test_it_decodes_with_the_model_inside_wrappers(build):
    made = build()
    wrapped = _Wrapper(_Wrapper(made.model))
    assert unwrapped(wrapped) is made.model and unwrapped(made.model) is made.model
    calls = []
    wrapped.register_forward_pre_hook(lambda *args: calls.append(1))
    sample = made.sample(SENTENCES)
    assert torch.equal(
        decode(wrapped, sample, PAD, EOS).tokens, decode(made.model, sample, PAD, EOS).tokens
    )
    assert not calls


def test_it_trains_under_distributed_data_parallel(build):
    """pytorch#43259: a wrapped model is called once for each backward, the decoder inside it more.

    In a child, as a process group leaves threads behind.
    """

    def train(made):
        from torch.nn.parallel import DistributedDataParallel

        model = DistributedDataParallel(made.model, device_ids=None, find_unused_parameters=False)
        calls, decoder_calls = [], []
        model.register_forward_pre_hook(lambda *args: calls.append(1))
        layer = made.model.decoder.layers[0].fc1  # of whatever decodes
        layer.register_forward_pre_hook(lambda *args: decoder_calls.append(1))
        optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
        for update in range(3):
            optimizer.zero_grad()
            torch.manual_seed(update)
            loss, _, _ = made.criterion(model, made.sample(SENTENCES))
            loss.backward()
            without = [n for n, p in model.named_parameters() if p.grad is None]
            assert not without, without
            optimizer.step()
        assert len(calls) == 3 and len(decoder_calls) > 6, (calls, decoder_calls)

    def main():
        import torch.distributed as dist

        dist.init_process_group("gloo", store=dist.HashStore(), rank=0, world_size=1)
        for ce_factor in (0.0, 0.5):
            train(build(ce_factor=ce_factor))
        dist.destroy_process_group()
        print("trained")

    code, output = Child(main).wait()
    assert code == 0 and "trained" in output, output


@pytest.mark.parametrize("looks", [1, 2])
@pytest.mark.parametrize("at_eos", AT_EOS)
@pytest.mark.parametrize("arch", ARCHS)
def test_in_parallel_equals_token_by_token(build, monkeypatch, arch, at_eos, looks):
    if looks > 1:
        monkeypatch.setattr(candidates, "_CUDA_ITERATIONS_BETWEEN_LOOKS", looks)
        monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    # Alone, no other sentence keeps the iterations going.
    for seed, texts in [*((seed, SENTENCES) for seed in SEEDS), (SEEDS[0], SENTENCES[:1])]:
        made = build(arch=arch, seed=seed)
        sample = made.sample(texts)
        expected = decode(made.model, sample, PAD, EOS, at_eos=at_eos)
        found = decode_in_parallel(made.model, sample, PAD, EOS, at_eos=at_eos)
        for name in ("tokens", "mask"):
            assert torch.equal(getattr(found, name), getattr(expected, name)), name
        live = expected.mask
        assert torch.equal(found.prefix[live], expected.prefix[live])
        assert made.model.training


@pytest.mark.parametrize("function", [candidates.decode, candidates.decode_in_parallel])
def test_an_unknown_choice_is_named(function):
    one = torch.tensor([2])
    rest = {"seeds": None, "length": 1} if function is candidates.decode else {"guess": one[None]}
    with pytest.raises(ValueError, match="at_eos='never' is unknown; choose from end, go"):
        function(None, one, limit=one, pad=1, eos=2, at_eos="never", **rest)


def test_in_parallel_needs_few_forwards_where_the_model_knows_the_target(build, monkeypatch):
    """A model whose greedy output is the target sees it confirmed at once."""
    made = build()
    sample = made.sample(SENTENCES)
    greedy = decode(made.model, sample, PAD, EOS)
    keep = greedy.tokens.eq(EOS).any(1)  # whole outputs, which end like targets
    assert keep.any()
    known = {**sample, "target": greedy.tokens[keep]}
    known["net_input"] = {name: value[keep] for name, value in sample["net_input"].items()}
    calls = []
    forward = type(made.model.decoder).forward

    def counted(*args, **kwargs):
        calls.append(args)
        return forward(*args, **kwargs)

    monkeypatch.setattr(type(made.model.decoder), "forward", counted)
    found = decode_in_parallel(made.model, known, PAD, EOS)
    assert len(calls) == 1 and torch.equal(found.tokens, known["target"])


def test_the_criterion_decodes_in_parallel_on_request(build, monkeypatch):
    losses = []
    for parallel in (False, True):
        made = build(parallel_decoding=parallel)
        losses.append(made.criterion(made.model, made.sample(SENTENCES))[0])
    assert torch.equal(*losses)
    monkeypatch.setattr("fairseq_eisl.criterions.base.decode", None)
    made.criterion(made.model, made.sample(SENTENCES))


def test_cuda_looks_rarely(build, monkeypatch):
    """Where looking for the end is dear it is done every few steps: the result is the same."""
    made = build()
    sample = made.sample(SENTENCES)
    expected = decode(made.model, sample, PAD, EOS)
    monkeypatch.setattr(candidates, "_CUDA_STEPS_BETWEEN_LOOKS", 10**6)
    monkeypatch.setattr(torch.Tensor, "is_cuda", property(lambda self: True))
    found = decode(made.model, sample, PAD, EOS)
    assert torch.equal(found.tokens, expected.tokens) and torch.equal(found.mask, expected.mask)


def test_autocast_forgets_what_decoding_has_made_half(monkeypatch):
    """torch before 2.10 would train on copies that were made without gradient."""
    kept = []
    clear = torch.clear_autocast_cache
    monkeypatch.setattr(torch, "clear_autocast_cache", lambda: (kept.append("cleared"), clear()))
    model = torch.nn.Linear(2, 2)
    with evaluation_mode(model):
        kept.append("decoded")
    assert kept == ["decoded", "cleared"]
