#!/usr/bin/env python3
"""Write a small German-like / English-like parallel corpus from a grammar.

    python data/toy_corpus.py --out toy --train 8000 --valid 200 --test 400 --seed 1

No download, same files for the same seed. Like real German and English the two
sides differ in word order (verb second after a fronted adverbial, participle at
the end, subordinate clauses with the verb last) and in agreement (articles by
gender), so that a model has to learn reordering, not word-by-word replacement.
No sentence occurs twice, within or across the splits.
"""

import argparse
import os
import sys
from random import Random

# German noun, gender, English noun
NOUNS = [
    ("frau", "f", "woman"), ("mann", "m", "man"), ("kind", "n", "child"),
    ("mädchen", "n", "girl"), ("junge", "m", "boy"), ("lehrerin", "f", "teacher"),
    ("arzt", "m", "doctor"), ("köchin", "f", "cook"), ("bäcker", "m", "baker"),
    ("nachbarin", "f", "neighbour"), ("hund", "m", "dog"), ("katze", "f", "cat"),
    ("pferd", "n", "horse"), ("vogel", "m", "bird"), ("clown", "m", "clown"),
    ("königin", "f", "queen"),
]  # fmt: skip
THINGS = [
    ("ball", "m", "ball"), ("buch", "n", "book"), ("lampe", "f", "lamp"), ("apfel", "m", "apple"),
    ("kuchen", "m", "cake"), ("zeitung", "f", "newspaper"), ("brief", "m", "letter"),
    ("fahrrad", "n", "bicycle"), ("tasche", "f", "bag"), ("hut", "m", "hat"),
    ("messer", "n", "knife"), ("blume", "f", "flower"), ("stuhl", "m", "chair"),
    ("glas", "n", "glass"), ("gitarre", "f", "guitar"), ("boot", "n", "boat"),
]  # fmt: skip
ADJECTIVES = [
    ("klein", "small"), ("groß", "big"), ("alt", "old"), ("jung", "young"), ("rot", "red"),
    ("blau", "blue"), ("grün", "green"), ("schön", "beautiful"), ("müde", "tired"),
    ("schnell", "fast"), ("leise", "quiet"), ("fröhlich", "happy"), ("seltsam", "strange"),
    ("neu", "new"), ("kalt", "cold"), ("bunt", "colourful"),
]  # fmt: skip
# German third person, participle, English past
VERBS = [
    ("kauft", "gekauft", "bought"), ("sieht", "gesehen", "saw"), ("malt", "gemalt", "painted"),
    ("findet", "gefunden", "found"), ("sucht", "gesucht", "searched"), ("hält", "gehalten", "held"),
    ("trägt", "getragen", "carried"), ("verliert", "verloren", "lost"),
    ("öffnet", "geöffnet", "opened"), ("zerbricht", "zerbrochen", "broke"),
    ("wirft", "geworfen", "threw"), ("versteckt", "versteckt", "hid"),
    ("putzt", "geputzt", "cleaned"), ("holt", "geholt", "fetched"),
]  # fmt: skip
TIMES = [
    ("gestern", "yesterday"), ("am morgen", "in the morning"), ("am abend", "in the evening"),
    ("im sommer", "in summer"), ("im winter", "in winter"), ("letzte woche", "last week"),
    ("nach dem essen", "after the meal"), ("um mitternacht", "at midnight"),
]  # fmt: skip
PLACES = [
    ("im garten", "in the garden"), ("am see", "at the lake"), ("auf der straße", "on the street"),
    ("in der küche", "in the kitchen"), ("unter dem baum", "under the tree"),
    ("hinter dem haus", "behind the house"), ("auf dem markt", "at the market"),
    ("neben der schule", "next to the school"), ("in der stadt", "in the city"),
    ("vor dem laden", "in front of the shop"),
]  # fmt: skip
ARTICLES = {
    ("the", "subject"): {"m": "der", "f": "die", "n": "das"},
    ("the", "object"): {"m": "den", "f": "die", "n": "das"},
    ("a", "subject"): {"m": "ein", "f": "eine", "n": "ein"},
    ("a", "object"): {"m": "einen", "f": "eine", "n": "ein"},
}
PRONOUNS = {"m": ("er", "he"), "f": ("sie", "she"), "n": ("es", "it")}


