import os

import pytest

from fairseq_eisl.evaluation.readers.run_folder import read_run

from .logs import row
from .run_folders import CE, EISL, REFERENCE, run_folder


def test_everything_of_a_run(tmp_path):
    run = read_run(run_folder(tmp_path / "run"))
    assert run.title == "Toy & run" and [r["system"] for r in run.rows] == ["CE", "EISL"]
    assert run.settings == {"noise": "repeat:0.5", "lr": "0.0005", "stages": '["ce", "eisl"]'}
    assert run.commands == [("train", 'fairseq-train data --arch "a<b" \\\n  --seed 1')]
    assert run.reference == REFERENCE and run.source[0] == "quelle 0"
    assert run.systems == {"CE": CE, "EISL": EISL}
    assert run.curves["CE"].scores == [5.0, 7.0]


def test_rows_alone_do(tmp_path):
    folder = run_folder(tmp_path / "my run")
    os.unlink(f"{folder}/report.json")
    run = read_run(folder + "/")
    assert run.title == "my run" and len(run.rows) == 2
    assert not any([run.settings, run.commands, run.source, run.systems, run.curves])
    (tmp_path / "my run" / "report.json").write_text("{}")
    assert read_run(folder) == run


def test_paths_may_be_absolute(tmp_path):
    other = tmp_path / "elsewhere.txt"
    other.write_text("\n".join(REFERENCE) + "\n")
    assert read_run(run_folder(tmp_path / "run", reference=str(other))).reference == REFERENCE


@pytest.mark.parametrize(
    "changes, message",
    [
        ({"report": "{"}, "report.json: no JSON"),
        ({"report": "[]"}, "report.json: an object with title, settings"),
        ({"titel": "x"}, "no key titel; there is title, settings, commands"),
        ({"title": 3}, "title must be a text, not 3"),
        ({"settings": []}, r"settings must be an object of names and values, not \[\]"),
        ({"commands": ["train"]}, r"commands must be a list of \[stage, shell command\]"),
        ({"commands": [["train", 1]]}, "commands must be"),
        ({"systems": {"CE": 1}}, "systems must be an object of names and files"),
        ({"curve_start": "first"}, 'curve_start must be one of best, last, not "first"'),
        ({"curves": "ce.log"}, 'curves must be an object of names and files, not "ce.log"'),
        ({"reference": ""}, "systems need a reference"),
        ({"source": "short.txt"}, "ref.txt: 3 lines for the 1 of .*short.txt"),
        ({"systems": {"CE": "short.out"}}, "short.out: 2 hypotheses for the 3 lines of .*ref.txt"),
        ({"systems": {"CE": "pieces.out"}}, "pieces.out: .*--remove-bpe subword_nmt"),
        ({"systems": {"CE": "src.txt"}}, "src.txt: no H-<id> or D-<id> lines"),
        ({"curves": {"CE": "src.txt"}}, "src.txt: no validation of 'valid'"),
        ({"rows": [{"system": "CE"}]}, "rows.csv: no column bleu, bleu_signature; there is"),
    ],
)
def test_wrong_folders(tmp_path, changes, message):
    with pytest.raises(ValueError, match=message):
        read_run(run_folder(tmp_path / "run", **changes))


def test_missing_files_are_named(tmp_path):
    with pytest.raises(FileNotFoundError, match="rows.csv"):
        read_run(str(tmp_path))
    with pytest.raises(FileNotFoundError, match="none.out"):
        read_run(run_folder(tmp_path / "run", systems={"CE": "none.out"}))
    (tmp_path / "run" / "rows.csv").write_text(",".join(row()) + "\n")
    with pytest.raises(ValueError, match="there is a header but no row"):
        read_run(str(tmp_path / "run"))
