"""Values that fairseq takes, and that would fail or mislead after hours: refused in the plan."""

import csv
import io

import pytest
import torch

from fairseq_eisl.recipes import flag_check
from fairseq_eisl.recipes.command import main
from fairseq_eisl.recipes.commands import build
from fairseq_eisl.recipes.opening import open_recipes
from fairseq_eisl.recipes.schema import load, words
from tests.recipes.conftest import SMOKE
from tests.toy import ROOT

NAT = ROOT / "configs/nat/nat_small.yaml"
KD = ROOT / "configs/nat/nat_kd_small.yaml"
CE, EISL = "train.ce.flags", "train.eisl.flags"

RANGES = [
    ("generate.beam=0", "1 or more"),
    ("generate.max-tokens=0", "1 or more"),
    ("generate.batch-size=-1", "1 or more"),
    ("generate.nbest=2", "at most --beam 1"),
    ("generate.lenpen=nan", "a finite number"),
    ("generate.lenpen=inf", "a finite number"),
    ("generate.temperature=0", "above 0"),
    ("generate.max-len-b=-1", "0 or more"),
    ("generate.sampling-topp=1.5", "up to 1"),
    ("generate.num-workers=-1", "0 or more"),
    (f"{EISL}.lr=-1", "above 0"),
    (f"{EISL}.lr=0", "above 0"),
    (f"{CE}.max-epoch=-3", "0 or more"),
    (f"{EISL}.max-update=-3", "0 or more"),
    ("flags.dropout=2", "0 to 1"),
    ("flags.attention-dropout=-0.1", "0 to 1"),
    ("flags.adam-betas='(0.9, 1.5)'", "two numbers"),
    ("flags.adam-betas=0.9", "two numbers"),
    ("flags.adam-eps=0", "above 0"),
    ("flags.clip-norm=-1", "0 or more"),
    ("flags.weight-decay=-1", "0 or more"),
    ("flags.max-tokens=0", "1 or more"),
    ("flags.max-tokens-valid=0", "1 or more"),
    ("flags.num-workers=-1", "0 or more"),
    ("flags.log-interval=0", "1 or more"),
    ("flags.encoder-layers=0", "1 or more"),
    ("flags.encoder-embed-dim=0", "1 or more"),
    ("flags.decoder-attention-heads=7", "must divide"),
    ("flags.decoder-embed-dim=32", "needs that of"),
    (f"{CE}.update-freq=0", "1 or more"),
    (f"{CE}.update-freq='1,0'", "1 or more"),
    (f"{CE}.warmup-updates=0", "1 or more"),
    (f"{CE}.warmup-updates=-5", "0 or more"),
    (f"{CE}.label-smoothing=1.5", "less than 1"),
    (f"{CE}.patience=-5", "-1 for none"),
    (f"{CE}.keep-interval-updates=-2", "-1 for none"),
    (f"{CE}.validate-interval=0", "1 or more"),
    (f"{CE}.save-interval=0", "1 or more"),
    (f"{CE}.save-interval-updates=-1", "0 or more"),
    ("flags.eval-bleu-args='{\"beam\": 0}'", "1 or more"),
    ("flags.eval-bleu-args=beam", "no JSON"),
    ("preprocess.workers=0", "1 or more"),
]
LATER = [
    ("flags.log-format=tqdm", "simple and json"),
    ("flags.log-format=none", "simple and json"),
    ("flags.no-save=true", "no checkpoint"),
    ("flags.disable-validation=true", "later stages"),
    ("flags.save-async=true", "checkpoint_best.pt"),
    (f"{CE}.best-checkpoint-metric=blue", "does not compute it"),
    (f"{CE}.best-checkpoint-metric=accuracy", "--report-accuracy is needed"),
    ("flags.best-checkpoint-metric=loss", "--maximize-best-checkpoint-metric"),
    ("flags.maximize-best-checkpoint-metric=null", "--maximize-best-checkpoint-metric"),
    (f"{EISL}.validate-after-updates=100", "the training ends before"),
    ("flags.valid-subset=test", "must be among them"),
    ("generate.score-reference=true", "the references"),
    ("flags.stop-min-lr=1e-9", "without an update"),
    (f"{CE}.max-epoch=0", "no end"),
    (f"{CE}.lr='0.1,0.2'", "takes one"),
    ("flags.eval-bleu=no", "true, false or null"),
    ("flags.target-nois=none", "no flag of this command; did you mean --target-noise"),
]
LATENT = [
    ("flags.upsample-scale=0", "--upsample-scale must be 1 or more, not 0"),
    ("flags.glancing-ratio=2", "--glancing-ratio must be a number in"),
    ("flags.jump-scores=-1", "--jump-scores must be 0 or more, not -1"),
]
OWN = [
    *("flags.save-dir=x", "flags.restore-file=x", f"{EISL}.finetune-from-model=x"),
    *("generate.path=x", "generate.gen-subset=valid", "generate.quiet=true"),
    *("generate.results-path=x", "teacher_generate.gen-subset=test", "preprocess.destdir=x"),
    *("flags.checkpoint-suffix=x", "flags.user-dir=x", "generate.num-shards=2"),
    *("generate.distributed-world-size=2", "teacher_generate.distributed-rank=1"),
    "teacher_parts=0",
    *("seed=-1", "noise_seed=-1", f"seed={2**32}", "published.EISL=x", "model_name=''"),
    *("train.ce.system=A=B", "train.ce.system=''", "train.ce.system=-x", "train.ce.system=EISL"),
    *("columns.-x=1", "columns.x=' '", "data.test_set=''", "data.source=../x", "data.target=de"),
    *("flags.distributed-rank=1", "flags.distributed-world-size=2", "gpus=0"),
    *("launcher=[mpirun]", "launcher=[python,-m,torch.distributed.launch]"),
]
WORKERS = '[torchrun,--nproc_per_node,"2",--no-python]'
GLOO = ["distributed-backend=gloo", "ddp-backend=legacy_ddp"]


