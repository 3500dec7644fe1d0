"""Pieces of HTML for the report page. Every text from outside is escaped here."""

import html
import re
from typing import List, Mapping, Sequence, Tuple

from ...common.rows import Row
from ..intervals import ends, p_text
from ..metrics.registry import heading, shown_columns, signature_heading
from ..row_checks import number
from ..word_diff import Word, condensed, missing_words

_ABOUT = ("arch", "noise", "test_set", "seed", "iterations", "length_candidates")
_SIGNATURE = "_signature"


_MOST_WORDS = 100  # of a text, before the rest is folded away
_LONGEST_WORD = 80  # characters


class Html(str):
    """A cell that is HTML already."""


def escape(text: str) -> str:
    """Text as HTML, in attributes too."""
    return text if isinstance(text, Html) else html.escape(text, quote=True)


def folded(summary: str, body: str) -> str:
    """HTML that a click unfolds."""
    return f"<details>\n<summary>{escape(summary)}</summary>\n{body}\n</details>"


def table(head: Sequence[str], body: Sequence[Sequence[str]], css: str = "") -> str:
    """A table that scrolls within itself where the page is narrow; numbers to the right."""
    right = [all(_is_number(line[i]) for line in body) for i in range(len(head))]

    def cells(line: Sequence[str], tag: str) -> str:
        return "".join(
            f'<{tag} class="number">{escape(text)}</{tag}>'
            if r
            else f"<{tag}>{escape(text)}</{tag}>"
            for text, r in zip(line, right)
        )

    lines = "\n".join(f"<tr>{cells(line, 'td')}</tr>" for line in body)
    kind = f' class="{css}"' if css else ""
    return (
        f'<div class="wide" tabindex="0"><table{kind}>\n'
        f"<thead><tr>{cells(head, 'th')}</tr></thead>\n"
        f"<tbody>\n{lines}\n</tbody></table></div>"
    )


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
    above = f'<p class="note">{escape(told)}</p>\n' if told else ""
    body = [[row.get(name, "") for name in shown] for row in rows]
    below = "\n" + _signatures(rows)
    return above + table([heading(name) for name in shown], body, "results") + below


def significance(rows: Sequence[Row]) -> str:
    """What a paired bootstrap says of each system's BLEU, and how it was drawn.

    :raises ValueError: a mean or margin that is no number.
    """
    columns = ("noise", "iterations", "length_candidates")
    told = [name for name in columns if not _same(rows, name)]
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
    return (
        table(head, body)
        + f'\n<p class="note">Paired bootstrap over the test sentences, {escape(drawn)}. '
        "It tells chance in the test set, not in training, which another seed would.</p>"
    )


def _same(rows: Sequence[Row], name: str) -> bool:
    return len({row.get(name, "") for row in rows}) == 1


def _signatures(rows: Sequence[Row]) -> str:
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
    return folded("How the scores were computed", pairs(items, "signatures")) if items else ""


def pairs(items: Sequence[Tuple[str, str]], css: str = "settings") -> str:
    """Names and values."""
    lines = "\n".join(f"<dt>{escape(k)}</dt><dd>{escape(v)}</dd>" for k, v in items)
    return f'<dl class="{css}">\n{lines}\n</dl>'


def commands(items: Sequence[Tuple[str, str]]) -> str:
    """A block for each stage; a click selects the whole command, to be copied."""
    return "\n".join(
        f'<h4>{escape(stage)}</h4>\n<pre tabindex="0"><code>{escape(command)}</code></pre>'
        for stage, command in items
    )


def picture(svg: str, caption: str, number: int) -> str:
    """An SVG file as part of the page; ``number`` keeps its names apart from other pictures'."""
    return (
        f'<figure>\n<div class="wide" tabindex="0">\n{inline_svg(svg, caption, f"p{number}-")}\n'
        f"</div>\n<figcaption>{escape(caption)}</figcaption>\n</figure>"
    )


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
    return svg.replace("<svg", f'<svg role="img" aria-label="{escape(label)}"', 1).strip()


def marked(text: str, mark: bool = True) -> str:
    """A text with its repeated words marked; long repetitions once, a long rest folded away."""
    parts: List[str] = []
    for piece in condensed(text):
        parts += [_word(word._replace(repeated=mark and word.repeated)) for word in piece.words]
        if piece.more:
            parts.append(f'<span class="more">({piece.more} times more)</span>')
    return _few(parts) or "<i>(empty)</i>"


def _word(word: Word) -> str:
    text = escape(_short(word.text))
    return f"<mark>{text}</mark>" if word.repeated else text


def _short(word: str) -> str:
    if len(word) <= _LONGEST_WORD:
        return word
    half = _LONGEST_WORD // 2
    return f"{word[:half]}…{word[-half:]} ({len(word)} characters)"


def _few(parts: Sequence[str]) -> str:
    """Words, those beyond a number folded away."""
    if len(parts) <= _MOST_WORDS * 1.2:
        return " ".join(parts)
    rest = len(parts) - _MOST_WORDS
    shown = " ".join(parts[:_MOST_WORDS])
    return f"{shown} {folded(f'{rest} more words', ' '.join(parts[_MOST_WORDS:]))}"


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
        lines: List[Tuple[str, str]] = [("source", marked(source[i], mark=False))] if source else []
        lines.append(("reference", marked(reference[i])))
        for name, hypotheses in systems.items():
            missing = missing_words(hypotheses[i], reference[i])
            lacks = _few([f"<del>{escape(_short(word))}</del>" for word in missing]) or "nothing"
            score = f"chrF {chrf[name][i]:.0f}, " if name in chrf else ""
            note = f'<div class="missing">{score}missing: {lacks}</div>'
            lines.append((name, f"{marked(hypotheses[i])}<br>{note}"))
        body = "\n".join(f"<dt>{escape(name)}</dt><dd>{text}</dd>" for name, text in lines)
        blocks.append(f'<h4>sentence {i}</h4>\n<dl class="example">\n{body}\n</dl>')
    return "\n".join(blocks)
