"""What a reader of the page meets first, and what any screen or printer shows of it."""

import re
import sys

import pytest

from fairseq_eisl.common.rows import append_row
from fairseq_eisl.evaluation.cli.main import main
from fairseq_eisl.evaluation.readers.run_folder import read_run
from fairseq_eisl.evaluation.report import parts as report_parts
from fairseq_eisl.evaluation.report.content import report
from fairseq_eisl.evaluation.report.page import page

from .logs import generation_log, row
from .run_folders import run_folder
from .test_content import read
from .test_intervals import sampled


@pytest.fixture(autouse=True)
def no_pictures(monkeypatch):
    """They are tested elsewhere, and take their time."""
    monkeypatch.setitem(sys.modules, "matplotlib", None)


@pytest.fixture
def folder(tmp_path):
    path = run_folder(tmp_path / "run")
    for system in ("CE", "EISL"):
        append_row(f"{path}/significance.csv", sampled(system))
    return path


def cell(tmp_path, noise, seed, **about):
    """A run of a sweep, with tests."""
    path = tmp_path / f"noise={noise},seed={seed}"
    rows = [row(s, noise, seed, bleu=f"{b + int(seed)}") for s, b in (("CE", 8), ("EISL", 32))]
    run_folder(path, rows, systems={}, curves={}, **about)
    for each in rows:
        test = sampled(each["system"], bleu=each["bleu"], noise=noise, seed=seed)
        append_row(f"{path}/significance.csv", {**test, "bleu_mean": each["bleu"]})
    return read_run(str(path))


def test_results_come_first_and_the_rest_is_folded_away(folder):
    text = report([read_run(folder)])
    order = [
        "EISL 32.1 BLEU against CE 8.5.",
        "95 % interval: CE 7.6 to 9.6, EISL 31.2 to 33.2. EISL against CE p &lt;= 0.001",
        "Test set: Multi30k test 2018 de-en, 3 sentences",
        "<h3>Results</h3>",
        "<h3>Is it chance?</h3>",
        "<h3>Examples</h3>",
        "<summary>Settings</summary>",
        "<summary>Commands</summary>",
    ]
    places = [text.index(part) for part in order]
    assert places == sorted(places)
    before = text[: text.index("<h3>Results</h3>")]
    assert "fairseq-train" not in before and "lr" not in before[before.index("<h1>") :]
    assert set(re.findall(r"<details[^>]*>", text)) == {"<details>"}  # none is open
    assert "&lt;= 0.001 (against CE)" in text and "0.0010" not in text


def test_a_sweep_has_contents_and_a_summary(tmp_path):
    """Also without published numbers."""
    runs = [cell(tmp_path, n, s) for n in ("repeat:0.3", "repeat:0.5") for s in "12"]
    text = report(runs, title="A sweep")
    contents = text[text.index('<nav class="contents">') : text.index("</nav>")]
    links = re.findall(r'href="#([^"]+)"', contents)
    assert links == ["summary", "all-runs", "run-1", "run-2", "run-3", "run-4"]
    assert all(f'id="{name}"' in text for name in links)
    assert text.index("EISL 33.5 BLEU against CE 9.5 (mean of 2 seeds)") < text.index("<nav")
    lines = read(text).replace(" ", "")
    assert "repeat:0.3" in lines and "33.00" in lines and "33.00to35.00<=0.001" in lines
    assert "Meansovertheseeds:" in lines and "33.5033.00to34.00" in lines
    # Runs of the same title are told apart by their folders.
    assert "Toy &amp; run (noise=repeat:0.3,seed=2)" in contents


def test_runs_of_one_setting_are_not_averaged(tmp_path):
    """They differ in something that the rows do not say; a mean would drop one."""
    runs = [cell(tmp_path / str(i), "repeat:0.5", s) for i in range(2) for s in "12"]
    text = read(report(runs))
    assert "Means over the seeds" not in text and "Not told in one sentence" in text


