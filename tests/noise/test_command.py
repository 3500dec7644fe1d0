"""The command that corrupts a text: ``python -m fairseq_eisl.noise``."""

import io
import itertools
import os
import subprocess
import sys
import threading
from contextlib import contextmanager

import pytest

from fairseq_eisl.noise import Context, command, example_rng, parse_noise
from tests.toy import ROOT

TEXT = "a man in a blue shirt\n\ntwo dogs run .\nhello\n"


def start(*args):
    return subprocess.Popen(
        [sys.executable, "-m", "fairseq_eisl.noise", *args],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        bufsize=0,
        env=dict(os.environ, PYTHONPATH=str(ROOT), LC_ALL="C", PYTHONUTF8="0"),
    )


@contextmanager
def kill_later(process):
    """A process that hangs makes its test fail after a minute."""
    timer = threading.Timer(60, process.kill)
    timer.start()
    try:
        yield
    finally:
        timer.cancel()


@pytest.fixture
def run(monkeypatch):
    """The command in this process: ``run(stdin, *flags)`` gives its output."""

    def run(stdin, *args):
        data = stdin if isinstance(stdin, bytes) else stdin.encode()
        out = io.BytesIO()
        # As in a shell with the plain C locale; the command speaks UTF-8 all the same.
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(data), "ascii"))
        monkeypatch.setattr(sys, "stdout", io.TextIOWrapper(out, "ascii"))
        assert command.main(list(args)) == 0
        return out.getvalue().decode()

    return run


def refuse(capsys, run, stdin, *args):
    """The one line that the command says when it refuses its input."""
    with pytest.raises(SystemExit) as stop:
        run(stdin, *args)
    assert stop.value.code == 2
    message = capsys.readouterr().err
    assert message.startswith("python -m fairseq_eisl.noise: error: ")
    assert message.count("\n") == 1
    return message


def test_each_line_has_its_own_stream(run):
    noise = parse_noise("shuffle:2,repeat:0.5,blank:0.3")
    flags = ("--noise", "shuffle:2,repeat:0.5,blank:0.3", "--blank-symbol", "[...]")
    for seed in (1, 7, -3):
        expected = [
            " ".join(noise(line.split(), example_rng(seed, i), Context("[...]")))
            for i, line in enumerate(TEXT.splitlines())
        ]
        assert run(TEXT, *flags, "--seed", str(seed)) == "\n".join(expected) + "\n"
    assert run(TEXT, *flags) == run(TEXT, *flags, "--seed", "1") != run(TEXT, *flags, "--seed", "2")
    assert "[...]" in run(TEXT, *flags)
    # A line does not depend on what stands before it.
    other = TEXT.replace("a man in a blue shirt", "a dog")
    assert run(other, *flags).split("\n")[1:] == run(TEXT, *flags).split("\n")[1:]


def test_default_blank(run):
    assert run("a b\n", "--noise", "blank:1") == "unk unk\n"


def test_empty_lines_and_spaces(run):
    assert run("", "--noise", "repeat:1") == ""
    assert run("\n\n  \n", "--noise", "drop:1,repeat:1,synthetic:10") == "\n\n\n"
    assert run("\n", "--noise", "none") == "\n"
    assert run(" a \t b  \n", "--noise", "shuffle:0") == "a b\n"
    assert run("a b", "--noise", "repeat:1") == "a a b b\n"  # no newline at the end


@pytest.mark.parametrize("mark", ["\u2028", "\u2029", "\x85", "\r", "\x0b", "\x0c", "\x1c"])
def test_only_a_newline_ends_a_line(run, mark):
    """Source and target must keep the same number of lines; such marks part words."""
    assert run(f"a{mark}b\nc{mark}\n", "--noise", "repeat:1") == "a a b b\nc c\n"


def test_byte_order_mark_is_no_word(run):
    assert run("\ufeffa b\nc\n", "--noise", "repeat:1") == "a a b b\nc c\n"


def test_every_white_space_parts_words(run):
    """As it does in the text that the preparation writes."""
    text = "10\u00a0000\u202feuros\u3000a\tb\x1fc\n"
    assert run(text, "--noise", "repeat:0,shuffle:0") == "10 000 euros a b c\n"


def test_the_vocabulary_has_the_same_lines(run, tmp_path):
    path = tmp_path / "words"
    path.write_bytes("\ufeffa 1\r\nb\r2\n\u2028c 3\n".encode())
    assert command.read_vocabulary(str(path)) == ["a", "b", "c"]
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(ValueError, match="words: line 2: no UTF-8"):
        command.read_vocabulary(str(path))


@pytest.mark.parametrize(
    "pieces, words",
    [
        ("\u2581a b \u2581 \u2581c\u00e9", ["a", "c\u00e9"]),
        ("a b@@ c@@ c\u00e9", ["a", "c\u00e9"]),
        ("\u0120a b \u0120c\u00c3\u00a9 \u0120\u00c3 \u0120", ["a", "c\u00e9"]),
        ("a ##b c\u00e9", ["a", "c\u00e9"]),
        ("a</w> b c\u00e9</w>", ["a", "c\u00e9"]),
        ("a\u2581 b c\u00e9\u2581 \u2581", ["a", "c\u00e9"]),
        ("20001 20002 30000", ["20001", "20002", "30000"]),
    ],
)
def test_a_vocabulary_of_pieces_gives_whole_words(tmp_path, pieces, words):
    path = tmp_path / "dict"
    path.write_text("".join(f"{piece} 1\n" for piece in pieces.split()), encoding="utf-8")
    assert command.read_vocabulary(str(path)) == words


@pytest.mark.parametrize("spec", ["", " ", ","])
def test_an_empty_noise_is_refused(run, capsys, spec):
    assert "choose from none" in refuse(capsys, run, "a b\n", "--noise", spec)


