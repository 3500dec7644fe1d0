"""The benchmarks measure what they say: the same numbers by every system, whole candidates."""

import importlib
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch.nn import functional as F

from fairseq_eisl.common.rows import read_rows
from fairseq_eisl.decoding.fairseq.candidates import decode
from fairseq_eisl.losses import eisl_loss

SCRIPTS = Path(__file__).resolve().parents[1] / "scripts/benchmarks"
CPU = torch.device("cpu")


@pytest.fixture
def script(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPTS))
    return importlib.import_module


@pytest.fixture
def steps(script):
    return script("steps")


def test_the_losses_are_one_loss(script):
    """In place, from features, and as released (without noise): the same value and gradient."""
    losses = script("losses")
    torch.manual_seed(1)
    features, weight = torch.randn(3, 7, 5), torch.randn(40, 5)
    targets = torch.randint(4, 40, (3, 7))
    logits = F.linear(features, weight)

    def result(function, *leaves):
        leaves = [leaf.clone().requires_grad_() for leaf in leaves]
        values = [leaf * 1 for leaf in leaves]  # as of a model
        loss = function(*values, targets, (2, 3))
        return [loss.detach(), *torch.autograd.grad(loss, leaves)]

    same = [result(losses.SYSTEMS[name], logits) for name in ("eisl", "eisl_in_place")]
    torch.testing.assert_close(*same)
    from_features = losses.FEATURES["features_eisl"]
    whole = result(lambda f, w, t, n: losses.eisl(F.linear(f, w), t, n), features, weight)
    torch.testing.assert_close(result(from_features, features, weight), whole)


def test_the_released_way_is_the_loss_with_no_padding(script, monkeypatch):
    losses = script("losses")
    monkeypatch.setattr(F, "gumbel_softmax", lambda x, tau, dim: (x / tau).softmax(dim))
    logits, targets = torch.randn(3, 7, 40), torch.randint(40, (3, 7))
    expected = eisl_loss(logits, targets, ngrams=(1, 3), selection="softmax", reduction="sum")
    torch.testing.assert_close(losses.released(logits, targets, (1, 3)), expected)


def test_candidates_of_the_untrained_model_are_long(steps):
    """One that ends at once would make decoding cost nothing."""
    task = steps.make_task(200)
    model = steps.make_model("ar", task, CPU, torch.float32)
    sample = steps.make_sample("ar", task, 8, 12, CPU)
    d = task.target_dictionary
    found = decode(model, sample, d.pad(), d.eos())
    assert found.tokens.size(1) == 12 and found.mask[:, -1].any()
    assert found.mask.sum(1).float().mean() > 6


def test_the_released_step_decodes_what_we_decode(steps, monkeypatch):
    """Without dropout: its last forward has the logits of our greedy candidate."""
    task = steps.make_task(200)
    model = steps.make_model("ar", task, CPU, torch.float32).eval()
    sample = steps.make_sample("ar", task, 4, 9, CPU)
    d = task.target_dictionary
    seen = []
    monkeypatch.setattr(steps, "released", lambda logits, *_: seen.append(logits))
    steps.released_step((1, 2))(model, sample)
    found = decode(model, sample, d.pad(), d.eos(), at_eos="go_on")
    logits = model.decoder(
        found.prefix, encoder_out=model.encoder(sample["net_input"]["src_tokens"])
    )[0]
    torch.testing.assert_close(seen[0], logits)


def test_the_nat_sample_has_slots_to_fill(steps):
    task = steps.make_task(200)
    model = steps.make_model("nat", task, CPU, torch.float32)
    sample = steps.make_sample("nat", task, 8, 12, CPU)
    net_input = sample["net_input"]
    words = model(
        net_input["src_tokens"], net_input["src_lengths"], sample["prev_target"], sample["target"]
    )["word_ins"]
    assert 0.5 < words["mask"].float().mean() < 0.95
    for name, loss_of in steps.systems("nat", task).items():
        model.zero_grad()
        loss_of(model, sample).backward()
        grad = model.encoder.layers[0].fc1.weight.grad
        assert grad is not None and grad.abs().sum() > 0, name


