"""How words are split into pieces: the kinds that are known, read off a dictionary's symbols."""

import re
from typing import Dict, NamedTuple, Sequence


class Marks(NamedTuple):
    """What a kind of segmentation writes at the edges of pieces.

    before: mark before the first piece of a word. after: mark after its last piece.
    continues: mark before every piece but the first. goes_on: mark after every piece but the last.
    unknown_inside: an unknown piece stands beside a bare mark, as sentencepiece writes an unknown
        word; otherwise it is a word's only or last piece.
    """

    before: str = ""
    after: str = ""
    continues: str = ""
    goes_on: str = ""
    unknown_inside: bool = False


KINDS: Dict[str, Marks] = {
    "none": Marks(),
    "subword_nmt": Marks(goes_on="@@"),
    "sentencepiece": Marks(before="\u2581", unknown_inside=True),
    "gpt2": Marks(before="\u0120"),
    "wordpiece": Marks(continues="##"),  # BERT's
    # sentencepiece's treat_whitespace_as_suffix
    "sentencepiece_suffix": Marks(after="\u2581", unknown_inside=True),
    "end_of_word": Marks(after="</w>"),  # the first subword-nmt, GPT-1, CLIP
    "eow": Marks(after="_EOW"),  # fairseq's --remove-bpe _EOW
    "underscore": Marks(before="_", unknown_inside=True),  # fairseq's --remove-bpe wordpiece
    "letter": Marks(after="|", unknown_inside=True),  # fairseq's --remove-bpe letter
    "joiner": Marks(continues="\uffed", goes_on="\uffed"),  # OpenNMT's
}
SCHEMES = tuple(KINDS)


def detect_scheme(symbols: Sequence[str], specials: int) -> str:
    """Guess the segmentation from a dictionary's symbols.

    ``specials``: how many leading symbols are special (bos, pad, eos, unk).

    >>> detect_scheme(["<s>", "a", "al@@", "x"], 1)
    'subword_nmt'
    >>> detect_scheme(["<s>", "a", "##x", "y"], 1)
    'wordpiece'
    """
    own = symbols[specials:]

    def starts(mark: str) -> int:
        return sum(s.startswith(mark) and s.strip(mark) != "" for s in own)

    def ends(mark: str) -> int:
        return sum(s.endswith(mark) and s.strip(mark) != "" for s in own)

    # A few marks prove nothing: web text draws bars with "\u2581", and Maltese has the letter
    # "\u0120". "@@" comes last, as GPT-2 has pieces such as "@@@@".
    few = 0.01 * len(own)
    mark = KINDS["sentencepiece"].before
    if ends(mark) > max(few, starts(mark)):
        return "sentencepiece_suffix"
    if sum(s.startswith(mark) for s in own) > few:
        return "sentencepiece"
    if sum(s.startswith(KINDS["gpt2"].before) for s in own) > 0.1 * len(own):
        return "gpt2"
    # Dictionaries of characters: a mark alone is a few hundredths of them, or less.
    if len(own) <= 500 and sum(len(s) == 1 for s in own) > 0.9 * len(own):
        for scheme in ("sentencepiece", "letter"):
            if (KINDS[scheme].before or KINDS[scheme].after) in own:
                return scheme
    if starts(KINDS["underscore"].before) > 0.1 * len(own):
        return "underscore"
    for scheme in ("end_of_word", "eow"):
        if ends(KINDS[scheme].after) > few:
            return scheme
    if starts(KINDS["wordpiece"].continues) > few:
        return "wordpiece"
    mark = KINDS["joiner"].goes_on
    if starts(mark) + ends(mark) > few:
        return "joiner"
    if any(len(s) > 2 and s.endswith("@@") for s in own):
        return "subword_nmt"
    # GPT-2's BPE as BART and RoBERTa use it: the symbols are the numbers of encoder.json.
    numbers = [int(s) for s in own if is_number(s)]
    if len(numbers) > 0.99 * len(own) and max(numbers, default=0) > 10_000:
        return "gpt2"
    return "none"


def is_number(symbol: str) -> bool:
    """Whether a symbol of a dictionary can be the number of a GPT-2 piece."""
    return re.fullmatch("[0-9]{1,9}", symbol) is not None


def is_padding_word(symbol: str) -> bool:
    """Whether a symbol only fills a fairseq dictionary up to a multiple of 8."""
    return re.fullmatch(r"madeupword\d{4}", symbol) is not None