def test_examples_say_why_they_are_there(tmp_path):
    sentences = [f"sentence number {i} of many ." for i in range(9)]
    run = read_run(run_folder(tmp_path / "run"))._replace(
        source=sentences,
        reference=sentences,
        systems={
            "CE": [*sentences[:7], "x", "x x"],
            "EISL": [*sentences[:6], "unlike", sentences[7], "x x x"],
        },
    )
    text = report([run], count=6)
    kinds = dict(re.findall(r"<h4>(Most changed|Worst|Random): [^<]*</h4>\s*<h4>(.*?)</h4>", text))
    assert kinds["Most changed"] in ("sentence 6", "sentence 7")
    assert kinds["Worst"] == "sentence 8" and "Random" in kinds
    numbers = re.findall(r"<h4>sentence (\d)</h4>", text)
    assert len(numbers) == len(set(numbers)) == 6
    one = report([run._replace(systems={"CE": run.systems["CE"]})], count=2)
    assert "Most changed" not in one and "Worst: lowest chrF of CE" in one


def test_a_collapsed_output_does_not_fill_a_screen():
    line = "the " * 200
    for text in (line, "a b c " * 70, "x" * 5000, " ".join(map(str, range(500))), "a " + line):
        html = report_parts.examples([text], [text], {"CE": [text], "EISL": [""]}, [0])
        seen = re.sub(r"<details>.*?</details>", "", html, flags=re.DOTALL)
        assert len(re.sub(r"<[^>]*>", "", seen)) < 2500
    html = report_parts.examples([], ["the man"], {"CE": [line]}, [0])
    assert "the <mark>the</mark> " in html and "(198 times more)" in html


def test_the_page_is_dark_where_the_reader_wants_it():
    text = page("x", "")
    dark = text[text.index("prefers-color-scheme: dark") :].split("\n}\n")[0]
    light = text[text.index(":root") :].split("}")[0]
    names = set(re.findall(r"(--[\w-]+):", light))
    assert names == set(re.findall(r"(--[\w-]+):", dark)) and len(names) > 10
    used = set(re.findall(r"var\((--[\w-]+)\)", text))
    assert used <= names
    rest = text[text.index("* { box-sizing") : text.index("</style>")]
    assert not re.search(r"#[0-9a-f]{3,6}\b", rest)  # no colour but those two sets'


def test_pictures_take_the_colours_of_the_page():
    svg = (
        '<svg><g id="patch_1">\n<path d="M 0 0 z" style="fill: #ffffff"/>\n</g><path '
        'style="fill: #0072b2; stroke: #000000"/><path style="fill: #ffffff; opacity: 1"/></svg>'
    )
    drawn = report_parts.inline_svg(svg, "x", "p1-")
    assert "patch_1" not in drawn  # a white ground would be a white box on a dark page
    assert "stroke: var(--ink)" in drawn and "fill: var(--paper); opacity" in drawn
    assert "fill: var(--blue)" in drawn


def test_wide_parts_scroll_with_a_cue_and_are_whole_on_paper():
    text = page("x", "")
    assert re.search(r"\.wide \{[^}]*overflow-x: auto[^}]*local[^}]*scroll", text)
    paper = text[text.index("@media print") :]
    assert ".wide { overflow: visible" in paper and "details::details-content" in paper
    assert "white-space: pre-wrap" in text  # commands never scroll


def test_without_matplotlib_one_line_says_so(folder, tmp_path, capsys):
    out = tmp_path / "x.html"
    assert main(["report", "--run", folder, folder, "--out", str(out)]) == 0
    err = capsys.readouterr().err
    assert err.count("\n") == 1 and "the page has no pictures: pictures need matplotlib" in err
    assert out.read_text().count("pictures need matplotlib") == 1
    for command in (
        "plot --rows none.csv",
        "iterations --rows none.csv",
        "curve --log a=none.log",
    ):
        with pytest.raises(SystemExit):  # before a file is read
            main([*command.split(), "--out", str(tmp_path / "x.png")])
        assert "pictures need matplotlib" in capsys.readouterr().err


def test_names_from_outside_stay_text(tmp_path):
    names = ("<b>", '$x$ & "q"', "שלום", "\u202eabc", "a" * 400, "_x")
    rows = [row(name, bleu=f"{20 + i}") for i, name in enumerate(names)]
    path = run_folder(tmp_path / "run", rows, title="<i>$t$</i>", systems={"<b>": "<log>"})
    (tmp_path / "run" / "<log>").write_text(generation_log(["<u>", "b", "c"]))
    text = report([read_run(path), read_run(path)._replace(title="<s>")])
    assert not re.search(r"<(b|i|u|s)>", text)
    assert "\u2068\u202eabc\u2069" in text and "a" * 61 not in text.split("<nav")[0]
    read(text)