def _phrase(nouns, case, rng):
    """A noun phrase: German words, English words, gender."""
    german, gender, english = rng.choice(nouns)
    article = rng.choice(("the", "a"))
    de, en = [ARTICLES[article, case][gender]], [article]
    if rng.random() < 0.5:
        adjective = rng.choice(ADJECTIVES)
        weak = "en" if (case, gender) == ("object", "m") else "e"
        de.append(adjective[0].rstrip("e") + weak)
        en.append(adjective[1])
    de.append(german)
    en.append(english)
    if en[0] == "a" and en[1][0] in "aeiou":
        en[0] = "an"
    return de, en, gender


def sentence(rng):
    """One sentence pair, as two lists of words."""
    subject_de, subject_en, gender = _phrase(NOUNS, "subject", rng)
    object_de, object_en, _ = _phrase(THINGS, "object", rng)
    _, participle, past = rng.choice(VERBS)
    time, place = rng.choice(TIMES), rng.choice(PLACES)
    form = rng.random()
    if form < 0.4:  # fronted time: the verb comes before the subject
        de = time[0].split() + ["hat"] + subject_de + place[0].split() + object_de + [participle]
        en = subject_en + [past] + object_en + place[1].split() + time[1].split()
    elif form < 0.7:
        de = subject_de + ["hat"] + object_de + place[0].split() + [participle]
        en = subject_en + [past] + object_en + place[1].split()
    else:  # subordinate clause first, its verb last
        feeling = rng.choice(ADJECTIVES)
        pronoun = PRONOUNS[gender]
        de = ["weil", pronoun[0], feeling[0], "war", ",", "hat"] + subject_de + object_de
        de += place[0].split() + [participle]
        en = subject_en + [past] + object_en + place[1].split()
        en += ["because", pronoun[1], "was", feeling[1]]
    return de + ["."], en + ["."]


def corpus(sizes, seed):
    """Disjoint splits of distinct sentence pairs: one list of (German, English) a size."""
    rng, seen = Random(seed), set()
    splits = []
    for size in sizes:
        pairs = []
        while len(pairs) < size:
            de, en = (" ".join(words) for words in sentence(rng))
            if de not in seen:
                seen.add(de)
                pairs.append((de, en))
        splits.append(pairs)
    return splits


def _write(path, lines):
    part = path + ".part"
    try:
        with open(part, "w", encoding="utf-8", newline="\n") as f:
            f.writelines(line + "\n" for line in lines)
        os.replace(part, path)
    except OSError:
        if os.path.isfile(part):
            os.unlink(part)
        raise


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--out", required=True, metavar="DIR")
    names = ("train", "valid", "test")
    for name, default in zip(names, (8000, 200, 400)):
        parser.add_argument(f"--{name}", type=int, default=default, metavar="N", help="sentences")
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    sizes = [getattr(args, name) for name in names]
    for name, size in zip(names, sizes):
        if not 1 <= size <= 1_000_000:
            parser.error(f"--{name}: between 1 and 1000000 sentences can be made, not {size}")
    try:
        os.makedirs(args.out, exist_ok=True)
        for name, pairs in zip(names, corpus(sizes, args.seed)):
            for side, language in enumerate(("de", "en")):
                _write(os.path.join(args.out, f"{name}.{language}"), (pair[side] for pair in pairs))
    except OSError as err:
        parser.error(f"--out {args.out}: {err.strerror or err}")
    print(f"{args.out}: {', '.join(f'{n} {s}' for n, s in zip(names, sizes))}", file=sys.stderr)


if __name__ == "__main__":
    main()
