"""Random non-autoregressive models to decode with."""

import functools

import pytest
import torch
from fairseq.models import ARCH_MODEL_REGISTRY

from tests import toy as toy_corpus
from tests.decoding.refinement.models import LEV, LIMITS, PREDICTS_LENGTH
from tests.toy import NAT_ARCHS


@pytest.fixture(scope="module")
def build(toy):
    """A random model of 16 positions, in ``tests.toy.Setup``.

    ``tame``: it predicts lengths below 14 and inserts 0 to 3 words, which random
    models seldom do.
    """

    @functools.lru_cache(maxsize=None)
    def make(arch, *flags, tame=True, seed=6):
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


@pytest.fixture
def first_inputs(monkeypatch):
    """What models are given to decode in the first pass."""
    seen = []
    for arch in PREDICTS_LENGTH:
        model = ARCH_MODEL_REGISTRY[arch]
        if "forward_decoder" in vars(model):
            stock = model.forward_decoder

            def watched(self, out, *args, stock=stock, **options):
                if out.step == 0:
                    seen.append(out.output_tokens.clone())
                return stock(self, out, *args, **options)

            monkeypatch.setattr(model, "forward_decoder", watched)
    return seen
