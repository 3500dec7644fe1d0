"""A teacher or model that does not fit is named, and so are flags that change nothing."""

import pytest
import torch

from fairseq_eisl.criterions.nat_outputs import NATOutputs
from tests import toy as toy_corpus
from tests.criterions.conftest import SENTENCES
from tests.criterions.terms import FACTORS, NAT, options, save_teacher

LEV = "levenshtein_transformer"


@pytest.fixture(scope="module")
def saved(toy, tmp_path_factory):
    """Checkpoints by name, made when first asked for."""
    folder, found = tmp_path_factory.mktemp("teachers"), {}

    def saved(name="teacher", *flags, arch="transformer"):
        if name not in found:
            found[name] = folder / f"{name}.pt"
            save_teacher(toy.bin, found[name], *flags, arch=arch)
        return found[name]

    return saved


def build(toy, path, *flags, arch=NAT, criterion="oaxe", **more):
    chosen = options(path, **more)
    return toy_corpus.setup(toy.bin, *flags, arch=arch, criterion=criterion, **chosen)


def run(made):
    made.criterion(made.model, made.sample(SENTENCES))


@pytest.mark.parametrize(
    "options, words",
    [
        ({"nat_reg_factor": -1.0}, "--nat-reg-factor must be a finite number, 0 or above"),
        ({"hint_align_factor": float("inf")}, "--hint-align-factor must be a finite number"),
        (
            {"hint_hidden_factor": 5.0},
            "--hint-hidden-factor 5.0 needs --hint-teacher: a checkpoint of an autoregressive",
        ),
        ({"hint_align_factor": 1.0, "hint_teacher": ""}, "--hint-align-factor 1.0 needs --hint-t"),
        ({"hint_student_threshold": 1.5}, r"--hint-student-threshold is a cosine, in \[-1, 1\]"),
        ({"hint_teacher_threshold": float("nan")}, "--hint-teacher-threshold is a cosine"),
    ],
)
@pytest.mark.parametrize("criterion", ["eisl", "oaxe"])
def test_a_wrong_number_is_named(toy, criterion, options, words):
    with pytest.raises(ValueError, match=words):
        toy_corpus.setup(toy.bin, arch=NAT, criterion=criterion, **options)


def test_a_file_that_is_no_teacher_is_named_before_training(toy, tmp_path, saved):
    missing = tmp_path / "none.pt"
    with pytest.raises(ValueError, match="--hint-teacher .*none.pt: there is no such file"):
        build(toy, missing)
    missing.write_text("a text")
    with pytest.raises(ValueError, match="--hint-teacher .*none.pt: .*it is a text"):
        build(toy, missing)
    torch.save({"weights": {}}, missing)
    with pytest.raises(ValueError, match="--hint-teacher .*none.pt: it holds a dict without"):
        build(toy, missing)
    whole = torch.load(saved(), weights_only=False)
    torch.save({**whole, "model": {}}, missing)
    with pytest.raises(ValueError, match="none.pt: its model .* cannot be built: .*Missing key"):
        build(toy, missing)
    torch.save({name: whole[name] for name in ("cfg", "model")}, missing)
    with pytest.raises(ValueError, match="none.pt: no checkpoint .* saved: it lacks 'best_loss'"):
        build(toy, missing)
    torch.save({**whole, "cfg": None}, missing)
    with pytest.raises(ValueError, match="none.pt: no checkpoint .* it lacks its settings"):
        build(toy, missing)
    vars(whole["cfg"]["model"]).update(_name="from_elsewhere", arch="from_elsewhere")
    torch.save(whole, missing)
    with pytest.raises(ValueError, match=r"its model \(from_elsewhere\) cannot be built"):
        build(toy, missing)


@pytest.mark.parametrize("arch, kind", [(NAT, "NATransformerModel"), ("lstm", "LSTMModel")])
def test_another_kind_of_teacher_is_refused(toy, saved, arch, kind):
    with pytest.raises(ValueError, match=f"an autoregressive Transformer is needed, not {kind}"):
        build(toy, saved(arch, arch=arch))


def test_bart_is_a_teacher(toy, saved):
    run(build(toy, saved("bart", arch="bart_base")))


def test_another_dictionary_is_refused(toy, saved, tmp_path):
    state = torch.load(saved(), weights_only=False)
    known = len(state["model"]["encoder.embed_tokens.weight"])
    for name in ("encoder.embed_tokens", "decoder.embed_tokens", "decoder.output_projection"):
        state["model"][f"{name}.weight"] = state["model"][f"{name}.weight"][:-3]
    torch.save(state, tmp_path / "small.pt")
    words = f"knows {known - 3} source symbols, and the data here {known}: a teacher trained with"
    with pytest.raises(ValueError, match=words):
        build(toy, tmp_path / "small.pt")


