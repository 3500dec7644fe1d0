"""How many sentences have the style that they should have, as a classifier of its own says."""

from typing import Dict, Sequence

from ...common.errors import naming
from ...common.files import read_lines
from ..readers.trained_model import batches, load_trained_model
from .registry import Column, Flag, Job, Metric, Signature, register
from .texts import Score, check_pairs

_CLASSIFIER = Flag(
    "--style-classifier",
    "CHECKPOINT",
    "of fairseq-train --arch style_classifier, trained on the training set and on nothing of what "
    "is scored: adds accuracy; needs --wanted-styles",
)
_WANTED = Flag(
    "--wanted-styles", "FILE", "the name of the style that each sentence should have, one a line"
)


def accuracy(hypotheses: Sequence[str], wanted: Sequence[str], checkpoint: str) -> Score:
    """Percentage (0 to 100) of the sentences that the classifier takes for their wanted style.

    Raises:
        OSError: the checkpoint cannot be read.
        ValueError: it is no classifier of styles; unequal counts; a style that it does not know.
    """
    import torch

    if len(wanted) != len(hypotheses):
        raise ValueError(
            f"{_WANTED.name} has {len(wanted)} lines for {len(hypotheses)} hypotheses: one for "
            "each is needed"
        )
    check_pairs(hypotheses, wanted)
    model, task, cfg = load_trained_model(checkpoint)
    if not hasattr(model, "network"):
        raise ValueError(f"{checkpoint}: no classifier (--arch style_classifier) but "
                         f"{type(model).__name__}")  # fmt: skip
    unknown = sorted(set(wanted) - set(task.styles))
    if unknown:
        raise ValueError(
            f"{_WANTED.name}: {unknown[0]!r} is no style of the classifier; it knows "
            f"{', '.join(task.styles)}"
        )
    with torch.no_grad():
        found = [
            task.styles[style]
            for tokens in batches(hypotheses, task.source_dictionary)
            for style in model(tokens).argmax(1).tolist()
        ]
    right = sum(ours == theirs for ours, theirs in zip(found, wanted))
    size = f"{cfg.model.classifier_widths.replace(',', '-')}x{cfg.model.classifier_channels}"
    return Score(
        100.0 * right / len(wanted),
        f"accuracy|cnn:{size}|styles:{','.join(task.styles)}|seed:{cfg.common.seed}",
    )


def _compute(job: Job) -> Dict[str, str]:
    path = _WANTED.value(job.options)
    if not path:
        raise ValueError(f"needs {_WANTED.name} FILE")
    with naming(f"{_WANTED.name} {path}", path):
        wanted = read_lines(path)
        if len(wanted) != len(job.hypotheses):
            raise ValueError(f"{len(wanted)} lines for the {len(job.hypotheses)} hypotheses")
    found = accuracy(job.hypotheses, wanted, _CLASSIFIER.value(job.options) or "")
    return {"accuracy": f"{found.score:.2f}", "accuracy_signature": found.signature}


register(
    Metric(
        "accuracy",
        (Column("accuracy", "accuracy, %"),),
        _compute,
        Signature("accuracy_signature"),
        said="accuracy {accuracy} % ({accuracy_signature})",
        flags=(_CLASSIFIER, _WANTED),
        place=12,
    )
)
