"""A metric from outside: one registration, and it is in scores, tables and pages."""

import pytest

from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.metrics import Column, Metric, Signature, register, unregister

from .run_folders import run_folder

DUMMY = Metric(
    "dummy",
    (Column("dummy", "Dummy score"),),
    lambda job: {"dummy": f"{len(job.hypotheses)}.5", "dummy_signature": "dummy|v:1"},
    Signature("dummy_signature"),
)


@pytest.fixture(autouse=True)
def dummy():
    yield register(DUMMY)
    unregister("dummy")


def test_it_is_a_column_a_heading_and_a_signature(tmp_path, capsys):
    folder = run_folder(tmp_path / "run", rows=[])
    files = ["--log", f"{folder}/ce.out", "--reference", f"{folder}/text/ref.txt"]
    rows = f"{folder}/rows.csv"
    assert main(["score", *files, "--rows", rows, "--set", "system=CE"]) == 0
    assert "| Dummy score 3.5 (dummy|v:1) | 3 sentences" in capsys.readouterr().out
    assert main(["table", "--rows", rows]) == 0
    head, line = (text.split() for text in capsys.readouterr().out.splitlines())
    assert line[head.index("dummy")] == "3.5"
    assert main(["table", "--rows", rows, "--columns", "dummy_signature"]) == 0
    assert "dummy|v:1" in capsys.readouterr().out
    assert main(["report", "--run", folder, "--out", f"{folder}/page.html"]) == 0
    with open(f"{folder}/page.html", encoding="utf-8") as f:
        page = f.read()
    assert 'class="number">Dummy score</th>' in page and '<td class="number">3.5</td>' in page
    assert "<dt>Dummy score</dt><dd>dummy|v:1</dd>" in page


def test_what_another_metric_has_is_taken():
    with pytest.raises(ValueError, match="x: column dummy is that of metric dummy"):
        register(DUMMY._replace(name="x"))
    with pytest.raises(ValueError, match="x: a metric needs a column"):
        register(DUMMY._replace(name="x", columns=()))
