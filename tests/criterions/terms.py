"""A teacher for the tests of NAT-REG and hints, and flags that switch every term on."""

import torch
from omegaconf import OmegaConf

from tests import toy as toy_corpus

NAT, INAT, CMLM = (
    *("nonautoregressive_transformer", "iterative_nonautoregressive_transformer"),
    "cmlm_transformer",
)
# At thresholds that every pair of an untrained model passes.
EVERY = {"hint_student_threshold": -1.0, "hint_teacher_threshold": 1.0}
FACTORS = {"nat_reg_factor": 2.0, "hint_hidden_factor": 5.0, "hint_align_factor": 1.0}
NAMES = ("nat_reg", "hint_hidden", "hint_align")


def save_teacher(data, path, *flags, arch="transformer"):
    """A checkpoint as fairseq-train writes it; its model."""
    criterion = "nat_loss" if arch in toy_corpus.NAT_ARCHS else "cross_entropy"
    made = toy_corpus.setup(data, *flags, arch=arch, criterion=criterion, seed=9, scale=2)
    cfg = OmegaConf.to_container(made.cfg, resolve=True, enum_to_str=True)
    history = {"optimizer_name": "FairseqAdam", "lr_scheduler_state": {}, "num_updates": 1}
    state = {
        **{"args": None, "cfg": cfg, "model": made.model.state_dict()},
        **{"optimizer_history": [history], "extra_state": {"train_iterator": {}}},
    }
    torch.save(state, path)
    return made.model.eval()


def options(path, **more):
    """Fields of the criterion that switch every term on."""
    return {"hint_teacher": str(path), **FACTORS, **EVERY, **more}
