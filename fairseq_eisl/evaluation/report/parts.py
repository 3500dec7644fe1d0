"""Pieces of the report page, as HTML."""

import html
import re
from typing import List, Mapping, NamedTuple, Optional, Sequence, Tuple

from ...common.rows import WAYS, Row
from ...common.run_files import TRIAL_COLUMNS
from ..intervals import ends, p_text
from ..metrics.registry import heading, shown_columns, signature_heading
from ..row_checks import number
from ..word_diff import condensed, missing_words
from .rendering import as_html, part

_ABOUT = ("noise", "test_set", "seed", *WAYS)
_SIGNATURE = "_signature"


_MOST_WORDS = 100  # of a text, before the rest is folded away
_LONGEST_WORD = 80  # characters


def table(head: Sequence[str], body: Sequence[Sequence[str]], css: str = "") -> str:
    """A table that scrolls within itself where the page is narrow; numbers to the right."""
    right = [all(_is_number(line[i]) for line in body) for i in range(len(head))]
    return part("table", head, body, right, css)


def _is_number(text: str) -> bool:
    return bool(re.fullmatch(r"-?\d+(\.\d+)?|nan|", text))


def results(rows: Sequence[Row]) -> str:
    """The scores, and under them what they were computed with."""
    every = ["system", *_ABOUT, *shown_columns(lambda column: column.in_report)]
    shown = [name for name in every if any(row.get(name) for row in rows)]
    reference = shown_columns(lambda column: column.of_reference)  # and the sentences
    shared = [name for name in shown if name in (*_ABOUT, *reference) and _same(rows, name)]
    shown = [name for name in shown if name not in shared]
    told = "; ".join(f"{heading(name)}: {rows[0][name]}" for name in shared)
    body = [[row.get(name, "") for name in shown] for row in rows]
    scores = table([heading(name) for name in shown], body, "results")
    return part("results", told, scores, _signatures(rows))


def trials(rows: Sequence[Row]) -> str:
    """Settings that were tried, and which was chosen."""
    head = [name.replace("_", " ") for name in TRIAL_COLUMNS]
    return table(head, [[row[name] for name in TRIAL_COLUMNS] for row in rows])


def significance(rows: Sequence[Row]) -> str:
    """What a paired bootstrap says of each system's BLEU, and how it was drawn.

    Raises:
        ValueError: a mean or margin that is no number.
    """
    told = [name for name in ("noise", *WAYS) if not _same(rows, name)]
    body = []
    for row in rows:
        mean, margin = number(row, "bleu_mean"), number(row, "bleu_margin")
        test = "baseline"
        if row["p_value"]:
            p = p_text(row["p_value"], row["bleu_signature"])
            test = f"{p[2:] if p.startswith('= ') else p} (against {row['baseline']})"
        interval = "{:.2f} to {:.2f}".format(*ends(mean, margin))
        body.append([row["system"], *(row.get(n, "") for n in told), row["bleu"], interval, test])
    head = ["system", *map(heading, told), "BLEU", "95 % interval", "p"]
    drawn = ", ".join(dict.fromkeys(row["bleu_signature"] for row in rows))
    return part("significance", table(head, body), drawn)


def _same(rows: Sequence[Row], name: str) -> bool:
    return len({row.get(name, "") for row in rows}) == 1


def _signatures(rows: Sequence[Row]) -> List[Tuple[str, str]]:
    names = dict.fromkeys(name for row in rows for name in row if name.endswith(_SIGNATURE))
    items = []
    for name in names:
        metric = signature_heading(name)
        signatures: dict = {}
        for line, row in enumerate(rows, 1):
            if row.get(name):
                signatures.setdefault(row[name], []).append(str(line))
        for signature, numbers in signatures.items():
            where = f" (row {', '.join(numbers)})" if len(signatures) > 1 else ""
            items.append((f"{metric}{where}", signature))
    return items


def pairs(items: Sequence[Tuple[str, str]], css: str = "settings") -> str:
    """Names and values."""
    return part("pairs", items, css)


