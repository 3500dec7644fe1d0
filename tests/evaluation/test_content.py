import html.parser
import re
import sys
from pathlib import Path

import pytest

from fairseq_eisl.evaluation.readers.run_folder import read_run
from fairseq_eisl.evaluation.report.content import report

from .logs import row
from .run_folders import run_folder

PAPER = [{"setting": "WMT <14>", "system": "CE", "bleu": "17.9", "source": "Table 2"}]
VOID = {"meta", "br", "path", "use", "rect"}


class Reader(html.parser.HTMLParser):
    """Checks that tags close in order; keeps the text."""

    def __init__(self):
        super().__init__()
        self.open, self.text, self.ids = [], "", []

    def handle_starttag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.ids += [value for name, value in attributes if name == "id"]

    def handle_endtag(self, tag):
        if tag not in VOID:
            assert self.open.pop() == tag

    def handle_data(self, data):
        if not {"style", "svg"} & set(self.open):
            self.text += data


def read(page):
    reader = Reader()
    reader.feed(page)
    reader.close()
    assert reader.open == []
    assert len(reader.ids) == len(set(reader.ids))
    return re.sub(r"\s+", " ", reader.text)


@pytest.fixture
def run(tmp_path):
    return read_run(run_folder(tmp_path / "run"))


def pictures(page):
    return re.findall(r'<svg role="img" aria-label="([^"]*)"', page)