@pytest.mark.parametrize("line", ["a@@ b c", "\u2581a b \u2581c", "a ##b c", "a b</w> c</w>"])
def test_pieces_are_noticed(run, capsys, line):
    """They are no words, and the command cannot keep them together."""
    run(f"{line}\n", "--noise", "repeat:1")
    assert "the words look like pieces" in capsys.readouterr().err
    run("a b -- ## c @@ \n", "--noise", "repeat:1")
    assert capsys.readouterr().err == ""


def test_windows_line_ends(run):
    assert run("a b\r\n\r\nc\r\n", "--noise", "repeat:1") == "a a b b\n\nc c\n"


def test_any_unicode(run):
    text = "Żółć ☃ 😀 \u00e9 e\u0301\n"
    assert run(text, "--noise", "none") == text


def test_vocabulary(run, tmp_path):
    path = tmp_path / "dict.txt"
    path.write_text("köln 12\nb 3\n\nmadeupword0000 0\n", encoding="utf-8")
    flags = ("--noise", "substitute:1", "--vocabulary", str(path))
    out = run("x " * 200 + "\n", *flags)
    assert set(out.split()) == {"köln", "b"} and len(out.split()) == 200
    assert set(run("x\n" * 50, "--noise", "insert:0.5", *flags[2:]).split()) == {"x", "köln", "b"}
    # A vocabulary that no noise needs does no harm.
    assert run("x\n", "--noise", "repeat:1", *flags[2:]) == "x x\n"


def test_a_blank_of_the_vocabulary_is_no_word_to_put_in(run, capsys, tmp_path):
    """As in training."""
    path = tmp_path / "dict.txt"
    path.write_text("a 3\nBLANK 2\nb 1\n")
    flags = ("--noise", "substitute:1", "--vocabulary", str(path), "--blank-symbol")
    assert set(run("x " * 200 + "\n", *flags, "BLANK").split()) == {"a", "b"}
    assert set(run("x " * 200 + "\n", *flags, "[...]").split()) == {"a", "b", "BLANK"}
    path.write_text("BLANK 2\n")
    assert "--vocabulary" in refuse(capsys, run, TEXT, *flags, "BLANK")


@pytest.mark.parametrize("name", ["substitute", "insert", "synthetic_released"])
def test_missing_vocabulary(run, capsys, name):
    message = refuse(capsys, run, TEXT, "--noise", f"{name}:0.5")
    assert f"--noise {name}:0.5" in message and "--vocabulary" in message


def test_unusable_vocabulary(run, capsys, tmp_path):
    flags = ("--noise", "substitute:1", "--vocabulary")
    assert "No such file" in refuse(capsys, run, TEXT, *flags, str(tmp_path / "none.txt"))
    assert "--vocabulary" in refuse(capsys, run, TEXT, *flags, str(tmp_path))
    for content in (b"", b"\n \n", b"madeupword0001 0\n", b"\xff\xfe 1\n"):
        path = tmp_path / "dict.txt"
        path.write_bytes(content)
        assert "error: --vocabulary: " in refuse(capsys, run, TEXT, *flags, str(path))


def test_bad_flags(run, capsys):
    message = refuse(capsys, run, TEXT, "--noise", "repeat:2")
    assert "--noise: 'repeat:2'" in message and "between 0 and 1" in message
    assert "shuffle:<" in refuse(capsys, run, TEXT, "--noise", "reverse:1")
    for symbol in ("", "two words", " "):
        message = refuse(capsys, run, TEXT, "--noise", "blank:1", "--blank-symbol", symbol)
        assert f"--blank-symbol: one word is needed, not {symbol!r}" in message
    for flags in (["--seed", "1"], ["--noise", "repeat:1", "--seed", "x"]):  # argparse's own
        with pytest.raises(SystemExit) as stop:
            run(TEXT, *flags)
        assert stop.value.code == 2


def test_input_that_is_not_utf8(run, capsys):
    message = refuse(capsys, run, b"a\nb\n\xe9t\xe9\nc\n", "--noise", "repeat:1")
    assert "standard input, line 3" in message and "UTF-8" in message


def test_help_lists_every_noise(capsys):
    with pytest.raises(SystemExit) as stop:
        command.main(["--help"])
    assert stop.value.code == 0
    text = capsys.readouterr().out
    assert all(f"{name}:<" in text for name in command.KINDS)


def test_streaming():
    """Memory does not grow with the text: endless input is worked off line by line."""

    class Full(Exception):
        pass

    class Target(io.StringIO):
        def write(self, text):
            if self.tell() > 1000:
                raise Full
            return super().write(text)

    endless = (f"line {i}\n" for i in itertools.count())
    target = Target()
    with pytest.raises(Full):
        command.corrupt_lines(endless, target, parse_noise("repeat:1"), 1, Context("unk"))
    assert target.getvalue().startswith("line line 0 0\nline line 1 1\n")
    assert int(next(endless).split()[1]) < 100


def test_as_a_process():
    """Output starts before the input ends, and a closed pipe (``| head``) ends it quietly."""
    with start("--noise", "repeat:1") as process, kill_later(process):
        process.stdin.write("a é\n".encode() * 3_000)  # more than a buffer, less than a pipe
        assert process.stdout.readline().decode() == "a a é é\n"
        process.stdout.close()  # as head does
        with pytest.raises(BrokenPipeError):
            while True:
                process.stdin.write(b"a b c\n" * 1_000)
        assert process.stderr.read() == b""
    assert process.returncode == 141  # as cat has it


def test_exit_code_as_a_process():
    with start("--noise", "repeat:half") as process:
        _, err = process.communicate(TEXT.encode())
    assert process.returncode == 2
    assert err.count(b"\n") == 1 and b"Traceback" not in err
