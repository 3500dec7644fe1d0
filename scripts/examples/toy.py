"""What the examples have in common: the toy corpus with noisy targets, words as tokens, scores."""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version

import torch

try:
    import datasets  # noqa: F401
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from tokenizers.processors import TemplateProcessing
    from transformers import PreTrainedTokenizerFast
except ModuleNotFoundError as err:
    told = "pip install -c constraints.txt '.[huggingface]'"
    raise SystemExit(f"{err.name} is not installed: {told}") from None

from fairseq_eisl.common.checkout import beside
from fairseq_eisl.common.provenance import provenance
from fairseq_eisl.common.rows import append_row
from fairseq_eisl.evaluation.metrics.bleu import bleu
from fairseq_eisl.evaluation.metrics.length import length_ratio
from fairseq_eisl.evaluation.metrics.repetition import repetition_rate
from fairseq_eisl.noise import Context, example_rng, parse_noise

SPECIAL = ["<s>", "<pad>", "</s>", "<unk>"]


def parser_of(description, ce_updates, eisl_updates):
    """A parser with the flags of every example."""
    parser = argparse.ArgumentParser(
        description=description, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--noise", default="repeat:0.5", help="of the training targets")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--train", type=int, default=8000, metavar="N", help="sentence pairs")
    parser.add_argument("--test", type=int, default=400, metavar="N", help="sentence pairs")
    parser.add_argument("--ce-updates", type=int, default=ce_updates)
    parser.add_argument("--eisl-updates", type=int, default=eisl_updates)
    parser.add_argument("--rows", metavar="FILE", help="a CSV file to append the scores to")
    return parser


def parsed(parser):
    """The flags of the command line, checked."""
    args = parser.parse_args()
    for name in ("train", "test", "ce_updates", "eisl_updates"):
        if getattr(args, name) < 1:
            flag = "--" + name.replace("_", "-")
            parser.error(f"{flag}: 1 or more is needed, not {getattr(args, name)}")
    try:
        noise = parse_noise(args.noise)
    except ValueError as err:
        parser.error(str(err))
    if noise.needs_vocabulary:
        parser.error(f"--noise {args.noise}: random words need a vocabulary; choose another one")
    return args


def corpus(args):
    """(source, target) lines of the training and of the test set; the training targets noisy."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, beside("data/toy_corpus.py"), "--out", folder]
        sizes = ["--train", args.train, "--test", args.test, "--seed", args.seed]
        subprocess.run([*command, *map(str, sizes)], check=True, stderr=subprocess.DEVNULL)
        found = {}
        for split in ("train", "test"):
            sides = []
            for language in ("de", "en"):
                with open(os.path.join(folder, f"{split}.{language}"), encoding="utf-8") as f:
                    sides.append(f.read().splitlines())
            found[split] = list(zip(*sides))
    noise, context = parse_noise(args.noise), Context("<unk>", [])
    noisy = [
        (source, " ".join(noise(target.split(), example_rng(args.seed, index), context)))
        for index, (source, target) in enumerate(found["train"])
    ]
    return noisy, found["test"]


def tokenizer_of(pairs, end=True):
    """Every word of the pairs is a token; ``end``: the end symbol stands behind every text."""
    words = sorted({word for pair in pairs for line in pair for word in line.split()})
    ids = {word: number for number, word in enumerate([*SPECIAL, "=>", *words])}
    plain = Tokenizer(WordLevel(ids, unk_token="<unk>"))
    plain.pre_tokenizer = WhitespaceSplit()
    if end:
        plain.post_processor = TemplateProcessing(
            single="$A </s>", special_tokens=[("</s>", ids["</s>"])]
        )
    return PreTrainedTokenizerFast(
        tokenizer_object=plain,
        bos_token="<s>",
        pad_token="<pad>",
        eos_token="</s>",
        unk_token="<unk>",
    )


def translations(model, tokenizer, sources, prompt=""):
    """Greedy outputs. ``prompt``: what a decoder-only model reads after a source."""
    model.eval()
    tokenizer.padding_side = "left" if prompt else "right"
    texts = []
    for start in range(0, len(sources), 100):
        lines = [source + prompt for source in sources[start : start + 100]]
        batch = tokenizer(lines, return_tensors="pt", padding=True)
        batch = {name: batch[name].to(model.device) for name in ("input_ids", "attention_mask")}
        with torch.no_grad():
            # More than the targets have, so that repetitions show.
            outputs = model.generate(**batch, max_new_tokens=60, num_beams=1, do_sample=False)
        given = batch["input_ids"].size(1) if prompt else 0
        texts += tokenizer.batch_decode(outputs[:, given:], skip_special_tokens=True)
    tokenizer.padding_side = "right"
    return texts


class Scores:
    """Rows of what was trained so far, each with the CPU time that it took."""

    def __init__(self, args, name, test):
        self.args, self.name, self.test = args, name, test
        self.started = time.process_time()

    def add(self, system, updates, outputs):
        """Score the outputs on the test set; print the scores, and keep them as a row."""
        references = [target for _, target in self.test]
        score = bleu(outputs, references)
        row = {
            "system": system,
            "noise": self.args.noise,
            "seed": self.args.seed,
            "test_set": f"toy test, {len(references)} sentences",
            "model": self.name,
            "updates": updates,
            "bleu": f"{score.score:.2f}",
            "bleu_signature": score.signature,
            "repetition": f"{repetition_rate(outputs):.2f}",
            "length_ratio": f"{length_ratio(outputs, references):.3f}",
            "cpu_seconds": f"{time.process_time() - self.started:.0f}",
        }
        shown = ("bleu", "repetition", "length_ratio", "updates", "cpu_seconds")
        print(system, *(f"{name} {row[name]}" for name in shown), sep="  ", flush=True)
        if self.args.rows:
            libraries = {name: version(name) for name in ("transformers", "accelerate", "trl")}
            known = {**provenance(), **libraries, "threads": torch.get_num_threads()}
            append_row(self.args.rows, {**row, **known})
        self.started = time.process_time()
