"""One rule of what a line of text is, for every command that reads sentences.

A newline ends a line and nothing else does. Some readers end lines elsewhere, too: a carriage
return does for fairseq-preprocess (and any file that Python opens as text), a form feed or a
Unicode separator does for ``str.splitlines``. Where one of them stands within a sentence, every
later sentence would be paired with the wrong translation, so they are read as spaces.

Words are parted by white space of any kind, as fairseq parts them: a no-break space or a tab
within a piece of a word would vanish in ``fairseq-preprocess`` and glue two words together.
Text for training (``prepared_text``) therefore has plain spaces only.
"""

from typing import BinaryIO, Iterator

STRAY_LINE_ENDS = "\r\v\f\x1c\x1d\x1e\x85\u2028\u2029"
"""Characters that end a line for some reader; ``"\\n"`` does for every one."""

_AS_SPACES = {ord(character): " " for character in STRAY_LINE_ENDS}
BYTE_ORDER_MARK = "\ufeff"


def without_end(text: str) -> str:
    """A line without its end, which may be ``\\n`` or ``\\r\\n``.

    >>> without_end("a\\r\\n")
    'a'
    """
    if text.endswith("\n"):
        text = text[:-1]
    return text[:-1] if text.endswith("\r") else text


def one_line(text: str) -> str:
    """A line without its end, which may be ``\\n`` or ``\\r\\n``; stray line ends become spaces.

    >>> one_line("a\\rb\\u2028c\\r\\n")
    'a b c'
    """
    return without_end(text).translate(_AS_SPACES)


def plain_words(text: str) -> str:
    """The words of a line, parted by single plain spaces.

    >>> plain_words(" 10\\u00a0000\\teuros  \\n")
    '10 000 euros'
    """
    return " ".join(text.split())


def decoded_lines(stream: BinaryIO) -> Iterator[str]:
    """The lines of a UTF-8 stream as they are, ends included, without a byte order mark.

    Raises:
        ValueError: a line is no UTF-8 text; the message begins with ``line N``.
    """
    for number, line in enumerate(stream, 1):
        try:
            text = line.decode("utf-8")
        except UnicodeDecodeError as err:
            raise ValueError(
                f"line {number}: no UTF-8 text ({err.reason} at byte {err.start + 1} of the line)"
            ) from None
        if number == 1 and text.startswith(BYTE_ORDER_MARK):
            text = text[1:]
            if not text:
                return  # a mark and nothing else is an empty file
        yield text


def lines_of(stream: BinaryIO) -> Iterator[str]:
    """The lines of a UTF-8 stream, each as :func:`one_line` has it, without a byte order mark.

    Raises:
        ValueError: a line is no UTF-8 text; the message begins with ``line N``.
    """
    return map(one_line, decoded_lines(stream))
