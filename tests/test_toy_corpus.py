"""The toy corpus: deterministic, parallel, disjoint splits, and really reordered."""

import hashlib
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
SPLITS = {"train": 300, "valid": 20, "test": 40}


def write(folder, *flags):
    command = [sys.executable, str(ROOT / "data/toy_corpus.py"), "--out", str(folder), *flags]
    return subprocess.run(command, capture_output=True, text=True)


def sizes():
    return [part for name, size in SPLITS.items() for part in (f"--{name}", str(size))]


def test_same_seed_same_files(tmp_path):
    assert write(tmp_path, *sizes(), "--seed", "1").returncode == 0
    digest = hashlib.sha256()
    for path in sorted(tmp_path.iterdir()):
        digest.update(path.name.encode() + path.read_bytes())
    # Changes when the grammar does, or when Python's random numbers do: then say so in the README.
    assert digest.hexdigest()[:16] == "0607d7820d43cd28"


def test_a_place_that_cannot_be_written_to_is_one_line(tmp_path):
    (tmp_path / "file").write_text("x")
    (tmp_path / "out/valid.de").mkdir(parents=True)
    for place in ("file", "file/x", "out"):
        done = write(tmp_path / place, *sizes())
        assert done.returncode == 2 and f"--out {tmp_path / place}: " in done.stderr
        assert "Traceback" not in done.stderr
    assert sorted(path.name for path in (tmp_path / "out").iterdir()) == [
        *("train.de", "train.en", "valid.de")
    ]


def test_splits_are_parallel_distinct_and_disjoint(tmp_path):
    write(tmp_path, *sizes(), "--seed", "2")
    seen = set()
    for name, size in SPLITS.items():
        german = (tmp_path / f"{name}.de").read_text(encoding="utf-8").splitlines()
        english = (tmp_path / f"{name}.en").read_text(encoding="utf-8").splitlines()
        assert len(german) == len(english) == size
        assert not seen & set(german) and len(set(german)) == size
        seen |= set(german)


def test_word_order_differs(tmp_path):
    """A fronted German time adverbial stands at the end of the English sentence."""
    write(tmp_path, *sizes())
    german = (tmp_path / "train.de").read_text(encoding="utf-8").splitlines()
    english = (tmp_path / "train.en").read_text(encoding="utf-8").splitlines()
    fronted = [en for de, en in zip(german, english) if de.startswith("gestern hat ")]
    assert fronted and all(en.endswith(" yesterday .") for en in fronted)


def test_a_wrong_size_is_refused(tmp_path):
    done = write(tmp_path, "--valid", "0")
    assert done.returncode == 2 and "--valid" in done.stderr and "not 0" in done.stderr
