"""Why a file is no checkpoint that torch's safe loader reads, in one line."""

import re
import zipfile

# torch's words for a class that nobody allowed, and for one of a module that it never allows.
_REFUSED = re.compile(r"[Uu]nsupported (?:global: )?GLOBAL (\S+)|[Uu]nsupported class (\S+)")
_UNPICKLER = re.compile(r"WeightsUnpickler error:\s+(.+)")
_CODE = re.compile(
    r"(posix|nt|os|sys|subprocess|commands|socket|shutil|runpy|importlib|ctypes|pty)(\.|$)"
    r"|((builtins|__builtin__)\.)?(eval|exec|compile|getattr|open|__import__|execfile)$"
)
_BEGINNINGS = (
    (b"version https://git-lfs", "a pointer of Git LFS (git lfs pull fetches the file itself)"),
    (b"\x1f\x8b", "a gzip archive, unpack it first"),
    (b"\x89HDF", "an HDF5 file"),
    (b"<", "a web page or XML"),
)


def why_unreadable(path: str, error: BaseException) -> str:
    """What follows ``path:`` in the error for a file that ``torch.load`` failed on with ``error``.

    Names the class that was refused and what to do about it, or what the file is instead.
    """
    found = _REFUSED.search(str(error))
    if not found:
        return f"no file that torch.load can read: {_what_it_is(path, str(error))}"
    name = (found[1] or found[2]).rstrip(".,;`'\"")
    kind = "can run code" if _CODE.match(name) else "is not known to be harmless"
    return (
        f"it holds {name}, which {kind}, and is not loaded; only if you trust where the file is "
        "from: read it with torch.load(FILE, weights_only=False), take that out, and torch.save it"
    )


def _what_it_is(path: str, message: str) -> str:
    with open(path, "rb") as f:
        head = f.read(512)
        size = f.seek(0, 2)
    if not size:
        return "it is empty (0 bytes)"
    if head.startswith(b"PK"):
        return _what_archive(path, message)
    # An 8-byte length of a JSON header, which follows.
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") < size:
        return "it is a safetensors file, not a checkpoint that fairseq-train saved"
    for beginning, name in _BEGINNINGS:
        if head.startswith(beginning):
            return f"it is {name}"
    if head[257:262] == b"ustar":
        return "it is a tar archive"
    if not head.strip(b"\0"):
        return "it begins with zeros, as after a copy that broke off"
    if head[:1] == b"\x80":  # a pickle, as torch saved before 1.6
        return f"it is cut off, or a pickle that torch.save did not write{_refused(message)}"
    if _is_text(head):
        return "it is a text"
    return "it is in another format, or damaged"


def _is_text(head: bytes) -> bool:
    try:
        text = head.decode()
    except UnicodeDecodeError as err:
        if err.start < len(head) - 3:  # else a character that the head ends in
            return False
        text = head[: err.start].decode()
    return all(sign.isprintable() or sign.isspace() for sign in text)


def _what_archive(path: str, message: str) -> str:
    if not zipfile.is_zipfile(path):
        return "it is cut off; its saving or copying did not come to its end"
    try:
        with zipfile.ZipFile(path) as archive:
            names = archive.namelist()
    except (OSError, ValueError, zipfile.BadZipFile):
        return "it is damaged"
    inner = {name.partition("/")[2] for name in names}
    if "constants.pkl" in inner:
        return "it is a TorchScript archive (torch.jit.save), not a checkpoint of fairseq-train"
    if "data.pkl" not in inner:
        return "it is a zip archive, and torch.save did not write it"
    if refused := _refused(message):
        return f"torch's safe loader does not know what it holds{refused}"
    return "it is damaged or cut off; its saving or copying did not come to its end"


def _refused(message: str) -> str:
    """What torch's unpickler said, in brackets."""
    found = _UNPICKLER.search(message)
    return f" ({found[1].strip()})" if found else ""
