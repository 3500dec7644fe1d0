"""EISLSFTTrainer on a tiny GPT-2, and how it takes prompts and completions apart."""

import copy

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch.nn import functional

from fairseq_eisl.integrations.huggingface.prompts import prompted
from fairseq_eisl.losses import eisl_loss
from tests.integrations.conftest import (
    AT_EOS,
    EOS,
    MODELS,
    PAD,
    VOCABULARY,
    assert_same_gradients,
    collate,
    greedy,
    needs_hugging_face,
    one_update,
    prompts,
    tokenizer,
)

# -- prompts and completions ---------------------------------------------------------------


@st.composite
def rows(draw):
    """Prompts and completions of some lengths, and on which side they are padded."""
    sizes = st.tuples(st.integers(1, 4), st.integers(0, 4))
    parts = draw(st.lists(sizes, min_size=1, max_size=4))
    token = st.integers(3, 9)
    texts = [([draw(token) for _ in range(p)], [draw(token) for _ in range(c)]) for p, c in parts]
    return texts, draw(st.booleans())


@given(rows())
def test_rows_are_taken_apart(case):
    texts, left = case
    width = max(len(p) + len(c) for p, c in texts)
    ids, labels, mask = [], [], []
    for prompt, completion in texts:
        gap = width - len(prompt) - len(completion)
        for found, row, pad in (
            (ids, prompt + completion, 0),
            (labels, [-100] * len(prompt) + completion, -100),
            (mask, [1] * (width - gap), 0),
        ):
            found.append([pad] * gap + row if left else row + [pad] * gap)
    parts = prompted(torch.tensor(ids), torch.tensor(labels), torch.tensor(mask))
    assert [row[m].tolist() for row, m in zip(parts.prompts, parts.prompt_mask)] == [
        prompt for prompt, _ in texts
    ]
    assert [row[m].tolist() for row, m in zip(parts.targets, parts.target_mask)] == [
        completion for _, completion in texts
    ]
    assert parts.prompt_mask[:, -1].all()
    assert not (parts.target_mask[:, 1:] & ~parts.target_mask[:, :-1]).any()


def test_text_without_a_prompt_completes_its_first_token():
    ids = torch.tensor([[5, 6, 7]])
    parts = prompted(ids, ids)
    assert parts.prompts.tolist() == [[5]] and parts.targets.tolist() == [[6, 7]]


def test_several_turns_are_refused():
    ids = torch.tensor([[5, 6, 7, 8, 9]] * 2)
    labels = torch.tensor([[-100, 6, 7, 8, 9], [-100, 6, -100, 8, 9]])
    with pytest.raises(ValueError, match="labels: row 1 of the batch has several runs"):
        prompted(ids, labels)


# -- the trainer ---------------------------------------------------------------------------

BATCHES = [(8, {}), (2, {}), (1, {}), (8, {"gradient_checkpointing": True})]


@pytest.fixture
def trainer(training_arguments):
    from datasets import Dataset

    from fairseq_eisl.integrations.huggingface import EISLSFTConfig, EISLSFTTrainer

    def make(model=None, rows=8, data=None, **more):
        given = {"bf16": False, "gradient_checkpointing": False, **more}
        data = Dataset.from_list(prompts()) if data is None else data
        return EISLSFTTrainer(
            model=MODELS["gpt2"]() if model is None else model,
            args=training_arguments(EISLSFTConfig, rows, **given),
            train_dataset=data,
            eval_dataset=data,
            processing_class=tokenizer(),
        )

    return make


@needs_hugging_face
@pytest.mark.parametrize("decoding", ["greedy", "teacher-forcing"])
def test_the_gradient_does_not_depend_on_how_a_batch_is_split(trainer, decoding):
    found = [
        one_update(trainer(rows=n, ngram=[1, 2], ce_factor=0.3, train_decoding=decoding, **more))
        for n, more in BATCHES
    ]
    for update in found[1:]:
        assert_same_gradients(update.grads, found[0].grads)
        for key in ("loss", "eisl", "eisl_1", "eisl_2", "nll", "candidate_length", "repetition"):
            assert update.log[key] == pytest.approx(found[0].log[key], rel=1e-4), key
    assert max(grad.abs().max() for grad in found[0].grads.values()) > 1e-3


def completions():
    return [[label for label in row["labels"] if label != -100] for row in prompts()]


def beginnings():
    return [row["input_ids"][: row["labels"].count(-100)] for row in prompts()]


@needs_hugging_face
def test_the_gradient_is_that_of_the_loss_by_hand(trainer):
    """Each prompt alone, unpadded and without a cache: so left padding and positions are right."""
    model = MODELS["gpt2"]()
    update = one_update(trainer(copy.deepcopy(model), ngram=[1, 2], position_selection="softmax"))
    total, labels = 0.0, 0
    for begin, target in zip(beginnings(), completions()):
        said = greedy(lambda t: model(torch.tensor([t])).logits[0, -1], begin, len(target))
        logits = model(torch.tensor([begin + said[:-1]])).logits[:, len(begin) - 1 :]
        loss = eisl_loss(logits, torch.tensor([target]), ngrams=(1, 2), selection="softmax")
        total, labels = total + loss * len(target), labels + len(target)
    (total / labels).backward()
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert_same_gradients(update.grads, grads)


@needs_hugging_face
def test_cross_entropy_alone_is_that_of_the_completions(trainer):
    model, batch = MODELS["gpt2"](), collate(prompts())
    logits = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    loss = functional.cross_entropy(logits[:, :-1].transpose(1, 2), batch["labels"][:, 1:])
    loss.backward()
    update = one_update(trainer(rows=2, ngram_factor=0.0, ce_factor=1.0))
    grads = {name: p.grad for name, p in model.named_parameters() if p.grad is not None}
    assert_same_gradients(update.grads, grads)


