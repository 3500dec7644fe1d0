"""NAT-CRF's sums over a sentence, under the half precision of ``--fp16`` and ``--amp``."""

import pytest
import torch
from fairseq.modules.dynamic_crf_layer import DynamicCRF

from fairseq_eisl import fairseq_fixes

WORDS, LENGTH = 50, 60


def layer_and_inputs(dtype):
    """Scores of a trained model's size, which are the same numbers in either precision."""
    torch.manual_seed(1)
    layer = DynamicCRF(WORDS, low_rank=4, beam_size=8).half()
    emissions = 4 * torch.randn(3, LENGTH, WORDS).half()
    targets = torch.randint(WORDS, (3, LENGTH))
    mask = torch.arange(LENGTH) < torch.tensor([[LENGTH], [40], [2]])
    return layer.to(dtype), emissions.to(dtype), targets, mask


def log_likelihood(forward, dtype):
    layer, emissions, targets, mask = layer_and_inputs(dtype)
    return forward(layer, emissions, targets, mask).double()


def decoded(decode, dtype):
    layer, emissions, _, mask = layer_and_inputs(dtype)
    return decode(layer, emissions, mask)


@pytest.fixture(autouse=True)
def mended():
    fairseq_fixes.apply()


def test_without_the_mend_half_precision_rounds_whole_sentences():
    """If this fails, ``mend_crf_precision`` is no longer needed with this fairseq."""
    stock = DynamicCRF.forward.__wrapped__
    error = log_likelihood(stock, torch.float16) - log_likelihood(stock, torch.float32)
    assert error.abs().max() > 0.1


def test_the_likelihood_in_half_precision_is_that_in_float32():
    half, full = (log_likelihood(DynamicCRF.forward, x) for x in (torch.float16, torch.float32))
    # What is left: products of half-precision transition vectors.
    torch.testing.assert_close(half, full, rtol=0, atol=0.05)


def test_its_gradient_is_that_in_float32():
    grads = []
    for dtype in (torch.float16, torch.float32):
        layer, emissions, targets, mask = layer_and_inputs(dtype)
        emissions.requires_grad_()
        layer(emissions, targets, mask).sum().backward()
        assert emissions.grad.dtype == dtype
        grads.append(emissions.grad.float())
    torch.testing.assert_close(*grads, rtol=0, atol=5e-3)


def test_decoding_in_half_precision_finds_the_words_of_float32():
    (half, words), (full, expected) = (
        decoded(DynamicCRF.forward_decoder, dtype) for dtype in (torch.float16, torch.float32)
    )
    assert words.equal(expected)
    assert half.dtype == torch.float16  # as the scores that it is written into
    mask = layer_and_inputs(torch.float32)[3]
    torch.testing.assert_close(half.float()[mask], full[mask], rtol=0, atol=0.05)


def test_float32_is_as_it_was():
    stock = log_likelihood(DynamicCRF.forward.__wrapped__, torch.float32)
    assert log_likelihood(DynamicCRF.forward, torch.float32).equal(stock)
    scores, words = decoded(DynamicCRF.forward_decoder.__wrapped__, torch.float32)
    mended = decoded(DynamicCRF.forward_decoder, torch.float32)
    assert mended[0].equal(scores) and mended[1].equal(words)