def refused(capsys, config, *overrides):
    assert main(["plan", str(config), *overrides]) == 2, overrides
    (line,) = capsys.readouterr().err.splitlines()
    return line


@pytest.mark.parametrize("override, message", RANGES + LATER, ids=[t for t, _ in RANGES + LATER])
def test_the_plan_names_key_value_and_range(override, message, capsys, quick_check):
    line = refused(capsys, SMOKE, override)
    key = override.split("=")[0]
    assert message in line and f": {key}: " in line, line


def test_a_best_checkpoint_that_no_epoch_writes_is_refused(capsys, quick_check):
    epochs = [f"{CE}.save-interval-updates=0"]
    for flags in (["validate-interval=4"], ["save-interval=4"], ["validate-interval=2"]):
        settings = [f"{CE}.{flag}" for flag in flags]
        if flags == ["validate-interval=2"]:
            settings.append(f"{CE}.save-interval=3")
        line = refused(capsys, SMOKE, *epochs, *settings)
        assert "no epoch up to --max-epoch 3" in line, line
    open_recipes(str(SMOKE), [[f"{CE}.validate-interval=4"]])  # saves by updates validate, too


@pytest.mark.parametrize("flag, message", LATENT)
def test_what_a_model_refuses_stops_before_what_it_begins_with_trains(capsys, flag, message):
    assert message in refused(capsys, ROOT / "configs/nat/dag_small.yaml", f"train.ce.{flag}")


@pytest.mark.parametrize("override", OWN)
def test_what_a_recipe_gives_itself_is_refused(override, capsys, quick_check):
    line = refused(capsys, SMOKE, override)
    key = override.split("=")[0]
    assert f": {key}: " in line or f": {key.split('.flags')[0]}" in line or "train" in line, line


@pytest.mark.parametrize("device", ["cpu", "auto"])
def test_workers_on_cpus_need_what_finds_each_other_there(device, capsys, quick_check):
    if device == "auto" and torch.cuda.is_available():
        pytest.skip("with a GPU the workers take it")
    line = refused(capsys, SMOKE, f"device={device}", f"launcher={WORKERS}", f"flags.{GLOO[0]}")
    assert "launcher: the workers of torchrun need --distributed-backend gloo --ddp-b" in line


def test_where_the_number_stands_is_named(capsys, quick_check):
    line = refused(capsys, KD, "teacher_generate.beam=0")
    assert ": teacher_generate.beam: --beam 0: 1 or more is needed" in line
    line = refused(capsys, KD, "teacher_generate.beam=0", "teacher_parts=2")
    assert ": teacher_generate.beam: --beam 0: 1 or more is needed" in line
    line = refused(capsys, NAT, "variants.1.flags.iter-decode-with-beam=0")
    assert "columns.length_candidates" in line
    both = ["variants.1.flags.iter-decode-with-beam=0", "variants.1.columns.length_candidates=0"]
    line = refused(capsys, NAT, *both)
    assert ": variants.1.flags.iter-decode-with-beam: --iter-decode-with-beam 0" in line


