"""What is shown of long work."""

from fairseq_eisl.recipes.progress import Progress

LINE = b"x | INFO | train_inner | epoch 002:     50 / 100 loss=8.5, ups=10, num_updates=%d\n"


def test_a_training_tells_where_it_is():
    progress = Progress("ce", ["fairseq-train", "--max-update", "400", "--max-epoch", "3"])
    progress.read(LINE % 150)
    progress.started -= 10
    progress.read(LINE % 200)
    text = progress.text()
    assert "epoch 2 of 3, update 200 of 350, loss 8.5, 10 updates a second" in text
    assert "about 30 s left" in text


def test_a_training_that_may_stop_before_tells_the_longest_time():
    words = ["fairseq-train", "--max-update", "400", "--patience", "4"]
    progress = Progress("ce", words)
    progress.read(LINE % 150)
    progress.started -= 10
    progress.read(LINE % 200)
    assert "at most 40 s left" in progress.text()


def test_a_translation_counts_its_sentences(tmp_path):
    path = tmp_path / "test.out"
    path.write_bytes(b"S-0\ta\nH-0\t1\tb\nH-1")
    progress = Progress("generate", ["fairseq-generate"], result=str(path))
    progress.started -= 10
    progress.read(b"x | loaded 1,071 examples from: y\n")
    assert "sentence 1 of 1071, 10 s so far, about " in progress.text()
    progress.close()
