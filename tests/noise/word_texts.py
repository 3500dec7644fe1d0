"""Texts of several segmentations, and what noise must leave whole in each."""

import pytest

from fairseq_eisl.noise import Context, WordUnits, example_rng, parse_noise

SPECIALS = ["<s>", "<pad>", "</s>", "<unk>"]
UNK = 3
SEEDS = range(1000)
SENTENCES = [
    "Two young, White males are outside near many bushes.",
    "a man in a blue shirt is standing on a ladder cleaning a window .",
    "The the THE the antidisestablishmentarianism of words",
    "unbelievable undoing",
    "hello",
]


class Text:
    """A dictionary with its word units, between symbols and ids."""

    def __init__(self, scheme, pieces, names=None):
        self.symbols = SPECIALS + pieces
        self.ids = {symbol: i for i, symbol in enumerate(self.symbols)}
        self.units = WordUnits(self.symbols, 4, UNK, scheme, names)
        self.scheme, self.names = scheme, names or {}
        self.vocabulary = self.units.vocabulary()

    def encode(self, pieces):
        pieces = pieces.split() if isinstance(pieces, str) else pieces
        return [self.ids.get(piece, UNK) for piece in pieces]

    def pieces(self, ids):
        return [self.names.get(self.symbols[i], self.symbols[i]) for i in ids]

    def words(self, ids):
        """The words a reader sees after detokenisation."""
        pieces = self.pieces(ids)
        if self.scheme in ("none", "subword_nmt", "wordpiece", "joiner"):
            text = (" ".join(pieces) + " ").replace("@@ ", "").replace(" ##", "")
            return text.replace("\uffed ", "").replace(" \uffed", "").split()
        marks = {"gpt2": "\u0120", "end_of_word": "</w>", "eow": "_EOW", "underscore": "_"}
        marks["letter"] = "|"
        text = "".join(pieces).replace(marks.get(self.scheme, "\u2581"), " ")
        if self.scheme == "gpt2":
            text = text.replace("<unk>", " <unk> ")  # it has no piece with a space
        if self.scheme in ("end_of_word", "eow"):
            text = text.replace("<unk>", "<unk> ")  # nothing says more of it
        return text.split()

    def corrupt(self, ids, spec, seed=1, blank=UNK):
        noise = parse_noise(spec)
        context = Context(self.units.blank(blank), self.vocabulary)
        words = noise(self.units.split(ids), example_rng(seed, 0), context)
        return self.units.join(words, ids, context.blank)

    def check(self, sentences):
        """What must hold of every segmentation; sentences are lists of ids."""
        rates = {name: [0, 0] for name in ("first moved", "last moved", "blanked")}
        for seed in SEEDS:
            ids = sentences[seed % len(sentences)]
            words = self.words(ids)
            assert [i for word in self.units.split(ids) for i in word] == ids
            assert self.corrupt(ids, "repeat:0,shuffle:0,blank:0,drop:0,synthetic:0", seed) == ids
            noisy = self.words(self.corrupt(ids, "shuffle:all", seed))
            assert sorted(noisy) == sorted(words)
            if len(set(words)) == len(words):
                for name, position in (("first moved", 0), ("last moved", -1)):
                    rates[name][0] += noisy[position] != words[position]
                    rates[name][1] += 1 - 1 / len(words)
            twice = [w for w in words for _ in range(2)]
            assert self.words(self.corrupt(ids, "repeat:1", seed)) == twice
            kept = iter(words)  # a subsequence of the words, none of them torn
            assert all(w in kept for w in self.words(self.corrupt(ids, "drop:0.5", seed)))
            blanked = self.words(self.corrupt(ids, "blank:0.5", seed))
            assert len(blanked) == len(words)
            for new, old in zip(blanked, words):
                assert new in (old, "<unk>")
                rates["blanked"][0] += 2 * (new != old)
                rates["blanked"][1] += old != "<unk>"
        for name, (seen, expected) in rates.items():
            assert seen / expected == pytest.approx(1, abs=0.05), name
