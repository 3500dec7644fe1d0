"""The arguments of the trainers: what is refused, and that they are saved and read again."""

import json

import pytest
import torch

from tests.integrations.conftest import needs_hugging_face

pytestmark = needs_hugging_face

WRONG = [
    ({"ngram": []}, ["ngram must be", "one or more"]),
    ({"ngram": [1, 2], "ngram_weight": [1.0]}, ["ngram_weight", "2 ngrams"]),
    ({"position_selection": "best"}, ["position_selection='best' is unknown", "gumbel, softmax"]),
    ({"gumbel_temperature": 0.0}, ["gumbel_temperature", "above 0", "0.0"]),
    ({"log_prob_floor": 1.0}, ["log_prob_floor", "below 0", "1.0"]),
    ({"ngram_factor": -1.0}, ["ngram_factor", "0 or above", "-1.0"]),
    ({"ngram_factor": 0.0}, ["ngram_factor", "ce_factor", "both 0"]),
    ({"train_decoding": "beam"}, ["train_decoding='beam'", "greedy, sample, teacher-forcing"]),
    (
        {"candidate_after_eos": True, "candidate_avoid_eos": True},
        ["candidate_after_eos and candidate_avoid_eos", "leave one away"],
    ),
    (
        {"candidate_avoid_eos": True, "train_decoding": "teacher-forcing"},
        ["candidate_avoid_eos is of a candidate that is decoded", "'teacher-forcing'"],
    ),
    ({"decoding_interval": 0}, ["decoding_interval", "1 or more", "0"]),
    ({"label_smoothing_factor": 0.1}, ["label_smoothing_factor=0.1", "ce_factor=0"]),
]


@pytest.mark.parametrize("changes, words", WRONG, ids=[str(wrong[0]) for wrong in WRONG])
def test_wrong_arguments_are_one_line(training_arguments, changes, words):
    from fairseq_eisl.integrations.huggingface import EISLConfig

    with pytest.raises(ValueError) as error:
        training_arguments(EISLConfig, **changes)
    text = str(error.value)
    assert "\n" not in text and not [word for word in words if word not in text], text


def test_arguments_are_saved_and_read_again(training_arguments, tmp_path):
    from transformers import HfArgumentParser

    from fairseq_eisl.integrations.huggingface import EISLConfig

    args = training_arguments(EISLConfig, ngram=[1, 2], ngram_weight=[0.8, 0.2])
    torch.save(args, tmp_path / "args.bin")
    assert torch.load(tmp_path / "args.bin", weights_only=False).ngram == [1, 2]
    assert json.loads(args.to_json_string())["ngram_weight"] == [0.8, 0.2]
    words = ["--output_dir", str(tmp_path), "--ngram", "1", "2", "--train_decoding", "sample"]
    (parsed,) = HfArgumentParser(EISLConfig).parse_args_into_dataclasses([*words, "--use_cpu"])
    assert (parsed.ngram, parsed.train_decoding) == ([1, 2], "sample")
