"""``--criterion eisl`` with flags or models that it cannot work with: one clear error."""

import pytest
import torch
from omegaconf import OmegaConf

from fairseq_eisl.criterions.eisl import EISLCriterion, EISLCriterionConfig, loss_options
from tests.criterions.conftest import SENTENCES
from tests.toy import USER_DIR, parse, setup, train

BAD = [
    # field, value, what the message must hold besides the flag
    ("ngram", "", "''"),
    ("ngram", "2,,3", "'2,,3'"),
    ("ngram", "2.5", "whole numbers separated by commas, not '2.5'"),
    ("ngram", "two", "'two'"),
    ("ngram", "2 3", "'2 3'"),
    ("ngram_weight", "0.8", "1 weights for the 3 orders of --ngram 2,3,4"),
    ("ngram_weight", "0.8,0.1,x", "numbers separated by commas, not '0.8,0.1,x'"),
    ("ngram_weight", "1,-1,1", "-1.0"),
    ("ngram_weight", "0,0,0", "all 0"),
    ("ngram_weight", "1,nan,1", "nan"),
    ("ngram_weight", "1,inf,1", "inf"),
    ("ngram_factor", -1.0, "-1.0"),
    ("ngram_factor", float("nan"), "nan"),
    ("ce_factor", -0.5, "-0.5"),
    ("ce_factor", float("inf"), "inf"),
    ("label_smoothing", -0.1, "[0, 1), not -0.1"),
    ("label_smoothing", 1.0, "[0, 1), not 1.0"),
    ("label_smoothing", float("nan"), "nan"),
    ("position_selection", "best", "'best' is unknown; choose from gumbel, softmax, uniform, hard"),
    ("gumbel_temperature", 0.0, "above 0, not 0.0"),
    ("gumbel_temperature", -1.0, "-1.0"),
    ("gumbel_temperature", float("nan"), "nan"),
    ("gumbel_temperature", float("inf"), "inf"),
    ("selection_on", "logits", "'logits' is unknown; choose from log_prob, prob"),
    ("log_prob_floor", 0.0, "below 0, not 0.0"),
    ("log_prob_floor", float("-inf"), "-inf"),
    ("log_prob_floor", float("nan"), "nan"),
    (
        "train_decoding",
        "beam",
        "'beam' is unknown; choose from greedy, sample, teacher-forcing",
    ),
    ("ngram_units", "letters", "'letters' is unknown; choose from pieces, words"),
    ("clean_text_smoothing", 0.0, "a finite number above 0, not 0.0"),
    ("clean_text_cap", 0.5, "1 or above (inf: none), not 0.5"),
    ("output_layer", "half", "'half' is unknown; choose from auto, whole, blocks"),
    ("eisl_special", "pin", "'pin' is unknown; choose from anchor, include, exclude"),
    ("eisl_steps", "last", "'last' is unknown; choose from all, first"),
    ("eisl_compat", "old", "'old' is unknown; choose from none, released"),
    ("crf_loss_factor", -1.0, "0 or above, not -1.0"),
    ("mask_ins_loss_factor", float("nan"), "nan"),
    ("word_del_loss_factor", float("inf"), "inf"),
    ("nat_reg_factor", -1.0, "0 or above, not -1.0"),
    ("hint_hidden_factor", 5.0, "5.0 needs --hint-teacher"),
    ("hint_align_factor", float("nan"), "nan"),
    ("hint_student_threshold", 1.5, "in [-1, 1], not 1.5"),
    ("hint_teacher_threshold", float("nan"), "nan"),
]


@pytest.fixture(scope="module")
def task(build):
    return build().task


@pytest.mark.parametrize("name, value, words", BAD)
def test_a_bad_value_is_refused_with_its_flag(task, name, value, words):
    with pytest.raises(ValueError) as caught:
        EISLCriterion(EISLCriterionConfig(**{name: value}), task)
    message = str(caught.value)
    assert message.startswith("--" + name.replace("_", "-")) and words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "name, value, words",
    [
        ("ngram", [], "not []"),
        ("ngram", [1, 2.5], "not [1, 2.5]"),
        ("ngram", [True], "not [True]"),
        ("ngram", [[1], [2]], "not [[1], [2]]"),
        ("ngram", ["1", "x"], "not ['1', 'x']"),
        ("ngram", None, "not 'None'"),
        ("ngram", 2.5, "not '2.5'"),
        ("ngram", {"1": 2}, "{'1': 2}"),
        ("ngram_weight", [0.5], "1 weights for the 3 orders of --ngram 2,3,4"),
        ("ngram_weight", [0.5, None, 1], "not [0.5, None, 1]"),
    ],
)
def test_a_bad_list_is_refused_with_its_flag(task, name, value, words):
    with pytest.raises(ValueError) as caught:
        EISLCriterion(EISLCriterionConfig(**{name: value}), task)
    message = str(caught.value)
    assert message.startswith("--" + name.replace("_", "-")) and words in message
    assert "\n" not in message


