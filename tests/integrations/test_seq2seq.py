"""EISLTrainer on tiny BART and T5."""

import copy
import subprocess
import sys
from itertools import product

import pytest
import torch
from torch.nn import functional

from fairseq_eisl.integrations.huggingface.loss_function import target_seeds
from fairseq_eisl.losses import eisl_loss
from tests.integrations.conftest import (
    AT_EOS,
    EOS,
    MODELS,
    PAD,
    assert_same_gradients,
    collate,
    enlarge,
    greedy,
    needs_hugging_face,
    one_update,
    pairs,
)
from tests.toy import ROOT, environment

pytestmark = needs_hugging_face
BATCHES = [(8, {}), (2, {}), (1, {}), (8, {"gradient_checkpointing": True})]


@pytest.fixture
def trainer(training_arguments):
    """A trainer of a new model; ``data`` are the eight pairs."""
    from fairseq_eisl.integrations.huggingface import EISLConfig, EISLTrainer

    def make(model="bart", kind=EISLTrainer, config=EISLConfig, rows=8, **more):
        model = MODELS[model]() if isinstance(model, str) else model
        return kind(
            model=model,
            args=training_arguments(config, rows, **more),
            train_dataset=pairs(),
            eval_dataset=pairs(),
            data_collator=collate,
        )

    return make


# -- the gradient --------------------------------------------------------------------------


@pytest.mark.parametrize("decoding, name", product(["greedy", "teacher-forcing"], ["bart", "t5"]))
def test_the_gradient_does_not_depend_on_how_a_batch_is_split(trainer, decoding, name):
    """8x1, 4x2 and 1x8, and with gradient checkpointing; with the selection's noise."""
    found = [
        one_update(
            trainer(name, rows=rows, ngram=[1, 2], ce_factor=0.3, train_decoding=decoding, **more)
        )
        for rows, more in BATCHES
    ]
    for update in found[1:]:
        assert_same_gradients(update.grads, found[0].grads)
        for key in ("loss", "eisl", "eisl_1", "eisl_2", "nll", "candidate_length", "repetition"):
            assert update.log[key] == pytest.approx(found[0].log[key], rel=1e-4), key
    assert max(grad.abs().max() for grad in found[0].grads.values()) > 1e-3


def test_the_gradient_is_that_of_the_loss_by_hand(trainer):
    """Greedy candidates without a cache, each sentence alone, weighted by its labels."""
    model = MODELS["bart"]()
    update = one_update(trainer(copy.deepcopy(model), ngram=[1, 2], position_selection="softmax"))
    total, labels = 0.0, 0
    for pair in pairs():
        source, target = torch.tensor([pair["input_ids"]]), torch.tensor([pair["labels"]])
        said = greedy(
            lambda tokens, source=source: model(
                input_ids=source, decoder_input_ids=torch.tensor([tokens])
            ).logits[0, -1],
            [model.config.decoder_start_token_id],
            len(pair["labels"]),
        )
        before = torch.tensor([[model.config.decoder_start_token_id, *said[:-1]]])
        logits = model(input_ids=source, decoder_input_ids=before).logits
        loss = eisl_loss(logits, target, ngrams=(1, 2), selection="softmax")
        total, labels = total + loss * len(pair["labels"]), labels + len(pair["labels"])
    (total / labels).backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert_same_gradients(update.grads, grads)
    assert update.log["loss"] == pytest.approx((total / labels).item(), rel=1e-3)


def forced_nll(model, batch):
    logits = model(**batch).logits
    return functional.cross_entropy(
        logits.transpose(1, 2), batch["labels"], ignore_index=-100, reduction="sum"
    )


def test_the_cross_entropy_twin_is_scaled_rightly_and_the_stock_trainer_is_not(trainer):
    """The claim of the docstring of EISLTrainer: with four parts, BART's own loss is four times
    too large. Should a new transformers mend it, that claim must go."""
    from transformers import Seq2SeqTrainer, Seq2SeqTrainingArguments

    model, batch = MODELS["bart"](), collate(pairs())
    (forced_nll(model, batch) / batch["labels"].ne(-100).sum()).backward()
    expected = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    for rows in (8, 2):
        update = one_update(trainer(rows=rows, ngram_factor=0.0, ce_factor=1.0))
        assert_same_gradients(update.grads, expected)
        assert "eisl" not in update.log
    stock = one_update(trainer(rows=2, kind=Seq2SeqTrainer, config=Seq2SeqTrainingArguments))
    norm = {k: sum(float(g.norm()) for g in v.values()) for k, v in
            (("stock", stock.grads), ("right", expected))}  # fmt: skip
    assert 3.0 < norm["stock"] / norm["right"] < 5.0