def test_a_page_of_one_run(run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    page = report([run], PAPER)
    text = read(page)
    assert page.startswith("<!DOCTYPE html>") and "<title>Toy &amp; run</title>" in page
    for part in (
        "EISL 32.1 BLEU against CE 8.5.",
        'fairseq-train data --arch "a<b" \\ --seed 1',
        "nrefs:1|case:mixed|eff:no|tok:none",
        "two dogs run in a <field> .",
        "3 of 3 sentences, drawn with seed 1",
        "the paper’s, not ours",
        "WMT <14>CE17.9Table 2",
    ):
        assert part.replace(" ", "") in text.replace(" ", "")
    assert pictures(page) == [
        "Scores of the systems",
        "Validation BLEU during training, each stage from the best of the one before",
    ]
    assert "<mark>dogs</mark>" in page


def test_tests_of_the_difference_are_shown(tmp_path):
    folder = Path(run_folder(tmp_path / "run"))
    head = "system,baseline,bleu,bleu_mean,bleu_margin,p_value,bleu_signature,iterations\n"
    lines = [
        "CE,CE,8.50,8.60,0.50,,bs:1000|seed:1,0",
        "EISL,CE,32.10,32.00,1.00,0.0010,bs:1000|seed:1,0",
    ]
    (folder / "significance.csv").write_text(head + "\n".join(lines) + "\n")
    text = read(report([read_run(str(folder))])).replace(" ", "")
    assert "CE8.508.10to9.10baseline" in text and "EISL32.1031.00to33.00<=0.001(againstCE)" in text
    assert "bs:1000|seed:1" in text and "notintraining" in text
    (folder / "significance.csv").write_text("system,bleu\nCE,1\n")
    with pytest.raises(ValueError, match="significance.csv: "):
        read_run(str(folder))


def test_nothing_is_loaded_and_nothing_runs(run):
    page = report([run, run._replace(title="again")], PAPER)
    links = re.findall(r'(?:src|href|url\(|@import)\s*=?\s*["\'(]?([^"\')\s>]+)', page)
    assert all(link.startswith("#") for link in links), links
    assert "<script" not in page and "<link" not in page
    assert set(re.findall(r"https?://[^\"\s]+", page)) <= {
        "http://www.w3.org/2000/svg",  # names of languages, not addresses
        "http://www.w3.org/1999/xlink",
    }


def test_the_same_runs_give_the_same_page(run):
    assert report([run], PAPER) == report([run], PAPER)
    assert report([run], title="A <b>", count=1, seed=1) != report([run], count=1, seed=3)
    assert "<h1>A &lt;b&gt;</h1>" in report([run], title="A <b>")


def test_without_published_numbers_there_is_no_such_table(run):
    assert "not ours" not in report([run])


OTHER_WAYS = ({"length_candidates": "5"}, {"search": "repeats removed"})


def test_rows_of_several_noises_are_drawn_over_the_level(run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    rows = [row(s, n) for s in ("CE", "EISL") for n in ("none", "repeat:0.3", "repeat:0.5")]
    rows += [dict(r, **way) for r in rows[:1] for way in OTHER_WAYS]
    page = report([run._replace(rows=rows, curves={})])
    assert pictures(page) == ["Scores of the systems", "BLEU against the level of noise"]


def test_rows_over_iterations_are_drawn_as_lines(run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    rows = [row(s, iterations=i) for s in ("CE", "EISL") for i in ("0", "4")]
    rows += [dict(r, **way) for r in rows[:2] for way in OTHER_WAYS]
    page = report([run._replace(rows=rows, curves={})])
    assert pictures(page) == ["Scores against refinement iterations"]


def test_a_curve_may_go_on_from_the_last_validation(run, tmp_path):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    logs = {"CE": "ce.log", "EISL": "ce.log"}
    one, other = (
        read_run(run_folder(tmp_path / start, curves=logs, curve_start=start))
        for start in ("best", "last")
    )
    assert "each stage from the last of the one before" in pictures(report([other]))[-1]
    assert pictures(report([one]))[-1] != pictures(report([other]))[-1]


def test_several_runs(run):
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    other = run._replace(title="Other", rows=[row("CE", "repeat:0.1"), row("EISL", "repeat:0.1")])
    page = report([run, other])
    assert "<h1>Results of 2 runs</h1>" in page
    assert '<a href="#run-2">Other</a>: EISL 32.1 BLEU' in page and '<h2 id="run-2">' in page
    assert pictures(page).count("BLEU against the level of noise") == 1
    read(page)


def test_runs_that_hide_each_other_are_not_drawn_together(run):
    rows = [row("CE", "repeat:0.5"), row("CE", "repeat:0.1")]
    text = read(report([run, run._replace(title="Other", rows=rows)]))
    assert "two runs have rows of system CE, noise repeat:0.5, seed 1: Toy & run and Other" in text


def test_rows_that_do_not_fit_together_are_told_not_drawn(run):
    rows = [row("CE"), row("EISL", test_set="another")]
    text = read(report([run._replace(rows=rows, curves={})]))
    assert "No picture “Scores of the systems”: rows of several test_set are not compared" in text


def test_the_command_of_the_rows_stands_in(run):
    rows = [
        row("CE", command="scripts/x.sh --seed 1"),
        row("EISL", command="scripts/x.sh --seed 1"),
    ]
    page = report([run._replace(rows=rows, commands=[])])
    assert page.count("<code>scripts/x.sh --seed 1</code>") == 1


def test_without_matplotlib_there_is_a_page_without_pictures(run, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    page = report([run])
    assert pictures(page) == [] and "pip install matplotlib" in read(page)


def test_wrong_inputs(run):
    with pytest.raises(ValueError, match="no runs"):
        report([])
    with pytest.raises(ValueError, match="bleu is 'high', no number"):
        report([run._replace(rows=[row(bleu="high")])])


def test_a_papers_numbers_stand_in_the_picture_of_all_runs(run):
    """Faintly, and named as the paper's, beside being in the table."""
    pytest.importorskip("matplotlib", reason="pictures need matplotlib")
    runs = [
        run._replace(rows=[row(s, noise) for s in ("CE", "EISL")], curves={}, title=noise)
        for noise in ("repeat:0.3", "repeat:0.5")
    ]
    paper = [{**PAPER[0], "setting": "BART-base", "noise": "repeat:0.4"}]
    page = report(runs, paper)
    assert "BLEU against the level of noise" in pictures(page)
    assert "CE, paper" in page and "BART-base" in read(page)
    assert "CE, paper" not in report(runs, PAPER)
