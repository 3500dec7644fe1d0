"""A model that fairseq-train has saved, for metrics that a model computes."""

import os
from typing import Any, Iterator, List, Sequence, Tuple

BATCH = 64


def load_trained_model(path: str) -> Tuple[Any, Any, Any]:
    """(model in evaluation mode, its task, its configuration).

    Raises:
        OSError: the file cannot be read.
        ValueError: no checkpoint, or the data that it was trained on, which has its dictionary,
            is no longer there or no longer the same.
    """
    with open(path, "rb"):
        pass
    from fairseq import checkpoint_utils

    state = checkpoint_utils.load_checkpoint_to_cpu(path)
    if state.get("cfg") is None:
        raise ValueError(f"{path}: no checkpoint of this fairseq: it has no configuration")
    data = str(state["cfg"]["task"].get("data", ""))
    if not os.path.isdir(data):
        raise ValueError(
            f"{path}: it was trained on {data}, which is not there; its dictionary is needed"
        )
    try:
        models, cfg, task = checkpoint_utils.load_model_ensemble_and_task([path], state=state)
    except RuntimeError as err:
        if "size mismatch" not in str(err):  # torch's words for weights of another shape
            raise
        raise ValueError(
            f"{path}: its weights do not fit the dictionary in {data}, which has changed since"
        ) from err
    return models[0].eval(), task, cfg


def batches(texts: Sequence[str], dictionary: Any) -> Iterator[Any]:
    """The texts in order, as (B, S) ids with end symbols, padded on the right."""
    from fairseq.data import data_utils

    encoded: List[Any] = [
        dictionary.encode_line(text, add_if_not_exist=False, append_eos=True).long()
        for text in texts
    ]
    for start in range(0, len(encoded), BATCH):
        yield data_utils.collate_tokens(encoded[start : start + BATCH], dictionary.pad())
