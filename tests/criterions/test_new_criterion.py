"""A new criterion is one short file: it trains on both kinds of models through fairseq-train."""

import re

import pytest

from tests import toy as toy_corpus

# A whole plugin, used as --user-dir: the loss of the likeliest token at each position.
PLUGIN = '''
from dataclasses import dataclass, field
from fairseq.criterions import register_criterion
import fairseq_eisl
from fairseq_eisl.criterions.base import SequenceCriterion
from fairseq_eisl.criterions.candidate_flags import CandidateCriterionConfig
from fairseq_eisl.criterions.idle_flags import FlagGroups

@dataclass
class SharpnessConfig(CandidateCriterionConfig):
    sharpness_factor: float = field(default=1.0, metadata={"help": "factor of the sharpness"})

@register_criterion("sharpness", dataclass=SharpnessConfig)
class Sharpness(SequenceCriterion):
    """Mean negative log-probability of the likeliest token, over the candidate's positions."""

    flag_groups = FlagGroups(factor="sharpness_factor")

    def sequence_losses(self, output):
        best = output.log_probs().max(2).values.masked_fill(~output.mask, 0.0).sum(1)
        return -best / output.mask.sum(1).clamp(min=1), {}
'''
NAT = "cmlm_transformer"


@pytest.fixture(scope="module")
def plugin(tmp_path_factory):
    folder = tmp_path_factory.mktemp("plugin") / "sharpness_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text(PLUGIN)
    return str(folder)


def test_it_is_short():
    assert len(PLUGIN.strip().splitlines()) <= 25


@pytest.mark.parametrize("arch", ["transformer", NAT])
def test_it_trains(toy, plugin, tmp_path, arch):
    code, output = toy_corpus.train(
        *(toy.bin, tmp_path, "--user-dir", plugin, "--criterion", "sharpness"),
        *("--max-update", "12", "--log-interval", "4", "--sharpness-factor", "2"),
        *(
            "--ce-factor",
            "0.5",
            "--task",
            "noisy_translation_lev" if arch == NAT else "noisy_translation",
        ),
        arch=arch,
    )
    assert code == 0, output[-2000:]
    assert (tmp_path / "checkpoint_best.pt").is_file()
    shown = [float(value) for value in re.findall(r"sharpness[ =]([\d.]+)", output)]
    assert len(shown) >= 3 and shown[-1] != shown[0], output[-2000:]
    assert re.search(r"\| ce [\d.]+", output) and "repetition" in output


def test_it_may_say_which_models_it_fits(toy, plugin, tmp_path):
    kinds = '    kinds = ("autoregressive",)\n\n'
    narrow = PLUGIN.replace("    flag_groups", kinds + "    flag_groups", 1)
    folder = tmp_path / "narrow_plugin"
    folder.mkdir()
    (folder / "__init__.py").write_text(narrow.replace('"sharpness"', '"narrow"'))
    code, output = toy_corpus.train(
        *(toy.bin, tmp_path / "save", "--user-dir", str(folder), "--criterion", "narrow"), arch=NAT
    )
    assert code and "--criterion narrow trains autoregressive models" in output, output[-2000:]
    assert "choose from nat_loss, " in output and " eisl, " in output


def test_a_subclass_of_a_registered_one_has_its_name_and_flags(toy):
    made = toy_corpus.setup(toy.bin)

    class Mine(type(made.criterion)):
        """Not registered."""

    mine = Mine(made.cfg.criterion, made.task)
    assert mine.name() == "eisl" and "eisl_\\w+" in mine.validated()
    loss, _, log = mine(made.model, made.sample(["w1 w2"]))
    mine.reduce_metrics([log])
    assert loss.isfinite() and "eisl" in log


def test_nothing_to_train_on_is_said_before_any_training(toy, plugin, tmp_path):
    code, output = toy_corpus.train(
        *(toy.bin, tmp_path, "--user-dir", plugin, "--criterion", "sharpness"),
        *("--sharpness-factor", "0", "--task", "noisy_translation"),
    )
    assert code and "--sharpness-factor and --ce-factor are both 0: nothing to train on" in output


def test_too_many_positions_are_said(toy):
    made = toy_corpus.setup(toy.bin, arch=NAT)
    forward = type(made.model).forward

    def twice(self, *inputs, **named):
        outputs = forward(self, *inputs, **named)
        outputs["word_ins"]["out"] = outputs["word_ins"]["out"].repeat_interleave(2, 1)
        return outputs

    made.model.__class__ = type("Upsampled", (type(made.model),), {"forward": twice})
    with pytest.raises(ValueError, match="needs a slot for every target token .* 8 positions"):
        made.criterion(made.model, made.sample(["w1 w2"]))