@pytest.mark.parametrize(
    "orders", ["-1,2", [-1, 2], (-1, 2), ["-1", "2"], OmegaConf.create([-1, 2])]
)
def test_lists_are_as_good_as_commas(orders):
    """hydra and YAML have lists; a single number is one, too."""
    weights = [1, 0.5] if isinstance(orders, list) else "1,0.5"
    options = loss_options(EISLCriterionConfig(ngram=orders, ngram_weight=weights))
    assert options.ngrams == (-1, 2) and options.order_weights == (1.0, 0.5)
    assert loss_options(EISLCriterionConfig(ngram=2, ngram_weight=1)).ngrams == (2,)


def test_a_list_through_hydra_reaches_the_criterion(build):
    """As fairseq merges a configuration file with the fields of the criterion."""
    task = build().task
    given = OmegaConf.create({"_name": "eisl", "ngram": [-1, 2], "ngram_weight": [0.5, 0.5]})
    assert task.build_criterion(given).options.ngrams == (-1, 2)


@pytest.mark.parametrize("joined", [True, False])
@pytest.mark.parametrize(
    "flag, value",
    [
        ("--ngram", "-1,2"),
        ("--ngram", "-1"),
        ("--ngram", "-1,-2, 3"),
        ("--log-prob-floor", "-2e1"),
        ("--log-prob-floor", "-.5"),
        ("--log-prob-floor", "-20"),
        ("--target-noise-seed", "-3"),
    ],
)
def test_values_may_begin_with_a_minus_sign(build, toy, flag, value, joined):
    name = flag[2:].replace("-", "_")
    words = [f"{flag}={value}"] if joined else [flag, value]
    cfg = parse(str(toy.bin), "--criterion", "eisl", *words)
    found = cfg.criterion[name] if name in cfg.criterion else cfg.task[name]
    assert found == type(found)(value)


@pytest.mark.parametrize(
    "flag, value",
    [
        ("--ngram", "-1,x"),
        ("--ngram", "-1.5"),
        ("--ngram-weight", "-0.8,0.1,0.1"),
        ("--log-prob-floor", "-inf"),
        ("--gumbel-temperature", "-1e-3"),
        ("--ngram-factor", "-1e3"),
    ],
)
def test_bad_values_with_a_minus_sign_get_the_message_of_their_flag(toy, flag, value):
    from fairseq_eisl.recipes.flag_check import find_error

    command = ["fairseq-train", str(toy.bin), "--user-dir", USER_DIR, "--arch", "transformer"]
    # What a recipe needs: an end, a log that can be read.
    command += ["--max-tokens", "200", "--max-update", "1", "--log-format", "simple"]
    error = find_error([*command, "--criterion", "eisl", flag, value])
    assert error and error.startswith(flag) and "expected one argument" not in error
    assert find_error([*command, "--criterion", "eisl", "--ngram", "-1,2"]) is None


def test_every_flag_of_the_criterion_is_in_that_table():
    switches = {"ngram_sum", "candidate_after_eos", "parallel_decoding", "share_encoder_output"}
    switches.add("candidate_avoid_eos")
    switches.add("hint_teacher")  # a file, read for non-autoregressive models only
    switches.add("clean_text")  # files, read when a training begins
    fields = set(EISLCriterionConfig.__dataclass_fields__) - {"_name"}
    assert {name for name, _, _ in BAD} | switches == fields


def test_what_goes_on_after_an_end_says_one(task):
    options = EISLCriterionConfig(candidate_after_eos=True, candidate_avoid_eos=True)
    with pytest.raises(ValueError, match="--candidate-after-eos and --candidate-avoid-eos: "):
        EISLCriterion(options, task)


def test_only_greedy_candidates_are_decoded_in_parallel(task):
    for decoding in ("sample", "teacher-forcing"):
        options = EISLCriterionConfig(parallel_decoding=True, train_decoding=decoding)
        with pytest.raises(ValueError, match="--parallel-decoding is for --train-decoding greedy"):
            EISLCriterion(options, task)


def test_nothing_to_train_on_is_refused(task):
    with pytest.raises(ValueError, match="--ngram-factor and --ce-factor are both 0"):
        EISLCriterion(EISLCriterionConfig(ngram_factor=0.0, ce_factor=0.0), task)


@pytest.mark.parametrize(
    "options",
    [
        {"ngram": "1"},
        {"ngram": " 1, 2 "},
        {"ngram": "0,-1"},
        {"ngram": "99"},  # longer than any sentence: falls back
        {"ngram": "2,2"},
        {"ngram": "1,2", "ngram_weight": "1e-3,0"},
        {"gumbel_temperature": 1e-3},
        {"label_smoothing": 0.999, "ce_factor": 1.0},
        {"candidate_after_eos": True, "train_decoding": "sample"},
        {"candidate_avoid_eos": True, "train_decoding": "sample"},
    ],
)
def test_unusual_values_work(build, options):
    made = build(**options)
    loss, _, _ = made.criterion(made.model, made.sample(SENTENCES))
    loss.backward()
    assert loss.isfinite() and all(p.grad.isfinite().all() for p in made.model.parameters())


