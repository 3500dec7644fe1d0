#!/usr/bin/env python3
"""Learn one sentencepiece BPE from text files, or split a text into its pieces.

    python scripts/prepare/sentencepiece_bpe.py train --size 4000 --model bpe train.de train.en
    python scripts/prepare/sentencepiece_bpe.py encode --model bpe.model < train.de > train.bpe.de

The text is taken as it is (no normalisation), so that removing the pieces
(``--remove-bpe sentencepiece``) gives it back exactly.
"""

import argparse
import os
import sys

import sentencepiece


def train(args):
    for path in args.files:
        if not os.path.getsize(path):
            raise SystemExit(f"{path} is empty: nothing to learn a segmentation from")
    sentencepiece.SentencePieceTrainer.train(
        input=args.files,
        model_prefix=args.model + ".part",
        vocab_size=args.size,
        model_type="bpe",
        character_coverage=1.0,
        normalization_rule_name="identity",
        hard_vocab_limit=False,  # a small text may have fewer pieces than asked for
        shuffle_input_sentence=False,
        num_threads=1,
        minloglevel=1,
    )
    for suffix in (".vocab", ".model"):
        os.replace(args.model + ".part" + suffix, args.model + suffix)


def encode(args):
    model = sentencepiece.SentencePieceProcessor(model_file=args.model)
    for line in sys.stdin:
        print(" ".join(model.encode(line.rstrip("\n"), out_type=str)))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    part = commands.add_parser("train", help="learn MODEL.model from text files")
    part.add_argument("--size", type=int, required=True, help="number of pieces")
    part.add_argument("--model", required=True, help="prefix of the files to write")
    part.add_argument("files", nargs="+")
    part.set_defaults(run=train)
    part = commands.add_parser("encode", help="standard input to pieces on standard output")
    part.add_argument("--model", required=True, help="a file MODEL.model")
    part.set_defaults(run=encode)
    for stream in (sys.stdin, sys.stdout):
        stream.reconfigure(encoding="utf-8", newline="\n")
    args = parser.parse_args()
    try:
        args.run(args)
    except (OSError, RuntimeError) as err:
        raise SystemExit(f"{args.command}: {err}") from None


if __name__ == "__main__":
    main()
