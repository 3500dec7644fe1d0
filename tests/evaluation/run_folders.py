"""Run folders for the tests of the report."""

import json

from fairseq_eisl.common.rows import append_row

from .logs import generation_log, row, simple_validation

REFERENCE = ["a man rides a bike .", "two dogs run in a <field> .", "a girl in a red hat ."]
CE = ["a a man rides bike .", "two dogs dogs run . .", ""]
EISL = ["a man rides a bike .", "two dogs run in a field", "a girl in a hat ."]
REPORT = {
    "title": "Toy & run",
    "settings": {"noise": "repeat:0.5", "lr": 0.0005, "stages": ["ce", "eisl"]},
    "commands": [["train", 'fairseq-train data --arch "a<b" \\\n  --seed 1']],
    "source": "src.txt",
    "reference": "text/ref.txt",
    "systems": {"CE": "ce.out", "EISL": "eisl.out"},
    "curves": {"CE": "ce.log"},
}


def run_folder(folder, rows=None, report=None, **changes):
    """A folder with all that a run may have; ``changes`` of its report.json."""
    (folder / "text").mkdir(parents=True)
    files = {
        "text/ref.txt": "\n".join(REFERENCE) + "\n",
        "src.txt": "quelle 0\nquelle 1\nquelle 2\n",
        "ce.out": generation_log(CE),
        "eisl.out": generation_log(EISL),
        "short.out": generation_log(CE[:2]),
        "pieces.out": generation_log(["a@@ b", "c", "d"]),
        "short.txt": "one\n",
        "ce.log": simple_validation(100, 5.0) + "\n" + simple_validation(200, 7.0) + "\n",
        "report.json": json.dumps({**REPORT, **changes}) if report is None else report,
    }
    for name, text in files.items():
        (folder / name).write_text(text, encoding="utf-8")
    for each in [row("CE"), row("EISL")] if rows is None else rows:
        append_row(str(folder / "rows.csv"), each)
    return str(folder)
