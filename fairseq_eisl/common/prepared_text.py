"""Text files made ready for training: plain spaces, one newline a line, translations side by side.

Whatever turns a corpus into what ``fairseq-preprocess`` or a segmentation reads goes through
:func:`prepare_files`, so that line 7 is line 7 for every reader, and no word is glued to another.
"""

import contextlib
import os
from dataclasses import dataclass, replace
from typing import BinaryIO, Callable, Iterator, List, Optional, Sequence, Tuple

from .files import whole_file
from .text_lines import decoded_lines, plain_words, without_end

SPACE_MARK = "\u2581"
"""What sentencepiece writes for a space. As a character of a text it would come back as a space."""

SENTENCE_SYMBOLS = frozenset(("<s>", "<pad>", "</s>"))
"""Words that fairseq takes for its own symbols, unless the text is split into pieces."""


@dataclass
class TextReport:
    """How many lines a text has, and how many of them were touched, by reason.

    ``in_pieces``: lines that begin with the mark of a sentencepiece. ``first_empty``: the number
    of the first line without a word, from 1.
    """

    lines: int = 0
    white_space: int = 0
    space_marks: int = 0
    windows_ends: int = 0
    sentence_symbols: int = 0
    in_pieces: int = 0
    empty: int = 0
    first_empty: int = 0

    def for_pieces(self) -> "TextReport":
        """The same for a text that is split into pieces, where fairseq's symbols do no harm. Lines
        without a word were told of when the text was prepared."""
        return replace(self, sentence_symbols=0, empty=0)

    def without_empty(self) -> "TextReport":
        """The same for who tells of lines without a word itself."""
        return replace(self, empty=0)

    def notes(self) -> List[str]:
        """What a user should know, a sentence each; nothing where the text is plain.

        >>> TextReport(lines=400, white_space=3).notes()[0][:46]
        '3 of 400 lines hold white space other than the'
        """
        said = (
            (
                self.white_space,
                "hold white space other than the space (a carriage return, a tab, a no-break "
                "space, ...): it becomes a space",
            ),
            (
                self.space_marks,
                f"hold {SPACE_MARK} (U+2581), sentencepiece's mark of a space: it becomes a space",
            ),
            (self.windows_ends, "end as on Windows (\\r\\n): they end in \\n now"),
            (
                self.sentence_symbols,
                "hold <s>, </s> or <pad>, which fairseq takes for its own symbols where words are "
                "not split into pieces",
            ),
            (self.empty, f"have no word, the first is line {self.first_empty:,}: they are kept"),
        )
        return [f"{count:,} of {self.lines:,} lines {what}" for count, what in said if count]


def prepared_lines(
    stream: BinaryIO, report: TextReport, mark_is_space: bool = False
) -> Iterator[str]:
    """The lines of a UTF-8 stream as words parted by single spaces; counts into ``report``.

    Args:
        mark_is_space: :data:`SPACE_MARK` is a space, too (for sentencepiece).

    Raises:
        ValueError: a line is no UTF-8 text; the message begins with ``line N``. Or, at the end,
            most lines begin with the mark: the text is in pieces already. Or its only line is
            parted by carriage returns, as old Macs wrote lines.
    """
    raw = ""
    for raw in decoded_lines(stream):
        text = without_end(raw)
        report.lines += 1
        report.windows_ends += raw.endswith("\r\n")
        report.white_space += any(c != " " and c.isspace() for c in text)
        if mark_is_space and SPACE_MARK in text:
            report.space_marks += 1
            report.in_pieces += text.startswith(SPACE_MARK)
            text = text.replace(SPACE_MARK, " ")
        text = plain_words(text)
        if not text:
            report.empty += 1
            report.first_empty = report.first_empty or report.lines
        if "<" in text:
            report.sentence_symbols += not SENTENCE_SYMBOLS.isdisjoint(text.split())
        yield text
    if report.lines == 1 and raw.count("\r") > 1 and "\n" not in raw:
        raise ValueError(
            "lines end in carriage returns alone, as on old Macs; write a newline at their ends "
            "(tr '\\r' '\\n')"
        )
    if report.in_pieces > max(report.lines / 2, 1):
        raise ValueError(
            f"{report.in_pieces:,} of {report.lines:,} lines begin with {SPACE_MARK} (U+2581): the "
            "text is in sentencepieces already; plain words are needed"
        )


def check_kept(sources: Sequence[str], targets: Sequence[str]) -> None:
    """Raises ValueError where a file that is read would be written over, whatever its name is."""
    made = [target for target in targets if os.path.exists(target)]
    for source in sources:
        if os.path.exists(source) and any(os.path.samefile(source, each) for each in made):
            raise ValueError(f"{source}: it would be written over; choose another folder")


def prepare_files(
    files: Sequence[Tuple[str, str]],
    transform: Callable[[str], str] = str,
    first: Optional[int] = None,
    mark_is_space: bool = False,
) -> List[TextReport]:
    """Write texts that are translations of one another, line by line, as prepared text.

    All files are written, whole, or none of them.

    Args:
        files: (from, to); all of them must have the same number of lines.
        transform: what becomes of a prepared line; it must give one line.
        first: write the first so many lines only.
        mark_is_space: see :func:`prepared_lines`.

    Returns:
        A report for each file.

    Raises:
        OSError: a file cannot be read or written.
        ValueError: no UTF-8 text (names file and line), an empty file, files of different
            lengths (names both and their lengths), too few lines for ``first``, or a file that
            would be written over itself.
    """
    reports = [TextReport() for _ in files]
    check_kept([source for source, _ in files], [target for _, target in files])
    with contextlib.ExitStack() as stack:
        for (source, target), report in zip(files, reports):
            out = stack.enter_context(
                open(stack.enter_context(whole_file(target)), "w", encoding="utf-8", newline="\n")
            )
            with open(source, "rb") as stream:
                try:
                    for number, line in enumerate(prepared_lines(stream, report, mark_is_space)):
                        if first is None or number < first:
                            out.write(transform(line) + "\n")
                except ValueError as err:
                    raise ValueError(f"{source}: {err}") from None
            if not report.lines:
                raise ValueError(f"{source}: the file is empty")
            if report.lines != reports[0].lines:
                raise ValueError(
                    f"{files[0][0]} has {reports[0].lines:,} lines and {source} has "
                    f"{report.lines:,}: they must be translations of one another, line by line"
                )
        if first is not None and reports[0].lines < first:
            raise ValueError(f"{files[0][0]} has {reports[0].lines:,} lines, fewer than {first:,}")
    return reports


def print_notes(names: Sequence[str], reports: Sequence[TextReport], out) -> None:
    """What a user should know of the texts of these names, a line each on the text stream ``out``.

    They begin with "note: ", by which recipes find them in the log of a stage and show them.
    """
    for name, report in zip(names, reports):
        for note in report.notes():
            print(f"note: {name}: {note}", file=out)
