"""Fixtures that several test files share."""

from pathlib import Path
from typing import NamedTuple

import pytest
import torch

from tests import toy as toy_corpus
from tests.fresh import Fresh

# One thread: forked children must not inherit a pool of threads, and results repeat exactly.
torch.set_num_threads(1)


class Toy(NamedTuple):
    """The toy corpus on disk."""

    raw: Path
    bin: Path


@pytest.fixture(scope="session")
def toy(tmp_path_factory) -> Toy:
    """The toy corpus, preprocessed once a session with a joined dictionary."""
    folder = tmp_path_factory.mktemp("toy")
    corpus = Toy(folder / "raw", folder / "bin")
    toy_corpus.write_corpus(corpus.raw)
    toy_corpus.preprocess(corpus.raw, corpus.bin, "--joined-dictionary")
    return corpus


@pytest.fixture(scope="session")
def fresh():
    """Runs code in processes that have imported neither fairseq nor this package."""
    server = Fresh()
    yield server
    server.close()