@pytest.mark.parametrize(
    "overrides, message",
    [
        ([f"{EISL}.max-update=2"], "--max-update 500 or more, or a smaller average"),
        ([f"{EISL}.max-update=450"], "saves 4 until then; set --save-interval-updates 90 or less"),
        ([f"{EISL}.keep-interval-updates=4"], "average: 5 needs 5 or more"),
        ([f"{EISL}.save-interval-updates=0"], "average: 5 needs checkpoints by updates"),
        ([f"{EISL}.save-interval-updates=null"], "average: 5 needs checkpoints by updates"),
        (["average=6"], "average: 6 needs 6 or more"),
        ([f"{EISL}.validate-after-updates=700"], "saves 4 until then"),
    ],
)
def test_an_average_of_more_checkpoints_than_are_saved_is_refused(
    overrides, message, capsys, quick_check
):
    line = refused(capsys, NAT, *overrides)
    assert message in line and "train." in line, line


def test_what_is_right_passes(quick_check):
    for overrides in (
        ["flags.log-format=json"],
        ["generate.beam=4", "generate.nbest=4", "generate.lenpen=-0.5"],
        ["generate.max-len-a=1", "generate.max-len-b=0"],
        [f"{CE}.patience=-1", f"{CE}.keep-last-epochs=-1", f"{CE}.update-freq='1,2'"],
        ["flags.best-checkpoint-metric=loss", "flags.maximize-best-checkpoint-metric=null"],
        ["device=auto", "launcher=[nice,-n,'5']"],
        ["device=cpu", "launcher=[nice,-n,'5']", "gpus=''"],
        [f"launcher={WORKERS}", *(f"flags.{flag}" for flag in GLOO)],
        [f"{CE}.max-epoch=0", f"{CE}.patience=2"],
        ["flags.stop-min-lr=1e-9", "flags.warmup-init-lr=1e-7"],
        ["flags.dropout=0", "flags.clip-norm=0", "seed=0", f"{CE}.label-smoothing=0"],
    ):
        open_recipes(str(SMOKE), [overrides])


@pytest.mark.parametrize("value", ["-1,2", "-1"])
def test_a_value_that_looks_like_a_flag_reaches_fairseq(value, quick_check):
    weight = f"{EISL}.ngram-weight=null"
    ((_, stages),) = open_recipes(str(SMOKE), [[f"{EISL}.ngram={value}", weight]])
    (command,) = [stage for stage in stages if stage.name == "eisl"][0].commands
    assert f"--ngram={value}" in command


def test_a_title_that_looks_like_a_flag_is_one():
    (command,) = [c for c in build(load(str(SMOKE), ["title=-x"]))[-1].commands if "curve" in c]
    assert "--title=-x" in command


def test_flags_are_joined_to_values_that_look_like_flags():
    assert words({"a": "-1,2", "b": -1, "c": "x-y"}) == ["--a=-1,2", "--b=-1", "--c", "x-y"]


def test_braces_in_names_are_kept():
    recipe = load(str(SMOKE), ["train.ce.system=C{E}", "title={x}", "+columns.k={y}"])
    score = build(recipe)[-1]
    folders = {name: name for name in (*score.needs, "out", "root", "score")}
    text = str(score.lines(folders))
    assert "system=C{E}" in text and "--title={x}" in text and "k={y}" in text
    assert "C{E}=ce/log" in text


def test_several_workers_are_refused_without_a_gpu_only():
    command = ["torchrun", "--no-python", "fairseq-train", "data", "--user-dir", "fairseq_eisl"]
    command += ["--task", "noisy_translation", "--arch", "transformer", "--max-tokens", "10"]
    command += ["--max-epoch", "1", "--log-format", "simple", "--lr", "0.1"]
    command[5] = str(ROOT / "fairseq_eisl")
    assert "workers of torchrun need" in flag_check.find_error(command, cuda=False)
    assert flag_check.find_error(command, cuda=True) is None
    flags = [*command[2:], "--distributed-world-size", "2"]
    assert "--distributed-world-size 2" in flag_check.find_error(flags, cuda=False)
    assert flag_check.find_error(flags, cuda=True) is None


def test_the_rows_have_only_new_columns():
    """The settings that the smoke recipe's rows had before are there, and mean the same."""
    commands = [c for c in build(load(str(SMOKE)))[-1].commands if "score" in c]
    for command, system in zip(commands, ("CE", "EISL")):
        pairs = command[command.index("--set") + 1 :]
        found = dict(next(csv.reader(io.StringIO(pair), delimiter="=")) for pair in pairs)
        assert found == {
            **{"system": system, "noise": "repeat:0.5", "seed": "1", "test_set": "toy test"},
            **{"model": "transformer-2x64", "recipe": "smoke_multi30k_repeat50"},
            **{"beam": "1", "lenpen": "1"},
        }