def run(script, monkeypatch, name, flags):
    monkeypatch.setattr(sys, "argv", [name, *map(str, flags)])
    script(name).main()


@pytest.mark.parametrize(
    "name, flags, systems",
    [
        ("losses", ["--sizes", "2x4x50", "--repeats", "1"], "eisl_in_place released"),
        ("steps", "--kinds ar,nat,exact --batch 2 --length 4 --vocabulary 40 "
            "--repeats 1".split(), "nat_loss exact"),
        ("growth", ["--scale", "0.05", "--repeats", "1"], ""),
        ("latent", ["--sizes", "2x8x4x50", "--repeats", "1"],
            "plain likelihood eisl shared likelihood_in_place eisl_in_place shared_in_place"),
        ("rivals", "--batch 2 --length 4 --vocabulary 40 --repeats 1".split(), "tailr axe"),
    ],
)  # fmt: skip
def test_they_append_rows(tmp_path, script, monkeypatch, capsys, name, flags, systems):
    # Memory is measured in processes of their own, which takes long to start: see below.
    losses = script("losses")
    monkeypatch.setattr(
        losses, "measured_memory", lambda name, *_: 0 if name == "released" else 10_000
    )
    monkeypatch.setattr(script("latent"), "measured_memory", lambda *_: 10_000)
    out = tmp_path / "rows.csv"
    run(script, monkeypatch, name, [*flags, "--out", out])
    rows = read_rows(str(out))
    assert all(row["threads"] and row["torch"] and row["beside"] for row in rows)
    printed = capsys.readouterr().out
    for system in systems.split():
        assert system in [row["system"] for row in rows] and system in printed
    if "growth" in name:
        assert {"exponent of B", "exponent of T", "exponent of V"} <= {row["what"] for row in rows}


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="reads /proc")
def test_memory_is_that_of_the_tensors():
    """Fairseq's cross entropy has log-probabilities and two gradients beside the logits."""
    command = [sys.executable, str(SCRIPTS / "losses.py"), "--sizes", "16x16x8000"]
    done = subprocess.run(
        [*command, "--memory-of", "label_smoothed_cross_entropy"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert 2.5 < int(done.stdout) / (16 * 16 * 8000 * 4) < 3.5


def test_the_busy_process_ends_with_the_benchmark(script, monkeypatch):
    losses, started = script("losses"), []
    real = subprocess.Popen
    monkeypatch.setattr(
        subprocess, "Popen", lambda *a, **k: started.append(real(*a, **k)) or started[-1]
    )
    with pytest.raises(KeyboardInterrupt), losses.beside("busy"):
        assert started[0].poll() is None
        raise KeyboardInterrupt
    assert started[0].poll() is not None


@pytest.mark.parametrize(
    "name, flags, words",
    [
        ("losses", ["--sizes", "2x4"], "--sizes: BxTxV"),
        ("losses", ["--ngrams", "0"], "--ngrams"),
        ("losses", ["--beside", "lazy"], "--beside: choose from none, busy"),
        ("steps", ["--kinds", "arr"], "--kinds: arr is unknown"),
        ("rivals", ["--kinds", "exact"], "--kinds: exact is unknown; choose from ar, nat"),
        ("steps", ["--length", "1"], "--length: 2 or more"),
        ("latent", ["--sizes", "2x4x50"], "--sizes: BxLxSxV"),
        ("latent", ["--kinds", "ar"], "--kinds: ar is unknown; choose from ctc, dag, paths"),
        ("growth", ["--scale", "0.01"], "--scale: 0.05 to 10 is needed, not 0.01"),
    ],
)
def test_wrong_flags_are_named(script, monkeypatch, capsys, name, flags, words):
    with pytest.raises(SystemExit) as stopped:
        run(script, monkeypatch, name, flags)
    assert words in f"{stopped.value} {capsys.readouterr().err}"
