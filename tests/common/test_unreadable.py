"""Files that torch's safe loader refuses: what they are, which class it is about, what to do."""

import gzip
import os
import pickle
import struct

import pytest
import torch

from fairseq_eisl.checkpoints import average_checkpoints, best_checkpoints, read_checkpoint
from fairseq_eisl.checkpoints.command import main
from fairseq_eisl.tasks.initial_weights import load_initial_weights

MODEL = {"model": {"w": torch.ones(1000)}}


class Calls:
    """Pickled as a call of a function."""

    def __init__(self, function, *args):
        self.what = function, args

    def __reduce__(self):
        return self.what


class Foreign:
    """A class that no fairseq checkpoint holds."""


def saved(path, content, **options):
    if isinstance(content, bytes):
        path.write_bytes(content)
    else:
        torch.save(content, path, **options)
    return str(path)


def refusal(path) -> str:
    with pytest.raises(ValueError) as error:
        read_checkpoint(str(path))
    message = str(error.value)
    assert message.startswith(f"{path}: ") and "\n" not in message
    return message


@pytest.mark.parametrize("new_format", [True, False])
@pytest.mark.parametrize(
    "value, words",
    [
        (Calls(os.system, "true"), f"it holds {os.name}.system, which can run code"),  # blocked
        (Calls(eval, "1"), "eval, which can run code"),
        (Foreign(), f"it holds {__name__}.Foreign, which is not known to be harmless"),
    ],
)
def test_a_refused_class_is_named(tmp_path, value, words, new_format):
    """A class of a module that torch blocks has a message of its own."""
    path = tmp_path / "x.pt"
    saved(path, {**MODEL, "x": value}, _use_new_zipfile_serialization=new_format)
    message = refusal(path)
    assert words in message and "weights_only=False" in message
    assert "no file that torch.load can read" not in message


def safetensors():
    header = b'{"w":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}}'
    return struct.pack("<Q", len(header)) + header + b"\0" * 4


@pytest.mark.parametrize(
    "content, words",
    [
        (b"", "it is empty (0 bytes)"),
        (b"a text\n", "it is a text"),
        (b"<!DOCTYPE html>", "a web page"),
        (b"version https://git-lfs.github.com/spec/v1\n", "Git LFS"),
        (gzip.compress(b"x", mtime=0), "gzip"),
        (safetensors(), "safetensors"),
        (b"\0" * 1000, "begins with zeros"),
        (b"PK\x05\x06" + b"\0" * 18, "a zip archive, and torch.save did not write it"),
        (pickle.dumps({"model": 1}), "a pickle that torch.save did not write"),
        (b"\xff\xd8\xff\xe0 a picture", "another format"),
    ],
)
def test_files_of_other_kinds_are_told(tmp_path, content, words):
    message = refusal(saved(tmp_path / "x.pt", content))
    assert "no file that torch.load can read: " in message and words in message


def test_a_torchscript_archive_is_told(tmp_path):
    torch.jit.save(torch.jit.script(torch.nn.Linear(2, 2)), str(tmp_path / "x.pt"))
    assert "TorchScript" in refusal(tmp_path / "x.pt")


@pytest.mark.parametrize("new_format", [True, False])
@pytest.mark.parametrize("kept", [0.5, 0.99])
def test_half_a_file_is_cut_off(tmp_path, kept, new_format):
    path = tmp_path / "x.pt"
    whole = saved(path, MODEL, _use_new_zipfile_serialization=new_format)
    path.write_bytes(path.read_bytes()[: int(kept * os.path.getsize(whole))])
    assert "cut off" in refusal(path)


def test_what_the_unpickler_does_not_know_is_no_damage(tmp_path):
    saved(tmp_path / "x.pt", {**MODEL, "x": bytearray(b"x" * 9)}, pickle_protocol=5)
    message = refusal(tmp_path / "x.pt")
    assert "Unsupported operand" in message and "cut off" not in message


def test_a_folder_is_no_checkpoint(tmp_path, capsys):
    with pytest.raises(IsADirectoryError, match="name a checkpoint in it"):
        read_checkpoint(str(tmp_path))
    with pytest.raises(SystemExit):
        main(["updates", str(tmp_path)])
    assert f"error: {tmp_path}: Is a directory" in capsys.readouterr().err


def test_all_that_reads_checkpoints_says_so(tmp_path, capsys):
    good = saved(tmp_path / "good.pt", MODEL)
    bad = saved(tmp_path / "checkpoint.best_bleu_1.000.pt", {**MODEL, "x": Calls(os.system, "")})
    calls = [
        lambda: average_checkpoints([good, bad]),
        lambda: best_checkpoints(str(tmp_path), 1),
        lambda: load_initial_weights(torch.nn.Linear(1, 1), bad),
    ]
    for call in calls:
        with pytest.raises(ValueError, match=r"best_bleu_1.000.pt: it holds \w+.system"):
            call()
    for line in (f"--inputs {bad}", f"--folder {tmp_path} --best 1"):
        with pytest.raises(SystemExit) as end:
            main(["average", *line.split(), "--output", str(tmp_path / "out.pt")])
        assert end.value.code == 2
        assert "error: --" in (text := capsys.readouterr().err) and ".system, which" in text


@pytest.mark.parametrize(
    "content, words",
    [
        ({**MODEL, "x": Calls(os.system, "true")}, ".system, which can run code"),
        ({**MODEL, "x": Foreign()}, "Foreign, which is not known to be harmless"),
        (b"", "it is empty"),
        (b"a text\n", "it is a text"),
        (b"PK\x03\x04" + b"x" * 200, "it is cut off"),
    ],
)
def test_resuming_and_generating_say_so_as_well(tmp_path, content, words):
    """fairseq's own loader: --restore-file, --path."""
    from fairseq import checkpoint_utils

    path = saved(tmp_path / "x.pt", content)
    with pytest.raises(ValueError) as error:
        checkpoint_utils.load_checkpoint_to_cpu(path)
    message = str(error.value)
    assert message.startswith(f"{path}: ") and words in message and "\n" not in message
    with pytest.raises(FileNotFoundError):
        checkpoint_utils.load_checkpoint_to_cpu(str(tmp_path / "none.pt"))
