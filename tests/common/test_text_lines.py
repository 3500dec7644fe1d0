"""A newline ends a line; what ends one for some readers only is a space."""

import io

import pytest

from fairseq_eisl.common.files import read_lines
from fairseq_eisl.common.text_lines import STRAY_LINE_ENDS, lines_of, one_line


def test_every_line_end_of_python_is_known():
    ends = {chr(code) for code in range(0x110000) if len(f"a{chr(code)}b".splitlines()) > 1}
    assert ends == {*STRAY_LINE_ENDS, "\n"}


@pytest.mark.parametrize("end", STRAY_LINE_ENDS)
def test_stray_line_ends_are_spaces(tmp_path, end):
    path = tmp_path / "text"
    path.write_bytes(f"a{end}b\nc\n".encode())
    assert read_lines(str(path)) == ["a b", "c"]


@pytest.mark.parametrize("text, line", [("a\n", "a"), ("a\r\n", "a"), ("a", "a"), ("a\r", "a")])
def test_the_end_of_a_line(text, line):
    assert one_line(text) == line


def test_byte_order_mark_of_a_file_is_no_word():
    assert list(lines_of(io.BytesIO("\ufeffa\n\ufeffb\n".encode()))) == ["a", "\ufeffb"]


def test_a_line_that_is_no_text_is_named(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a\nb\xff\n")
    with pytest.raises(ValueError, match=r"text: line 2: no UTF-8 text .*byte 2"):
        read_lines(str(path))
