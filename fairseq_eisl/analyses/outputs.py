"""What a trained model says on its candidate, or on the target, and EISL of it."""

from typing import Any, List, NamedTuple, Tuple

import torch
from torch import Tensor

from ..criterions import model_outputs
from ..criterions.cross_entropy import cross_entropy
from ..decoding import Candidates
from ..decoding.fairseq.candidates import decode, teacher_forced
from ..losses import EISLOptions, EISLTerms, eisl_log_prob_terms
from .sentences import Sample
from .trained import Trained


class Output(NamedTuple):
    """One forward on a candidate."""

    log_probs: Tensor
    """(B, T, V) in nats."""
    candidates: Candidates
    targets: Tensor
    """(B, S) int64."""
    target_mask: Tensor
    """(B, S) bool, True for real tokens."""

    def terms(self, options: EISLOptions) -> EISLTerms:
        """EISL of the targets, which the position selection takes without noise."""
        return eisl_log_prob_terms(
            self.log_probs,
            self.targets,
            output_mask=self.candidates.mask,
            target_mask=self.target_mask,
            options=options.without_noise(),
        )

    def token_log_probs(self) -> Tensor:
        """(B, T, S) log-probability of each target token at each position."""
        targets = self.targets.masked_fill(~self.target_mask, 0)
        index = targets.unsqueeze(1).expand(-1, self.log_probs.size(1), -1)
        return self.log_probs.gather(2, index)


def on_candidate(trained: Trained, sample: Sample, after_eos: bool = False) -> Output:
    """The model on its own greedy output, as EISL is trained."""
    symbols = trained.task.target_dictionary
    at_eos = "go_on" if after_eos else "end"
    found = decode(trained.model, sample, symbols.pad(), symbols.eos(), at_eos=at_eos)
    return forward(trained, sample, found)


def on_target(trained: Trained, sample: Sample, prefix_of: Sample) -> Output:
    """The model on the targets of ``prefix_of``, beside the targets of ``sample``: of the same
    sources, in the same order."""
    assert torch.equal(sample["id"], prefix_of["id"])
    pad = trained.task.target_dictionary.pad()
    return forward(trained, sample, teacher_forced(prefix_of, pad))


def forward(trained: Trained, sample: Sample, candidates: Candidates) -> Output:
    """One forward on candidates."""
    dictionary = trained.task.target_dictionary
    net_input = {**sample["net_input"], "prev_output_tokens": candidates.prefix}
    scores = model_outputs.run(trained.model, net_input, len(dictionary))
    target = sample["target"]
    return Output(scores.log_probs(), candidates, target, target.ne(dictionary.pad()))


def token_nll(trained: Trained, sample: Sample) -> Tensor:
    """(B,) cross entropy of the targets in nats, summed over their tokens."""
    dictionary = trained.task.target_dictionary
    scores = model_outputs.run(trained.model, sample["net_input"], len(dictionary))
    return cross_entropy(scores, sample["target"], 0.0, dictionary.pad())[1]


@torch.no_grad()
def mean_losses(
    trained: Trained, batches: Any, options: List[EISLOptions], after_eos: bool = False
) -> Tuple[float, List[float]]:
    """Cross entropy a token, and EISL a sentence for each of the ``options``, in nats."""
    nll = tokens = sentences = 0.0
    eisl = [0.0] * len(options)
    pad = trained.task.target_dictionary.pad()
    for sample in batches:
        nll += float(token_nll(trained, sample).sum())
        tokens += int(sample["target"].ne(pad).sum())
        sentences += len(sample["target"])
        output = on_candidate(trained, sample, after_eos)
        for place, chosen in enumerate(options):
            eisl[place] += float(output.terms(chosen).total().double().sum())
    return nll / tokens, [value / sentences for value in eisl]
