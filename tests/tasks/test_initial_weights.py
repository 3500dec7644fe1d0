"""--init-weights: what two models have in common by name."""

import pytest
import torch

from fairseq_eisl.tasks.initial_weights import load_initial_weights
from tests.toy import setup

NAT, CRF, ITERATIVE = (
    *("nonautoregressive_transformer", "nacrf_transformer"),
    "iterative_nonautoregressive_transformer",
)
# fairseq's defaults differ between architectures.
NORMS = ["--encoder-normalize-before", "--decoder-normalize-before"]
CMLM, LEV = "cmlm_transformer", "levenshtein_transformer"


def saved(toy, arch, path, *flags, seed=1):
    model = setup(toy.bin, *flags, arch=arch, seed=seed).model
    torch.save({"model": model.state_dict()}, path)
    return model


@pytest.mark.parametrize(
    "first, second, fresh",
    [
        (NAT, NAT, []),
        (NAT, ITERATIVE, []),
        (NAT, CRF, ["crf_layer.E1.weight", "crf_layer.E2.weight"]),
        (CMLM, LEV, ["decoder.embed_mask_ins.weight", "decoder.embed_word_del.weight"]),
    ],
)
def test_what_both_have_is_copied_and_the_rest_is_named(toy, tmp_path, first, second, fresh):
    path = tmp_path / "first.pt"
    theirs = saved(toy, first, path, *NORMS).state_dict()
    model = setup(toy.bin, *NORMS, arch=second, seed=2).model
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert sorted(load_initial_weights(model, str(path))) == sorted(fresh)
    for name, value in model.state_dict().items():
        assert torch.equal(value, (theirs if name in theirs else before)[name]), name
    assert model.decoder.embed_tokens.weight is model.encoder.embed_tokens.weight  # still tied


def test_the_task_begins_with_them_but_not_where_a_checkpoint_is_loaded(toy, tmp_path):
    path = tmp_path / "first.pt"
    theirs = saved(toy, NAT, path)
    made = setup(toy.bin, "--init-weights", str(path), arch=NAT, seed=2, scale=1.0)
    assert torch.equal(made.model.encoder.embed_tokens.weight, theirs.encoder.embed_tokens.weight)
    path.unlink()  # translation does not need it
    made.task.build_model(made.cfg.model, from_checkpoint=True)


def test_wrong_checkpoints_are_named(toy, tmp_path):
    path = tmp_path / "other.pt"
    with pytest.raises(ValueError, match="--init-weights .*other.pt: there is no such file"):
        setup(toy.bin, "--init-weights", str(path), arch=NAT)
    saved(toy, NAT, path, "--max-target-positions", "20")
    with pytest.raises(
        ValueError, match=r"decoder.embed_positions.weight is \(22, .* in this model"
    ):
        setup(toy.bin, "--init-weights", str(path), arch=NAT)
    torch.save([1], path)
    with pytest.raises(ValueError, match="this is no fairseq checkpoint"):
        setup(toy.bin, "--init-weights", str(path), arch=NAT)
    torch.save({"model": {"decoder.nothing": torch.zeros(1)}}, path)
    with pytest.raises(ValueError, match="no parameter has a name"):
        setup(toy.bin, "--init-weights", str(path), arch=NAT)


def test_a_crf_begins_as_the_nat_that_it_begins_with(toy):
    """Transition scores are zero, so the most probable words are those of the decoder alone; and
    they learn from the first update on."""
    made, stock = setup(toy.bin, arch=CRF), setup(toy.bin, "--task", "translation_lev", arch=CRF,
                                                  criterion="nat_loss")  # fmt: skip
    model, sample = made.task.build_model(made.cfg.model), made.sample(["w1 w2 w3", "w4"])
    scores = torch.randn(2, 4, len(made.task.target_dictionary))
    mask = torch.tensor([[True] * 4, [True, True, False, False]])
    _, words = model.crf_layer.forward_decoder(scores, mask)
    assert torch.equal(words[mask], scores.argmax(2)[mask])
    made.criterion(model, sample)[0].backward()
    assert model.crf_layer.E2.weight.grad.abs().sum() > 0
    assert stock.task.build_model(stock.cfg.model).crf_layer.E2.weight.any()