def commands(items: Sequence[Tuple[str, str]]) -> str:
    """A block for each stage; a click selects the whole command, to be copied."""
    return part("commands", items)


def picture(svg: str, caption: str, number: int) -> str:
    """An SVG file as part of the page; ``number`` keeps its names apart from other pictures'."""
    drawn = as_html(inline_svg(svg, caption, f"p{number}-"))
    return part("picture", drawn, caption)


_GROUND = re.compile(r'<g id="patch_\d+">\s*<path d="[^"]*"\s+style="fill: #ffffff"\s*/>\s*</g>\s*')
_PAGE_COLOURS = {  # the page has them light and dark
    "#000000": "var(--ink)",
    "#ffffff": "var(--paper)",
    "#dddddd": "var(--grid)",
    "#0072b2": "var(--blue)",  # too dark on a dark page
}


def inline_svg(svg: str, label: str, prefix: str) -> str:
    """The ``<svg>`` of a file, its ids made the page's own, without prolog and metadata.

    White grounds are left out, black, white and the grid take the page's colours.
    """
    svg = svg[svg.index("<svg") :]
    svg = re.sub(r"\s*<metadata>.*?</metadata>", "", svg, flags=re.DOTALL)
    svg = _GROUND.sub("", svg)
    for colour, own in _PAGE_COLOURS.items():
        svg = re.sub(rf"(?<=: ){colour}\b", own, svg)
    svg = re.sub(r'\bid="', f'id="{prefix}', svg)
    svg = re.sub(r"url\(#", f"url(#{prefix}", svg)
    svg = re.sub(r'href="#', f'href="#{prefix}', svg)
    return svg.replace("<svg", f'<svg role="img" aria-label="{html.escape(label)}"', 1).strip()


class Word(NamedTuple):
    """kind: repeated, missing, more (``text`` times what stands before it), or none of them."""

    text: str
    kind: str = ""


class Text(NamedTuple):
    """Words, those beyond a number folded away."""

    shown: List[Word]
    rest: List[Word]


class Line(NamedTuple):
    """missing: words of the reference; None where the text is not compared with it."""

    name: str
    text: Text
    score: str = ""
    missing: Optional[Text] = None


class Block(NamedTuple):
    """What there is of one sentence."""

    number: int
    lines: List[Line]


def examples(
    source: Sequence[str],
    reference: Sequence[str],
    systems: Mapping[str, Sequence[str]],
    numbers: Sequence[int],
    chrf: Mapping[str, Sequence[float]] = {},
) -> str:
    """A block for each sentence number (from 0): source, reference and every system.

    ``chrf``: by system, of each sentence.
    """
    blocks = []
    for i in numbers:
        lines = [Line("source", _marked(source[i], mark=False))] if source else []
        lines.append(Line("reference", _marked(reference[i])))
        for name, hypotheses in systems.items():
            lacking = missing_words(hypotheses[i], reference[i])
            missing = _few([Word(_short(word), "missing") for word in lacking])
            score = f"chrF {chrf[name][i]:.0f}, " if name in chrf else ""
            lines.append(Line(name, _marked(hypotheses[i]), score, missing))
        blocks.append(Block(i, lines))
    return part("examples", blocks)


def _marked(text: str, mark: bool = True) -> Text:
    """A text with its repeated words marked, long repetitions once."""
    words: List[Word] = []
    for piece in condensed(text):
        for word in piece.words:
            words.append(Word(_short(word.text), "repeated" if mark and word.repeated else ""))
        if piece.more:
            words.append(Word(str(piece.more), "more"))
    return _few(words)


def _short(word: str) -> str:
    if len(word) <= _LONGEST_WORD:
        return word
    half = _LONGEST_WORD // 2
    return f"{word[:half]}…{word[-half:]} ({len(word)} characters)"


def _few(words: List[Word]) -> Text:
    most = len(words) if len(words) <= _MOST_WORDS * 1.2 else _MOST_WORDS
    return Text(words[:most], words[most:])
