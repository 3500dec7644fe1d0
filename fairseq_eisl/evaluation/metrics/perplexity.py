"""How expected the sentences are to a language model."""

import math
import os
from typing import Dict, Sequence

from ..readers.trained_model import batches, load_trained_model
from .registry import Column, Flag, Job, Metric, Signature, register
from .texts import Score, installed_version

_MODEL = Flag(
    "--language-model",
    "CHECKPOINT",
    "of fairseq-train --task language_modeling on plain words, or a folder with the weights of a "
    "GPT-2, for which transformers is needed: adds perplexity",
)


def perplexity(hypotheses: Sequence[str], model: str) -> Score:
    """exp of the mean NLL of the corpus, per word (end symbols are words) of a fairseq model, per
    piece of a word of a GPT-2; the two are different scores.

    Args:
        hypotheses: plain words.
        model: a checkpoint, or a folder of transformers.

    Raises:
        OSError: it cannot be read.
        ValueError: it is no language model, or transformers is not installed.
    """
    return _by_gpt2(hypotheses, model) if os.path.isdir(model) else _by_fairseq(hypotheses, model)


def _by_fairseq(hypotheses: Sequence[str], checkpoint: str) -> Score:
    import torch

    model, task, cfg = load_trained_model(checkpoint)
    if hasattr(model, "encoder") or not hasattr(model, "decoder"):
        raise ValueError(f"{checkpoint}: no language model but {type(model).__name__}")
    dictionary = task.source_dictionary
    total, words = 0.0, 0
    with torch.no_grad():
        for target in batches(hypotheses, dictionary):
            before = torch.cat([target.new_full((len(target), 1), dictionary.eos()), target], 1)
            scores = model.get_normalized_probs(model(before[:, :-1]), log_probs=True)
            real = target.ne(dictionary.pad())
            own = scores.gather(2, target.unsqueeze(2)).squeeze(2)
            total -= own.masked_fill(~real, 0.0).double().sum().item()
            words += int(real.sum())
    about = f"{cfg.model._name}|words:{len(dictionary)}|unit:word+end|seed:{cfg.common.seed}"
    return Score(math.exp(total / words), f"perplexity|{about}")


def _by_gpt2(hypotheses: Sequence[str], folder: str) -> Score:
    try:
        import torch
        from transformers import AutoModelForCausalLM, AutoTokenizer
    except ImportError:
        raise ValueError(
            "a folder of weights needs transformers: pip install transformers"
        ) from None
    try:
        tokenizer = AutoTokenizer.from_pretrained(folder, local_files_only=True)
        model = AutoModelForCausalLM.from_pretrained(folder, local_files_only=True).eval()
    except Exception as err:  # whatever transformers makes of a folder that holds something else
        reason = (str(err).strip().splitlines() or ["no message"])[0][:200]
        raise ValueError(f"{folder}: no language model of transformers: {reason}") from None
    total, pieces = 0.0, 0
    start = tokenizer.bos_token_id
    with torch.no_grad():
        for text in hypotheses:
            ids = torch.tensor([[start, *tokenizer(text)["input_ids"], start]])
            scores = model(ids).logits.log_softmax(2)[:, :-1]
            total -= scores.gather(2, ids[:, 1:].unsqueeze(2)).double().sum().item()
            pieces += ids.size(1) - 1
    name = os.path.basename(os.path.normpath(os.path.abspath(folder)))
    version = installed_version("transformers")
    return Score(
        math.exp(total / pieces), f"perplexity|{name}|unit:piece+end|transformers:{version}"
    )


def _compute(job: Job) -> Dict[str, str]:
    found = perplexity(job.hypotheses, _MODEL.value(job.options) or "")
    return {"perplexity": f"{found.score:.2f}", "perplexity_signature": found.signature}


register(
    Metric(
        "perplexity",
        (Column("perplexity"),),
        _compute,
        Signature("perplexity_signature"),
        said="perplexity {perplexity} ({perplexity_signature})",
        flags=(_MODEL,),
        place=16,
    )
)
