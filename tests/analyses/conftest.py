"""A tiny model that is trained, and one that is not, to be analysed."""

from pathlib import Path
from typing import NamedTuple

import pytest

from fairseq_eisl.analyses.sentences import SentencePairs
from fairseq_eisl.analyses.trained import Trained
from tests import toy as toy_corpus


class Checkpoints(NamedTuple):
    early: Path
    late: Path
    data: Path


@pytest.fixture(scope="session")
def checkpoints(toy, tmp_path_factory) -> Checkpoints:
    """Of cross entropy on the toy corpus of copies."""
    folder = tmp_path_factory.mktemp("analysed")
    code, output = toy_corpus.train(
        toy.bin,
        folder,
        *("--task", "noisy_translation", "--criterion", "cross_entropy"),
        *("--max-tokens", "400", "--lr", "0.01", "--max-epoch", "40", "--save-interval", "20"),
        *("--disable-validation", "--no-last-checkpoints"),
    )
    assert code == 0, output
    return Checkpoints(folder / "checkpoint20.pt", folder / "checkpoint40.pt", toy.bin)


class Case(NamedTuple):
    trained: Trained
    pairs: SentencePairs
    setup: toy_corpus.Setup


@pytest.fixture(scope="session")
def case(toy) -> Case:
    """A model with large random weights, and 12 pairs of the validation set."""
    setup = toy_corpus.setup(str(toy.bin))
    setup.model.eval()
    setup.criterion.eval()
    trained = Trained("random", setup.task, setup.model, 0, setup.cfg)
    return Case(trained, SentencePairs(setup.task, "valid", most=12, batch=5), setup)
