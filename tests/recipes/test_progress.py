"""What is shown of long work."""

import pytest

from fairseq_eisl.recipes import progress as room
from fairseq_eisl.recipes.progress import Progress

LINE = b"x | INFO | train_inner | epoch 002:     50 / 100 loss=8.5, ups=10, num_updates=%d\n"


class Clock:
    """Time that passes when a test says so."""

    def __init__(self):
        self.now = 1000.0

    def __call__(self):
        return self.now

    def go(self, seconds: float):
        self.now += seconds


@pytest.fixture
def clock(monkeypatch):
    own = Clock()
    monkeypatch.setattr(room.time, "time", own)
    return own


def test_a_training_tells_where_it_is(clock):
    progress = Progress("ce", ["fairseq-train", "--max-update", "400", "--max-epoch", "3"])
    progress.read(LINE % 150)
    clock.go(10)
    progress.read(LINE % 200)
    text = progress.text()
    assert "epoch 2 of 3, update 200 of 350, loss 8.5, 10 updates a second" in text
    assert "about 30 s left" in text


def test_a_training_that_may_stop_before_tells_the_longest_time(clock):
    words = ["fairseq-train", "--max-update", "400", "--patience", "4"]
    progress = Progress("ce", words)
    progress.read(LINE % 150)
    clock.go(10)
    progress.read(LINE % 200)
    assert "at most 40 s left" in progress.text()


def test_the_time_left_falls_while_the_log_is_silent(clock):
    """Neither what came before the first line nor the silence behind the last counts as slow."""
    progress = Progress("eisl", ["fairseq-train", "--max-update", "400"])
    clock.go(60)  # the start
    progress.read(LINE % 50)
    clock.go(100)
    progress.read(LINE % 100)
    clock.go(90)
    assert "4 min 10 s so far, about 8 min 30 s left" in progress.text()  # 300 * 2 s - 90 s
    clock.go(1000)
    assert "about 0 s left" in progress.text()


def test_a_translation_counts_its_sentences(tmp_path, clock):
    path = tmp_path / "test.out"
    path.write_bytes(b"S-0\ta\nH-0\t1\tb\nH-1")
    progress = Progress("generate", ["fairseq-generate"], result=str(path))
    clock.go(10)
    progress.read(b"x | loaded 1,071 examples from: y\n")
    assert "sentence 1 of 1071, 10 s so far, about 2 h 58 min left" in progress.text()
    progress.close()
