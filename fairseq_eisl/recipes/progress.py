"""How far long work is and how long it takes: tqdm on a terminal, else a line now and then."""

import re
import sys
import time
from typing import BinaryIO, List, Optional

EVERY = 30.0  # seconds between two lines in a log
_quiet = False
_plain = False

# Lines of fairseq's logs.
_VALIDATION = re.compile(
    r"\| (epoch \d+) \| valid on .*?\| loss ([\d.]+) .*?\| bleu ([\d.]+) .*?\| num_updates (\d+)"
)
_TRAINING = re.compile(r"\bepoch (\d+):\s+(\d+) / (\d+) (.*)")
_VALUE = re.compile(r"\b(loss|ups|num_updates)=([\d.]+)")
_LOADED = re.compile(r"loaded ([\d,]+) examples from")


def be_quiet(quiet: bool):
    """Whether progress is shown; failures always are."""
    global _quiet
    _quiet = quiet


def be_plain():
    """From now on progress is lines, also on a terminal."""
    global _plain
    _plain = True


def say(text: str):
    """A line of progress on standard error."""
    if not _quiet:
        print(f"[{time.strftime('%H:%M:%S')}] {text}", file=sys.stderr, flush=True)


def duration(seconds: float) -> str:
    """Time for people.

    >>> duration(8), duration(75), duration(3700)
    ('8 s', '1 min 15 s', '1 h 1 min')
    """
    whole = max(0, round(seconds))
    if whole < 60:
        return f"{whole} s"
    if whole < 3600:
        return f"{whole // 60} min {whole % 60} s"
    return f"{whole // 3600} h {whole % 3600 // 60} min"


class Progress:
    """What one command of a stage does, read from its log and from what it prints.

    ``result``: the file of its translations, whose lines H-... are counted. ``step``: which of
    the stage's commands it is, e.g. "2 of 5".
    """

    def __init__(self, name: str, line: List[str], step: str = "", result: Optional[str] = None):
        self.name, self.step = name, step
        self.updates, self.epochs = _number(line, "--max-update"), _number(line, "--max-epoch")
        self.parts = max(1, _number(line, "--distributed-world-size"))  # of what is translated
        # A training that stops when validation no longer improves is rarely at its last update.
        self.bound = "at most" if "--patience" in line else "about"
        self.result: Optional[BinaryIO] = open(result, "rb") if result else None
        self.started = self.shown = self.first_at = self.done_at = time.time()
        self.done, self.total, self.first, self.what = 0, 0, 0, ""
        self.tail = self.rest = b""
        self.bar = None
        if not _quiet and not _plain and sys.stderr is not None and sys.stderr.isatty():
            from tqdm import tqdm

            self.bar = tqdm(desc=name, leave=False, dynamic_ncols=True, file=sys.stderr)

    def read(self, content: bytes):
        """New text of the log."""
        *lines, self.rest = (self.rest + content).split(b"\n")
        for each in lines:
            self._line(each.decode("utf-8", "replace"))
        if self.result is not None:
            *found, self.tail = (self.tail + self.result.read()).split(b"\n")
            if translated := sum(line.startswith(b"H-") for line in found):
                self.done, self.done_at = self.done + translated, time.time()
            self.what = f"sentence {self.done}" + (f" of {self.total}" if self.total else "")
        self._show()

    def close(self):
        if self.bar is not None:
            self.bar.close()
        if self.result is not None:
            self.result.close()

    def _line(self, text: str):
        valid, train, loaded = (p.search(text) for p in (_VALIDATION, _TRAINING, _LOADED))
        if valid:
            epoch, loss, bleu, updates = valid.groups()
            self._print(f"           {epoch}  loss {loss}  BLEU {bleu}  updates {updates}")
        elif text.startswith("note: "):  # of this package's scripts
            self._print(f"           {text}")
        elif train:
            self._trained(train)
        elif loaded and self.result is not None:
            self.total = round(int(loaded[1].replace(",", "")) / self.parts)

    def _trained(self, found):
        values = dict(_VALUE.findall(found[4]))
        if "num_updates" not in values:
            return
        self.done, self.done_at = int(values["num_updates"]), time.time()
        if not self.first:  # an interrupted training goes on where it was
            self.first, self.first_at = self.done, self.done_at
        epoch, batches = int(found[1]), int(found[3])
        # What fairseq stops at first; an epoch has the same number of updates as the last one.
        left = max(0, self.epochs - epoch) * batches + batches - int(found[2])
        ends = [self.done + left] if self.epochs else []
        self.total = min([*ends, *([self.updates] if self.updates else [])], default=0)
        self.what = f"epoch {epoch}" + (f" of {self.epochs}" if self.epochs else "")
        self.what += f", update {self.done}" + (f" of {self.total}" if self.total else "")
        self.what += f", loss {values['loss']}" if "loss" in values else ""
        self.what += f", {values['ups']} updates a second" if "ups" in values else ""

    def text(self) -> str:
        """Where the work is, and how long it still takes where that can be told."""
        now = time.time()
        parts = [self.what or (f"command {self.step}" if self.step else "at work")]
        parts.append(f"{duration(now - self.started)} so far")
        if self.done > self.first and self.total:
            # By the updates between two lines of the log: neither the start nor the time since
            # the last line says how fast it is.
            each = (self.done_at - self.first_at) / (self.done - self.first)
            left = each * (self.total - self.done) - (now - self.done_at)
            parts.append(f"{self.bound} {duration(left)} left")
        return f"{self.name}: {', '.join(parts)}"

    def _show(self):
        now = time.time()
        if self.bar is not None:
            self.bar.total, self.bar.n = self.total or None, self.done
            self.bar.set_postfix_str(self.what or self.step, refresh=now - self.shown > 0.5)
            self.shown = now if now - self.shown > 0.5 else self.shown
        elif now - self.shown >= EVERY:
            self.shown = now
            say(self.text())

    def _print(self, text: str):
        if self.bar is not None:
            self.bar.write(text, file=sys.stderr)
        elif not _quiet:
            print(text, file=sys.stderr, flush=True)


def _number(line: List[str], flag: str) -> int:
    """The value of a flag of a command line; 0 without one."""
    value = line[line.index(flag) + 1] if flag in line[:-1] else "0"
    return int(value) if value.isdigit() else 0