def test_label_smoothing_is_of_the_cross_entropy(trainer):
    update = one_update(trainer(ngram_factor=0.0, ce_factor=1.0, label_smoothing_factor=0.2))
    model, batch = MODELS["bart"](), collate(pairs())
    loss = functional.cross_entropy(
        model(**batch).logits.transpose(1, 2), batch["labels"], label_smoothing=0.2
    )
    assert update.log["loss"] == pytest.approx(loss.item(), rel=1e-3)
    assert update.log["nll"] < update.log["loss"]


WORKER = """
import json, sys
import torch
from fairseq_eisl.integrations.huggingface import EISLConfig, EISLTrainer
from tests.integrations.conftest import MODELS, collate, one_update, pairs
args = EISLConfig(output_dir=sys.argv[1], per_device_train_batch_size=2, max_steps=1,
    gradient_accumulation_steps=2, max_grad_norm=0.0, logging_steps=1, save_strategy="no",
    report_to=[], use_cpu=True, disable_tqdm=True, seed=1, ngram=[1, 2], ce_factor=0.3,
    ddp_backend="gloo", eval_strategy="steps", eval_steps=1, per_device_eval_batch_size=2)
trainer = EISLTrainer(model=MODELS["bart"](), args=args, train_dataset=pairs(),
    eval_dataset=pairs(), data_collator=collate)
update = one_update(trainer)
assert args.world_size == 2
if args.process_index == 0:
    grads = {name.removeprefix("module."): grad for name, grad in update.grads.items()}
    log = {**update.log, **trainer.state.log_history[1]}
    torch.save({"grads": grads, "log": log}, sys.argv[2])
"""


