"""Style transfer in this process: a corpus of two styles, its task, model and criterion."""

from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import torch

from tests import toy

STYLES = ["-s", "bad", "-t", "good"]
TASK = ["--task", "style_transfer"]
SMALL = [
    *("--embed-dim", "12", "--hidden-size", "20", "--style-size", "6", "--lm-hidden-size", "14"),
    *("--classifier-channels", "8", "--dropout", "0"),
]
SIZES = {"train": (60, 90), "valid": (8, 10), "test": (6, 7)}
NOUNS = [f"noun{i}" for i in range(8)]
ADJECTIVES = {"bad": ["awful", "nasty", "poor"], "good": ["great", "lovely", "fine"]}


def write_styles(folder: Path) -> None:
    """``folder/SPLIT.{bad,good}``: what a noun is, in words of the style; unequal line counts."""
    rng = Random(5)
    folder.mkdir(parents=True, exist_ok=True)
    for split, sizes in SIZES.items():
        for (style, words), size in zip(ADJECTIVES.items(), sizes):
            lines = [
                f"the {rng.choice(NOUNS)} {rng.choice(['is', 'was'])} {rng.choice(words)}"
                + rng.choice(["", " .", f" and the {rng.choice(NOUNS)} {rng.choice(words)} ."])
                for _ in range(size)
            ]
            (folder / f"{split}.{style}").write_text("".join(f"{line}\n" for line in lines))


def preprocess(raw: Path, bin_dir: Path, *flags: str):
    """Stock ``fairseq-preprocess`` of :func:`write_styles`: (return code, output)."""
    splits = [word for split in SIZES for word in (f"--{split}pref", str(raw / split))]
    return toy.run_cli(
        *("fairseq-preprocess", *STYLES, *splits, "--destdir", str(bin_dir)),
        *(flags or ["--joined-dictionary"]),
    )


class Made(NamedTuple):
    """What ``fairseq-train`` builds."""

    task: Any
    model: Any
    criterion: Any
    cfg: Any

    def sample(self, *indices: int, split: str = "valid"):
        """Sentences of a split as a batch; all, where none is named."""
        dataset = self.task.datasets[split]
        chosen = indices or range(len(dataset))
        return dataset.collater([dataset[i] for i in chosen])


def build(data, seed: int = 3, criterion: str = "style_transfer", flags=(), **options) -> Made:
    """Task, model (in training mode, without dropout) and criterion; ``options`` are fields of the
    criterion."""
    from fairseq import tasks

    arch = "style_transfer"
    cfg = toy.parse(str(data), *TASK, *SMALL, "--criterion", criterion, *flags, arch=arch)
    task = tasks.setup_task(cfg.task)
    task.load_dataset("valid")
    torch.manual_seed(seed)
    model = task.build_model(cfg.model).train()
    with torch.no_grad():
        for parameter in model.parameters():
            parameter.mul_(2.0)  # an output with structure
    chosen = cfg.criterion.copy()
    chosen.update(options)
    return Made(task, model, task.build_criterion(chosen).train(), cfg)


def mark_nouns(task):
    """Content words without a tagger: the corpus says what its nouns are."""

    def nouns(tokens):
        return torch.tensor([task.dictionary[t].startswith("noun") for t in tokens.tolist()])

    for dataset in task.datasets.values():
        dataset.content_words = nouns