@pytest.mark.parametrize(
    "flags, last",
    [
        (["--ngram", "2,x"], "ValueError: --ngram must be whole numbers separated by commas"),
        (["--gumbel-temperature", "0"], "ValueError: --gumbel-temperature: temperature must"),
        (["--ngram-factor", "-1"], "ValueError: --ngram-factor must be a finite number"),
        (["--train-decoding", "beam"], "--train-decoding: invalid choice: 'beam' (choose from"),
        (["--adaptive-softmax-cutoff", "4,8"], "ValueError: --criterion eisl needs logits over"),
    ],
)
def test_fairseq_train_stops_before_training(toy, tmp_path, flags, last):
    """The last line of its output says why."""
    code, output = train(
        *(toy.bin, tmp_path / "save", "--task", "noisy_translation", "--criterion", "eisl"),
        *(["--max-update", "1", *flags]),
    )
    assert code != 0
    assert last in output.strip().splitlines()[-1]
    assert "num_updates" not in output and "| loss " not in output
    assert not list(tmp_path.glob("save/checkpoint*"))


# -- models --------------------------------------------------------------------------------


@pytest.mark.parametrize("decoding", ["greedy", "teacher-forcing"])
def test_adaptive_softmax_is_refused(toy, build, decoding):
    """Even where the decoder is as wide as the dictionary is long, so that no shape betrays it."""
    width = str(len(build().task.target_dictionary))
    made = setup(
        *(toy.bin, "--adaptive-softmax-cutoff", "4,8"),
        *("--encoder-embed-dim", width, "--decoder-embed-dim", width),
        train_decoding=decoding,
    )
    with pytest.raises(ValueError, match="--adaptive-softmax-cutoff"):
        made.criterion(made.model, made.sample(SENTENCES))


LANGUAGE_MODEL = ["--task", "language_modeling", "--decoder-layers", "1", "--decoder-embed-dim"]


def language_model(toy, tmp_path, **options):
    from shutil import copy

    copy(toy.bin / "dict.de.txt", tmp_path / "dict.txt")
    made = setup(
        *(tmp_path, *LANGUAGE_MODEL, "16", "--decoder-attention-heads", "2"),
        arch="transformer_lm",
        **options,
    )
    tokens = made.task.target_dictionary.encode_line("w1 w2 w3").long().unsqueeze(0)
    net_input = {"src_tokens": tokens.roll(1, 1), "src_lengths": torch.tensor([4])}
    sample = {"id": torch.tensor([0]), "net_input": net_input, "target": tokens, "ntokens": 4}
    return made, {**sample, "nsentences": 1}


def test_a_language_model_has_no_candidates(toy, tmp_path):
    made, sample = language_model(toy, tmp_path)
    with pytest.raises(ValueError, match="encoder-decoder models; TransformerLanguageModel"):
        made.criterion(made.model, sample)


def test_a_language_model_trains_with_teacher_forcing(toy, tmp_path):
    made, sample = language_model(toy, tmp_path, train_decoding="teacher-forcing")
    for training in (True, False):
        made.criterion.train(training)
        assert made.criterion(made.model, sample)[0].isfinite()


@pytest.mark.parametrize("arch", ["fconv_iwslt_de_en", "lightconv"])
def test_other_encoder_decoders_train(toy, arch):
    sizes = {
        "fconv_iwslt_de_en": [
            *("--encoder-embed-dim", "16", "--encoder-layers", "[(16, 3)]"),
            *("--decoder-embed-dim", "16", "--decoder-layers", "[(16, 3)]"),
            *("--decoder-out-embed-dim", "16"),
        ],
        "lightconv": [
            *("--encoder-embed-dim", "16", "--encoder-conv-dim", "16", "--encoder-layers", "1"),
            *("--decoder-embed-dim", "16", "--decoder-conv-dim", "16", "--decoder-layers", "1"),
            *("--encoder-attention-heads", "2", "--decoder-attention-heads", "2"),
            *("--encoder-kernel-size-list", "[3]", "--decoder-kernel-size-list", "[3]"),
        ],
    }
    made = setup(toy.bin, *sizes[arch], arch=arch, ce_factor=1.0)
    loss, _, _ = made.criterion(made.model, made.sample(SENTENCES))
    loss.backward()
    assert loss.isfinite()
    assert all(p.grad.isfinite().all() for p in made.model.parameters() if p.grad is not None)
    assert made.model.encoder.embed_tokens.weight.grad.abs().sum() > 0