def test_two_processes_train_as_one_does(trainer, tmp_path):
    """Under torchrun with gloo, two sentences at once in two parts each; metrics are of both."""
    (tmp_path / "worker.py").write_text(WORKER)
    command = [sys.executable, "-m", "torch.distributed.run", "--standalone", "--nproc-per-node=2"]
    done = subprocess.run(
        [*command, tmp_path / "worker.py", tmp_path / "out", tmp_path / "found.pt"],
        env={**environment(), "PYTHONPATH": str(ROOT)},
        cwd=tmp_path,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr[-3000:]
    found = torch.load(tmp_path / "found.pt")
    whole = trainer(
        ngram=[1, 2], ce_factor=0.3, eval_strategy="steps", eval_steps=1, learning_rate=5e-5
    )
    update = one_update(whole)
    assert_same_gradients(found["grads"], update.grads)
    log = {**update.log, **whole.state.log_history[1]}
    for key in ("loss", "eisl", "nll", "target_length", "candidate_length", "repetition"):
        assert found["log"][key] == pytest.approx(log[key], rel=1e-3), key
        if key != "loss":  # of which every trainer takes the mean of batches
            assert found["log"][f"eval_{key}"] == pytest.approx(log[f"eval_{key}"], rel=1e-3), key


# -- the candidate -------------------------------------------------------------------------


def said(trainer, batch):
    """The candidates of a batch, without what does not count."""
    candidate = trainer.candidate(trainer.read_batch(batch), sample=False)
    return [row[mask].tolist() for row, mask in zip(*candidate)]


@pytest.mark.parametrize("at_eos, name", product(AT_EOS, ["bart", "t5"]))
def test_a_greedy_candidate_is_the_likeliest_token_each_time(trainer, name, at_eos):
    """Up to the end symbol or the target's length, in a batch as alone, and whatever the model's
    settings for generation are."""
    # With these weights some candidates end before their target's length.
    model = enlarge(MODELS[name](), seed={"bart": 5, "t5": 11}[name]).eval()
    start = model.config.decoder_start_token_id
    expected = []
    for pair in pairs():
        source = torch.tensor([pair["input_ids"]])
        expected.append(
            greedy(
                lambda tokens, source=source: model(
                    input_ids=source, decoder_input_ids=torch.tensor([tokens])
                ).logits[0, -1],
                [start],
                len(pair["labels"]),
                at_eos,
            )
        )
    assert len({len(tokens) for tokens in expected}) > 2 and len(set(map(tuple, expected))) > 4
    shorter = [len(said) < len(pair["labels"]) for said, pair in zip(expected, pairs())]
    assert any(shorter) == (at_eos == "end")
    assert any(EOS in tokens[:-1] for tokens in expected) == (at_eos == "go_on")
    made = trainer(copy.deepcopy(model), **AT_EOS[at_eos])
    assert said(made, collate(pairs())) == expected
    assert [said(made, collate([pair]))[0] for pair in pairs()] == expected
    own = made.model.generation_config
    own.num_beams, own.min_length, own.no_repeat_ngram_size, own.forced_eos_token_id = 3, 6, 1, EOS
    assert said(made, collate(pairs())) == expected
    own.max_new_tokens, own.max_length, own.min_new_tokens = 2, 3, 5
    assert said(made, collate(pairs())) == expected
    own.exponential_decay_length_penalty, own.guidance_scale = (0, 50.0), 3.0
    own.max_time, own.stop_strings, own.penalty_alpha = 1e-6, ["x"], 0.6
    planted = []  # what a wrapper such as PEFT's hands on to the model in it
    decode = made.model.generate
    made.model.generate = lambda **inputs: (
        planted.append(made.model.generation_config) or decode(**inputs)
    )
    assert said(made, collate(pairs())) == expected
    assert planted == [own] and planted[0] is own is made.model.generation_config
    assert own.eos_token_id == EOS and own.stop_strings == ["x"] and own.max_time == 1e-6


def test_a_sampled_candidate_is_drawn_in_training_only(trainer):
    made = trainer(train_decoding="sample")
    batch = made.read_batch(collate(pairs()))
    torch.manual_seed(5)
    own = made.model.generation_config
    for name in ("min_p", "epsilon_cutoff", "eta_cutoff", None):  # each leaves the likeliest one
        draws = [made.candidate(batch, sample=True).tokens for _ in range(2)]
        assert draws[0].shape != draws[1].shape or not torch.equal(*draws)
        if name is not None:
            setattr(own, name, 0.99)
    assert not torch.cat([d.flatten() for d in draws]).eq(PAD)[:3].any()
    made.model.eval()
    one, two = (made.compute_loss(made.model, collate(pairs())) for _ in range(2))
    assert torch.equal(one, two)


def test_decoding_leaves_the_mode_and_no_gradient(trainer):
    made = trainer()
    made.model.train()
    candidate = made.candidate(made.read_batch(collate(pairs())), sample=False)
    assert made.model.training and not candidate.tokens.requires_grad


def test_candidates_are_decoded_every_so_many_updates(trainer, monkeypatch):
    made = trainer(rows=4, decoding_interval=2, max_steps=5)
    calls = []
    candidate = made.candidate
    monkeypatch.setattr(
        made,
        "candidate",
        lambda *a, **k: calls.append(made.state.global_step) or candidate(*a, **k),
    )
    made.train()
    assert calls == [0, 0, 2, 2, 4, 4]  # two parts of a batch each
    lengths = [log["candidate_length"] for log in made.state.log_history[:5]]
    assert lengths[1] == lengths[3] == made.state.log_history[0]["target_length"]


# -- evaluation ----------------------------------------------------------------------------


def test_evaluation_counts_labels_and_has_no_noise(trainer):
    made = trainer(rows=3, ngram=[1, 2], train_decoding="sample")
    metrics = made.evaluate()
    assert made.evaluate()["eval_loss"] == metrics["eval_loss"]
    model, batch = MODELS["bart"]().eval(), collate(pairs())
    labels = batch["labels"].ne(-100).sum()
    assert metrics["eval_nll"] == pytest.approx(
        (forced_nll(model, batch) / labels).item(), rel=1e-4
    )
    whole = trainer(ngram=[1, 2], position_selection="softmax")
    assert metrics["eval_eisl"] == pytest.approx(whole.evaluate()["eval_loss"], rel=1e-4)
    assert metrics["eval_target_length"] == labels / 8


@pytest.mark.parametrize("counts", [None, 10, torch.tensor(10)])
def test_a_loss_with_and_without_the_number_of_labels(trainer, counts):
    made = trainer()
    made.model.eval()
    batch = collate(pairs())
    mean = made.compute_loss(made.model, dict(batch))
    found = made.compute_loss(made.model, dict(batch), num_items_in_batch=counts)
    labels = int(batch["labels"].ne(-100).sum())
    torch.testing.assert_close(found, mean * (1 if counts is None else labels / 10))


def test_generated_predictions_have_the_loss_beside_them(trainer):
    """Which Seq2SeqTrainer would take from the model."""
    plain = trainer(rows=3).evaluate()
    made = trainer(rows=3, predict_with_generate=True, generation_max_length=12)
    shapes = []
    made.compute_metrics = lambda p: shapes.append((p.predictions.shape, p.label_ids.shape)) or {}
    assert made.evaluate()["eval_loss"] == pytest.approx(plain["eval_loss"])
    predictions, labels = shapes[0]
    assert predictions[0] == labels[0] == 8
    outputs = made.predict(pairs())
    assert outputs.metrics["test_loss"] == pytest.approx(plain["eval_loss"])
    assert outputs.metrics["test_eisl"] == pytest.approx(plain["eval_eisl"])
    assert (outputs.label_ids == -100).any()


def test_logits_of_evaluation_are_those_of_the_targets(trainer):
    """What compute_metrics may take an accuracy of."""
    made = trainer()
    outputs = made.predict(pairs())
    logits = outputs.predictions[0]
    expected = MODELS["bart"]().eval()(**collate(pairs())).logits.detach().numpy()
    assert logits.shape == expected.shape and abs(logits - expected).max() < 1e-3


def test_padding_changes_nothing(trainer):
    made = trainer()
    made.model.eval()
    batch = collate(pairs())
    wide = dict(batch)
    wide["labels"] = functional.pad(batch["labels"], (0, 5), value=-100)
    wide["input_ids"] = functional.pad(batch["input_ids"], (0, 3), value=PAD)
    wide["attention_mask"] = functional.pad(batch["attention_mask"], (0, 3))
    torch.testing.assert_close(
        made.compute_loss(made.model, wide), made.compute_loss(made.model, batch)
    )


def test_a_batch_without_labels_to_learn_is_an_attached_zero(trainer):
    made = trainer(ce_factor=0.5)
    batch = collate(pairs())
    batch["labels"] = torch.full_like(batch["labels"], -100)
    for counts in (None, 7):
        loss = made.compute_loss(made.model.train(), dict(batch), num_items_in_batch=counts)
        assert loss.item() == 0 and loss.requires_grad


def test_noise_does_not_know_on_which_side_labels_are_padded():
    labels = torch.tensor([[4, 5, 6]])
    found = []
    for before, after in ((0, 0), (1, 0), (3, 2)):
        targets = functional.pad(labels, (before, after), value=-100)
        found.append(target_seeds(targets, targets.ne(-100), 1).item())
    assert found[0] == found[1] == found[2]


def test_noise_belongs_to_a_sentence_and_an_update():
    targets = torch.tensor([[4, 5, 6], [4, 5, 6], [4, 6, 5]])
    mask = torch.ones_like(targets).bool()
    one, two, three = target_seeds(targets, mask, 1, 0).tolist()
    assert one == two != three
    assert (
        one != target_seeds(targets, mask, 1, 1)[0] and one != target_seeds(targets, mask, 2, 0)[0]
    )


# -- what is refused -----------------------------------------------------------------------


def test_what_does_not_fit_is_refused(trainer, training_arguments):
    from transformers import Seq2SeqTrainingArguments

    from fairseq_eisl.integrations.huggingface import EISLConfig, EISLTrainer

    with pytest.raises(ValueError, match="EISLSFTTrainer is for decoder-only .* GPT2LMHeadModel"):
        trainer("gpt2")
    with pytest.raises(ValueError, match="needs EISLConfig, not Seq2SeqTrainingArguments"):
        trainer(config=Seq2SeqTrainingArguments)
    with pytest.raises(ValueError, match="compute_loss_func: EISLTrainer has a loss of its own"):
        args = training_arguments(EISLConfig)
        EISLTrainer(model=MODELS["bart"](), args=args, compute_loss_func=lambda *a: None)
    made, batch = trainer(), collate(pairs())
    del batch["labels"]
    with pytest.raises(ValueError, match="labels: EISLTrainer needs them"):
        made.compute_loss(made.model, batch)