def test_another_depth_is_refused(toy, saved):
    two = saved("two", "--decoder-layers", "2")
    words = "two.pt has 2 decoder layers, and the model, where it predicts words, 1"
    with pytest.raises(ValueError, match=words):
        run(build(toy, two))
    run(build(toy, two, "--decoder-layers", "2"))
    # The Levenshtein Transformer has its own number of layers for each of its outputs.
    deep = ["--decoder-layers", "2", "--early-exit"]
    run(build(toy, two, *deep, "1,1,2", arch=LEV))
    with pytest.raises(ValueError, match=words):
        run(build(toy, two, *deep, "2,2,1", arch=LEV))


def test_other_heads_are_refused_for_attention_alone(toy, saved):
    four = saved("four", "--decoder-attention-heads", "4")
    with pytest.raises(ValueError, match="has 4 decoder attention heads, and the model, .*, 2"):
        run(build(toy, four))
    run(build(toy, four, hint_align_factor=0.0))


def test_another_width_is_a_teacher(toy, saved):
    flags = ["--encoder-embed-dim", "64", "--decoder-embed-dim", "64"]
    run(build(toy, saved("wide", *flags)))


def test_a_teacher_for_shorter_sentences_says_so(toy, saved):
    short = saved("short", "--max-target-positions", "6")
    with pytest.raises(ValueError, match="reads 6 target tokens at most, and a batch has"):
        run(build(toy, short))


@pytest.mark.parametrize(
    "flags, words",
    [
        (["--decoder-layerdrop", "0.2"], r"needs every layer .*; NATransformerModel has none"),
        (["--checkpoint-activations"], "needs gradients of attention"),
    ],
)
def test_a_model_that_does_not_fit_is_named(toy, saved, flags, words):
    made = build(toy, saved(), *flags)
    with pytest.raises(ValueError, match=f"--hint-align-factor 1.0 .*{words}"):
        run(made)


def test_models_without_slots_or_an_output_layer_are_named(toy, saved, monkeypatch):
    made = build(toy, saved())
    monkeypatch.setattr(NATOutputs, "has_own_slots", lambda self: False)
    with pytest.raises(ValueError, match="--nat-reg-factor 2.0 .* needs a slot for every target"):
        run(made)
    monkeypatch.undo()
    layer = made.model.decoder.output_projection
    made.model.decoder.output_layer = lambda features: layer.forward(features)
    with pytest.raises(ValueError, match="needs a decoder that calls its output_projection"):
        run(made)
    del made.model.decoder.output_projection
    with pytest.raises(ValueError, match="needs a decoder with layers and an output_projection"):
        run(made)


# -- flags that change nothing -------------------------------------------------------------


def said(caplog, made):
    with caplog.at_level("WARNING", logger="fairseq_eisl"):
        for _ in range(2):
            run(made)
    return [r.getMessage() for r in caplog.records if "no effect" in r.message]


@pytest.mark.parametrize("criterion", ["eisl", "token_weighted", "policy_gradient"])
def test_on_autoregressive_models_one_line_says_that_they_do_nothing(toy, caplog, criterion):
    """And the teacher is not even read."""
    made = build(toy, "nowhere.pt", arch="transformer", criterion=criterion)
    (line,) = said(caplog, made)
    assert line.startswith("--nat-reg-factor 2.0, --hint-teacher nowhere.pt, --hint-hidden-fac")
    assert line.endswith(": no effect with TransformerModel, which is autoregressive")


@pytest.mark.parametrize(
    "more, line",
    [
        ({}, None),
        ({"hint_align_factor": 0.0}, None),
        (
            {"hint_hidden_factor": 0.0},
            "--hint-student-threshold -1.0, --hint-teacher-threshold 1.0: no effect with "
            "--hint-hidden-factor 0",
        ),
        (
            dict.fromkeys(FACTORS, 0.0),
            "--hint-teacher TEACHER, --hint-student-threshold -1.0, --hint-teacher-threshold 1.0: "
            "no effect with --hint-hidden-factor 0 and --hint-align-factor 0",
        ),
    ],
)
def test_flags_of_terms_that_are_off_are_said(toy, saved, caplog, more, line):
    lines = said(caplog, build(toy, saved(), **more))
    assert lines == [line.replace("TEACHER", str(saved()))] if line else not lines
