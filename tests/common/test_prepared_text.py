"""Text for training: the same lines for every reader, plain spaces, both sides of one length."""

import io
import re

import pytest

from fairseq_eisl.common.prepared_text import TextReport, prepare_files, prepared_lines
from fairseq_eisl.common.text_lines import plain_words

SPACES = [chr(code) for code in range(0x110000) if chr(code).isspace()]


def test_words_are_parted_where_fairseq_parts_them():
    assert [c for c in map(chr, range(0x110000)) if re.match(r"\s", c)] == SPACES
    assert plain_words("a" + "b".join(SPACES) + "c") == "a " + "b " * (len(SPACES) - 1) + "c"


def prepared(data: bytes, **options):
    report = TextReport()
    return list(prepared_lines(io.BytesIO(data), report, **options)), report


@pytest.mark.parametrize("space", [c for c in SPACES if c not in " \n"])
def test_white_space_is_a_space_and_is_counted(space):
    lines, report = prepared(f"a{space}b\nc  d\n{space} \n".encode())
    assert lines == ["a b", "c d", ""]
    assert (report.lines, report.white_space, report.windows_ends) == (3, 2, 0)
    assert "of 3 lines hold white space other than the space" in report.notes()[0]


def test_nothing_is_said_of_plain_text():
    lines, report = prepared("\ufeffa  caf\u0065\u0301 \u200b\u200d \u2581x \u00ad \nb".encode())
    assert lines == ["a caf\u0065\u0301 \u200b\u200d \u2581x \u00ad", "b"]
    assert report.notes() == []


def test_windows_line_ends():
    lines, report = prepared(b"a\r\nb \r\n\r\nc\r")
    assert lines == ["a", "b", "", "c"]
    assert report.notes() == [
        "3 of 4 lines end as on Windows (\\r\\n): they end in \\n now",
        "1 of 4 lines have no word, the first is line 3: they are kept",
    ]


def test_the_mark_of_sentencepiece_is_a_space_where_it_is_asked():
    data = "a \u2581\u2581 b\u2581c\nd\n\u2581e f\n".encode()
    lines, report = prepared(data, mark_is_space=True)
    assert lines == ["a b c", "d", "e f"] and report.space_marks == 2
    assert "2 of 3 lines hold \u2581 (U+2581)" in report.notes()[0]
    with pytest.raises(ValueError, match="2 of 3 lines begin with .* in sentencepieces already"):
        prepared("\u2581a \u2581b\n\u2581c\nd\n".encode(), mark_is_space=True)


def test_symbols_of_fairseq_are_named():
    _, report = prepared(b"a <pad> b\n<unk>\nx<s>\n</s>\n")
    assert "2 of 4 lines hold <s>, </s> or <pad>" in report.notes()[0]


@pytest.fixture
def files(tmp_path):
    def write(de: bytes, en: bytes):
        for name, data in (("de", de), ("en", en)):
            (tmp_path / name).write_bytes(data)
        return [(str(tmp_path / n), str(tmp_path / "out" / n)) for n in ("de", "en")]

    return write


def test_files_are_written(files, tmp_path):
    pairs = files("\ufeffa\rb\r\nc\n".encode(), b"x\ny\tz")  # no newline at the end
    de, en = prepare_files(pairs)
    assert (tmp_path / "out/de").read_bytes() == b"a b\nc\n"
    assert (tmp_path / "out/en").read_bytes() == b"x\ny z\n"
    assert (de.white_space, en.white_space, de.lines, en.lines) == (1, 1, 2, 2)
    assert (tmp_path / "de").read_bytes().startswith("\ufeffa\r".encode())  # stays as it is
    prepare_files(pairs, transform=str.upper, first=1)
    assert (tmp_path / "out/de").read_bytes() == b"A B\n"
    prepare_files(pairs)  # again, over the old output
    assert (tmp_path / "out/de").read_bytes() == b"a b\nc\n"


@pytest.mark.parametrize(
    "de, en, message",
    [
        (b"a\nb\n", b"x\n", "de has 2 lines and .*en has 1: they must be translations"),
        (b"a\rb\n", b"x\ny\n", "de has 1 lines and .*en has 2"),
        (b"a\n\xff\n", b"x\ny\n", "de: line 2: no UTF-8 text"),
        ("a\n".encode("utf-16"), b"x\n", "de: line 1: no UTF-8 text"),
        (b"a\n", b"", "en: the file is empty"),
        (b"a\rb\rc\r", b"x\ry\rz\r", "de: lines end in carriage returns alone"),
        ("\ufeff".encode(), b"", "de: the file is empty"),
    ],
)
def test_what_is_refused_leaves_no_file(files, tmp_path, de, en, message):
    pairs = files(de, en)
    with pytest.raises(ValueError, match=message) as error:
        prepare_files(pairs)
    assert "\n" not in str(error.value)
    assert list((tmp_path / "out").iterdir()) == []


def test_too_few_lines(files):
    with pytest.raises(ValueError, match="de has 1 lines, fewer than 2"):
        prepare_files(files(b"a\n", b"b\n"), first=2)


def test_a_file_is_never_written_over_itself(tmp_path):
    path = tmp_path / "text"
    path.write_bytes(b"a\tb\n")
    (tmp_path / "link").symlink_to(path)
    for target in (path, tmp_path / "link", tmp_path / "x" / ".." / "text"):
        (tmp_path / "x").mkdir(exist_ok=True)
        with pytest.raises(ValueError, match="text: it would be written over"):
            prepare_files([(str(path), str(target))])
    assert path.read_bytes() == b"a\tb\n"
