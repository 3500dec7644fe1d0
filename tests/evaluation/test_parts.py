import pytest

from fairseq_eisl.evaluation.report import parts

from .logs import row

EVIL = "<script>alert('x')</script> & \"y\""


@pytest.mark.parametrize(
    "piece",
    [
        lambda: parts.table([EVIL], [[EVIL]]),
        lambda: parts.results([row(EVIL, EVIL), row(EVIL, "b", bleu_signature=EVIL)]),
        lambda: parts.pairs([(EVIL, EVIL)]),
        lambda: parts.commands([(EVIL, EVIL)]),
        lambda: parts.picture("<svg/>", EVIL, 1),
        lambda: parts.examples([EVIL], [EVIL], {EVIL: [f"x x {EVIL}"]}, [0]),
        lambda: parts.examples([EVIL], [EVIL], {"CE": [""]}, [0]),
    ],
)
def test_every_text_is_escaped(piece):
    text = piece()
    assert "<script" not in text and "alert('x')" not in text and '"y"' not in text
    assert "&lt;script&gt;" in text and "&amp;" in text


def test_numbers_stand_to_the_right():
    text = parts.table(["system", "bleu"], [["CE", "8.50"], ["EISL", ""]])
    assert '<th>system</th><th class="number">bleu</th>' in text
    assert '<td>EISL</td><td class="number"></td>' in text


def test_what_all_rows_share_is_told_once_and_signatures_below():
    text = parts.results([row("CE"), row("EISL")])
    above, below = text.split('<div class="wide"')
    assert "noise: repeat:0.5; test set: Multi30k test 2018 de-en; seed: 1" in above
    assert "repeat:0.5" not in below and "<td>CE</td>" in below
    assert below.count("nrefs:1|case:mixed") == 1 and "row 1" not in below


def test_unlike_signatures_name_their_rows():
    rows = [row("CE"), row("EISL"), row("X", bleu_signature="nrefs:1|tok:13a")]
    text = parts.results(rows)
    assert "<dt>BLEU (row 1, 2)</dt>" in text and "<dt>BLEU (row 3)</dt>" in text


def test_scores_that_no_row_has_are_no_column():
    assert "chrF" not in parts.results([row()])
    text = parts.results([row(chrf="50.1", chrf_signature="c:x"), row("EISL")])
    assert "chrF</th>" in text and "<dd>c:x</dd>" in text


def test_repeated_and_missing_words_are_marked():
    text = parts.examples(["quelle"], ["a man ."], {"CE": ["a a ."], "EISL": ["a man ."]}, [0])
    assert "<dd>a <mark>a</mark> .<br>" in text
    assert "missing: <del>man</del>" in text and "missing: nothing" in text
    assert "<h4>sentence 0</h4>" in text and "<dt>source</dt><dd>quelle</dd>" in text
    assert "<dt>source</dt>" not in parts.examples([], ["a"], {}, [0])
    assert "(empty)" in parts.examples([], ["a"], {"CE": [""]}, [0])


def test_pictures_keep_their_names_apart():
    svg = (
        '<?xml version="1.0"?>\n<!DOCTYPE svg>\n<svg width="9">\n <metadata>\n  by whom\n'
        ' </metadata>\n<g id="a" clip-path="url(#b)"><use xlink:href="#c"/></g></svg>\n'
    )
    assert parts.inline_svg(svg, "Bars", "p2-") == (
        '<svg role="img" aria-label="Bars" width="9">\n'
        '<g id="p2-a" clip-path="url(#p2-b)"><use xlink:href="#p2-c"/></g></svg>'
    )