@needs_hugging_face
@pytest.mark.parametrize("at_eos", AT_EOS)
def test_a_candidate_is_what_the_model_says_after_the_prompt(trainer, at_eos):
    made = trainer(**AT_EOS[at_eos])
    model = MODELS["gpt2"]().eval()
    expected = [
        greedy(lambda t: model(torch.tensor([t])).logits[0, -1], begin, len(target), at_eos)
        for begin, target in zip(beginnings(), completions())
    ]
    assert len(set(map(tuple, expected))) > 4
    assert any(EOS in tokens[:-1] for tokens in expected) == (at_eos == "go_on")
    for batch in (collate(prompts()), left_padded(prompts())):
        candidate = made.candidate(made.read_batch(batch), sample=False)
        assert [row[mask].tolist() for row, mask in zip(*candidate)] == expected


def left_padded(items):
    """The same batch with the padding before the text."""
    found = {}
    for key, pad in (("input_ids", PAD), ("labels", -100)):
        width = max(len(item[key]) for item in items)
        found[key] = torch.tensor([[pad] * (width - len(i[key])) + i[key] for i in items])
    found["attention_mask"] = found["input_ids"].ne(PAD).long()
    return found


@needs_hugging_face
def test_evaluation_has_the_loss_of_training_without_noise(trainer):
    made = trainer(rows=3, ngram=[1, 2])
    metrics = made.evaluate()
    assert made.evaluate()["eval_loss"] == metrics["eval_loss"]
    whole = trainer(ngram=[1, 2], position_selection="softmax").evaluate()
    assert metrics["eval_eisl"] == pytest.approx(whole["eval_loss"], rel=1e-4)
    assert metrics["eval_nll"] == pytest.approx(whole["eval_nll"], rel=1e-4)


@needs_hugging_face
def test_logits_of_evaluation_go_with_the_labels(trainer):
    """What compute_metrics may take an accuracy of."""
    made = trainer()
    outputs = made.predict(made.eval_dataset)
    model, batch = MODELS["gpt2"]().eval(), collate(prompts())
    expected = model(batch["input_ids"], attention_mask=batch["attention_mask"]).logits
    real = batch["attention_mask"].bool().numpy()
    logits = (
        outputs.predictions[0] if isinstance(outputs.predictions, tuple) else outputs.predictions
    )
    assert logits.shape == (*outputs.label_ids.shape, VOCABULARY)
    assert abs(logits - expected.detach().numpy())[real].max() < 1e-3


@needs_hugging_face
def test_prompts_and_completions_as_text(trainer):
    """As users have them: the prompt is masked, the completion ends with the end symbol."""
    from datasets import Dataset

    texts = [{"prompt": "w4 w5 w6", "completion": " w7 w8"}, {"prompt": "w9", "completion": " w3"}]
    made = trainer(data=Dataset.from_list(texts), rows=8)
    batch = made.read_batch(next(iter(made.get_eval_dataloader())))
    targets = [row[mask].tolist() for row, mask in zip(batch.targets, batch.mask)]
    assert targets == [[7, 8, EOS], [3, EOS]]
    made.train()
    assert made.state.log_history[0]["target_length"] == 2.5


@needs_hugging_face
def test_adapters_are_trained_alone(trainer):
    """LoRA: forward, generation and the model's signature are those below the adapter."""
    peft = pytest.importorskip("peft", reason="needs peft: pip install peft")
    config = peft.LoraConfig(target_modules=["c_attn"], task_type="CAUSAL_LM", fan_in_fan_out=True)
    adapted = peft.get_peft_model(MODELS["gpt2"](), config)
    update = one_update(trainer(adapted, rows=4, ngram=[1, 2], ce_factor=0.3))
    assert update.grads and all("lora_" in name for name in update.grads)
    whole = one_update(trainer(ngram=[1, 2], ce_factor=0.3))  # an adapter begins as none
    for key in ("loss", "eisl", "nll", "candidate_length"):
        assert update.log[key] == pytest.approx(whole.log[key], rel=1e-4), key


@needs_hugging_face
@pytest.mark.parametrize(
    "changes, message",
    [
        ({"packing": True}, "packing=True: EISL is of sentences"),
        ({"eval_packing": True}, "eval_packing=True"),
        ({"padding_free": True}, "padding_free=True"),
        ({"loss_type": "dft"}, "loss_type='dft'"),
        ({"ngram": [0.5]}, "^ngram must be one or more integers, not"),
    ],
)
def test_what_does_not_fit_is_refused(trainer, changes, message):
    with pytest.raises(ValueError, match=message):
        trainer(**changes)


@needs_hugging_face
def test_another_config_and_unknown_inputs_are_refused(trainer, training_arguments):
    from datasets import Dataset
    from trl import SFTConfig

    from fairseq_eisl.integrations.huggingface import EISLSFTTrainer

    with pytest.raises(ValueError, match="EISLSFTTrainer needs EISLSFTConfig, not SFTConfig"):
        EISLSFTTrainer(
            model=MODELS["gpt2"](),
            args=training_arguments(SFTConfig, bf16=False),
            train_dataset=Dataset.from_list(prompts()),
            processing_class=tokenizer(),
        )
    made = trainer()
    batch = {**collate(prompts()), "pixel_values": torch.zeros(1)}
    with pytest.raises(ValueError, match="pixel_values: EISLSFTTrainer cannot use this"):
        made.compute_loss(made.model, batch)
