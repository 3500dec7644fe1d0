"""What the tests of non-autoregressive decoding share: random models of 16 positions."""

import pytest
import torch

from fairseq_eisl.decoding.fairseq.refinement import RefinementGenerator
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
    found = kind(made.task.target_dictionary, **options).generate(
        models, sample_of(made, sentences)
    )
    return [hypotheses[0] for hypotheses in found]


def assert_equal(found, expected):
    assert found["tokens"].tolist() == expected["tokens"].tolist()
    # Relative as well: those of the CRF are no probabilities, and reach hundreds.
    assert float(found["score"]) == pytest.approx(float(expected["score"]), rel=1e-5, abs=1e-5)
    scores = found["positional_scores"], expected["positional_scores"]
    torch.testing.assert_close(*scores, rtol=1e-5, atol=1e-5)
    assert found["steps"] == expected["steps"]


def assert_blank(rows, lengths):
    """Rows of ``lengths`` that say nothing else, and no column of padding only."""
    expected = [[BOS] + [UNK] * (n - 2) + [EOS] + [PAD] * (max(lengths) - n) for n in lengths]
    assert rows.tolist() == expected


def predict(made, monkeypatch, scores):
    """Let the length head say (256,) log-probabilities, whatever it reads."""

    def forward_length(normalize, encoder_out):
        return scores.log_softmax(0).expand(encoder_out["encoder_out"][0].size(1), -1)

    monkeypatch.setattr(made.model.decoder, "forward_length", forward_length)
