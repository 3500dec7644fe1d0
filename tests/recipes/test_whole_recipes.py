"""Recipes from text to scores that the smoke recipe has no part of: BART, distillation, WMT."""

import csv
import json
import os
from argparse import Namespace
from itertools import product
from pathlib import Path
from random import Random
from types import SimpleNamespace

import pytest
import torch

from fairseq_eisl.evaluation.readers.generation_log import (
    parse_generation_log,
    read_generation_log,
)
from tests.recipes.conftest import finish, recipes
from tests.toy import ROOT

SHARED = ROOT.parent / "shared/data"
SIZE = {"layers": 1, "embed-dim": 32, "ffn-embed-dim": 64, "attention-heads": 2}
SMALL = [f"flags.{side}-{k}={v}" for side in ("encoder", "decoder") for k, v in SIZE.items()]
WORDS = "abcdefghijkl"  # a letter is one piece of GPT-2, with and without a space before it


def write_pairs(folder: Path, words: int, copies: int = 1):
    """Sentences and their copies as translations; test sentences are training sentences."""
    folder.mkdir()
    pairs = list(product(WORDS, WORDS))
    Random(3).shuffle(pairs)
    for split, size in (("train", 60), ("valid", 10), ("test", 10)):
        chosen = [" ".join(pair * (words // 2)) for pair in pairs[:size]]
        chosen *= copies if split == "train" else 1
        for language in ("de", "en"):
            (folder / f"{split}.{language}").write_text("".join(f"{line}\n" for line in chosen))
    return folder


def run(config, *overrides, runs):
    code, output = finish(recipes("run", ROOT / "configs" / config, *overrides, "--runs", runs))
    assert code == 0, output
    (folder,) = (path for path in runs.iterdir() if path.name != "stages")
    with open(folder / "rows.csv", encoding="utf-8", newline="") as f:
        return folder, list(csv.DictReader(f))


def own_bpe(folder: Path):
    """Files in the format of GPT-2's BPE: each word, with a space before it, is a piece."""
    from fairseq.data.encoders.gpt2_bpe_utils import bytes_to_unicode

    merges = [f"\u0120 {word}" for word in WORDS]
    pieces = [*bytes_to_unicode().values(), *(f"\u0120{word}" for word in WORDS)]
    folder.mkdir()
    (folder / "encoder.json").write_text(json.dumps({p: i for i, p in enumerate(pieces)}))
    (folder / "vocab.bpe").write_text("\n".join(["#version: 0.2", *merges, ""]))
    (folder / "dict.txt").write_text("".join(f"{i} 1\n" for i in range(len(pieces))))


@pytest.fixture(params=["own", "gpt2"])
def bart(request, tmp_path):
    """A tiny BART as fairseq publishes them: weights with a row for <mask>, and its files."""
    from fairseq.data import Dictionary
    from fairseq.models.bart import BARTModel, bart_base_architecture

    folder = tmp_path / "bart"
    if request.param == "own":
        own_bpe(folder)
    else:
        files = SHARED / "gpt2_bpe"
        if not files.is_dir():
            pytest.skip(f"{files}: GPT-2's BPE is not there")
        folder.mkdir()
        for file in files.iterdir():
            os.symlink(file, folder / file.name)
    dictionary = Dictionary.load(str(folder / "dict.txt"))
    dictionary.add_symbol("<mask>")
    args = Namespace(arch="bart_base", task="denoising", share_all_embeddings=True)
    args.layernorm_embedding, args.max_source_positions, args.max_target_positions = True, 64, 64
    for side, (name, value) in product(("encoder", "decoder"), SIZE.items()):
        setattr(args, f"{side}_{name.replace('-', '_')}", value)
    bart_base_architecture(args)
    torch.manual_seed(1)
    names = SimpleNamespace(source_dictionary=dictionary, target_dictionary=dictionary)
    weights = BARTModel.build_model(args, names).state_dict()
    history = [{"criterion_name": "", "optimizer_name": "", "lr_scheduler_state": {}}]
    checkpoint = {"args": args, "model": weights, "optimizer_history": history}
    checkpoint.update(extra_state={"epoch": 1}, last_optimizer_state=None)
    torch.save(checkpoint, folder / "model.pt")
    return folder


def test_targets_of_two_tokens_stay_whole_through_the_bart_recipe(bart, tmp_path):
    # A first token that is taken for a start symbol, or cut off, could not be learnt.
    text = write_pairs(tmp_path / "text", 2, copies=10)
    folder, rows = run(
        "wmt18/bart.yaml",
        *(f"data.gpt2={bart}", f"data.folder={text}", "device=cpu", *SMALL),
        *("flags.max-source-positions=64", "flags.max-target-positions=64"),
        *("flags.update-freq=1", "flags.batch-size=20", "flags.num-workers=0"),
        *("flags.max-update=600", "flags.total-num-update=2000", "flags.warmup-updates=10"),
        *("flags.dropout=0", "flags.attention-dropout=0", "flags.clip-norm=0"),
        # BLEU, which looks for four words in a row, is 0 here.
        *("flags.patience=null", "flags.best-checkpoint-metric=nll_loss"),
        "flags.maximize-best-checkpoint-metric=null",
        *("train.ce.flags.lr=1e-2", "train.eisl.flags.lr=1e-3", "train.eisl.flags.max-update=30"),
        runs=tmp_path / "runs",
    )
    assert [row["system"] for row in rows] == ["CE", "EISL"]
    pieces = (folder / "encode/test.en").read_text().splitlines()
    assert {len(line.split()) for line in pieces} == {2}
    expected = (text / "test.en").read_text().splitlines()
    for system in ("ce", "eisl"):
        log = read_generation_log(str(folder / f"generate_{system}/test.out"))
        right = [found == words for found, words in zip(log.hypotheses, expected)]
        assert sum(right) >= 8, (system, log.hypotheses, expected)
    # The dictionary of the model is the dictionary of the data.
    for language in ("de", "en"):
        written = (folder / f"preprocess/dict.{language}.txt").read_bytes()
        assert written == (bart / "dict.txt").read_bytes()
    assert "target_length 3 " in (folder / "eisl/log").read_text()


def test_a_teachers_translations_are_trained_on_with_the_same_dictionary(tmp_path):
    text = write_pairs(tmp_path / "text", 4)
    budget = ["max-epoch=1", "validate-interval-updates=2", "save-interval-updates=2"]
    # Several batches an epoch: fairseq names a checkpoint at the end of one by the epoch alone.
    second = ("max-update=2", "save-interval-updates=1", "max-tokens=100")
    few = [f"train.{name}.flags.{t}" for name in ("ce_continued", "eisl") for t in second]
    folder, rows = run(
        "nat/nat_kd_small.yaml",
        *("data.prepare=wmt", "data.options=[en,de]", f"data.folder={text}", "device=cpu"),
        *("data.pieces=none", "data.blank=null", "average=1", *SMALL, *few),
        *(f"train.{name}.flags.{text}" for name in ("teacher", "ce") for text in budget),
        *("teacher_parts=3", "teacher_generate.max-tokens=100"),
        runs=tmp_path / "runs",
    )
    keys = [(r["system"], r["length_candidates"], r["search"]) for r in rows]
    ways = [("1", ""), ("5", ""), ("1", "repeats removed")]
    assert keys == [(s, *way) for s in ("CE", "EISL") for way in ways]
    assert {(r["iterations"], r["targets"]) for r in rows} == {("0", "kd")}
    made, plain = (folder / name for name in ("preprocess_distilled", "preprocess"))
    for language in ("en", "de"):
        name = f"dict.{language}.txt"
        assert (made / name).read_bytes() == (plain / name).read_bytes()
    assert (made / "text/train.en").read_text() == (text / "train.en").read_text()
    logs = [(folder / f"distil_{part}/train.out").read_text().splitlines() for part in range(3)]
    assert all(10 < len([x for x in log if x.startswith("H-")]) < 30 for log in logs)
    translated = (made / "text/train.de").read_text().splitlines()
    both = parse_generation_log(line for log in logs for line in log)
    assert len(translated) == 60 and translated == both.hypotheses
    # A test of the difference for each way to decode.
    with open(folder / "significance.csv", encoding="utf-8", newline="") as f:
        tests = list(csv.DictReader(f))
    assert [(r["system"], r["length_candidates"], r["search"]) for r in tests] == [
        (system, *way) for way in ways for system in ("CE", "EISL")
    ]
    assert "Is it chance?" in (folder / "report.html").read_text()


def test_paths_of_latent_alignments_are_found_in_three_ways(tmp_path):
    """Likelihood, then likelihood, EISL and counts; a row for each search, and a test of each."""
    text = write_pairs(tmp_path / "text", 4)
    names = ("ce_continued", "eisl", "count")
    first = ("max-epoch=1", "validate-interval-updates=2")
    second = ("max-update=2", "save-interval-updates=1", "max-tokens=100")
    folder, rows = run(
        "nat/dag_small.yaml",
        *("data.prepare=wmt", "data.options=[en,de]", f"data.folder={text}", "device=cpu"),
        *("data.pieces=none", "data.blank=null", "average=1", *SMALL),
        *(f"train.{name}.flags.{t}" for name in ("vanilla", "ce") for t in first),
        *(f"train.{name}.flags.{t}" for name in names for t in second),
        runs=tmp_path / "runs",
    )
    ways = ("lookahead", "lookahead, repeats removed", "greedy", "viterbi")
    keys = [(row["system"], row["search"]) for row in rows]
    assert keys == [(s, way) for s in ("likelihood", "EISL", "count") for way in ways]
    with open(folder / "significance.csv", encoding="utf-8", newline="") as f:
        tests = list(csv.DictReader(f))
    assert {(row["system"], row["search"]) for row in tests} == set(keys)
    page = (folder / "report.html").read_text()
    assert "Is it chance?" in page and "viterbi" in page
    # It has begun with what vanilla NAT learnt: all but the transitions is there.
    (log,) = [line for line in (folder / "ce/log").open() if "begins with" in line]
    fresh = log.split("not there: ")[1].split("; not used: ")[0].split(", ")
    assert fresh and all("link" in name or "transition" in name for name in fresh), fresh


@pytest.mark.parametrize("config", ["wmt18/small.yaml", "wmt14/small.yaml"])
def test_wmt_text_goes_through_its_recipe(config, tmp_path):
    sample = SHARED / "wmt_sample"
    if not sample.is_dir():
        pytest.skip(f"{sample}: the sample of WMT is not there")
    text = tmp_path / "text"
    text.mkdir()
    for split, size in (("train", 1500), ("valid", 30), ("test", 30)):
        for language in ("de", "en"):
            lines = (sample / f"{split}.{language}").read_text(encoding="utf-8").split("\n")
            content = "\n".join([*lines[:size], ""])
            (text / f"{split}.{language}").write_text(content, encoding="utf-8")
    names = ("eisl",) if "wmt18" in config else ("ce_continued", "eisl")
    _, rows = run(
        config,
        *(f"data.folder={text}", "device=cpu", "data.vocabulary=1000", *SMALL),
        # Enough for the most frequent words; untrained, a model may say nothing but <unk>.
        *("train.ce.flags.max-update=50", "train.ce.flags.max-epoch=5"),
        *("train.ce.flags.warmup-updates=10", "train.ce.flags.lr=5e-3"),
        *(f"train.{name}.flags.max-update=2" for name in names),
        *(f"train.{name}.flags.save-interval-updates=1" for name in names),
        *(f"train.{name}.flags.validate-interval-updates=2" for name in names),
        *([] if "wmt18" in config else ["average=1"]),
        runs=tmp_path / "runs",
    )
    assert {row["system"] for row in rows} == {"CE", "EISL"}
    assert all(row["sentences"] == "30" and row["test_set"].startswith("WMT") for row in rows)
