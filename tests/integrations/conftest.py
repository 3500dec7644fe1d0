"""Tiny models of Hugging Face's, batches for them, and trainings of one update."""

import importlib.util
from typing import NamedTuple

import pytest
import torch
from torch import Tensor

PAD, EOS, VOCABULARY = 1, 2, 30
LENGTHS = (3, 5, 2, 7, 4, 6, 3, 5)
NEEDED = ("transformers", "accelerate", "trl")
ABSENT = [name for name in NEEDED if importlib.util.find_spec(name) is None]
needs_hugging_face = pytest.mark.skipif(
    bool(ABSENT), reason=f"needs {', '.join(ABSENT)}: pip install '.[huggingface]'"
)


def enlarge(model, seed: int = 3):
    """Larger weights, so that outputs have structure: a new model says one word only."""
    torch.manual_seed(seed)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.dim() > 1:
                parameter.normal_(std=0.5)
            elif "norm" in name and name.endswith("weight"):
                parameter.normal_()  # else a model with tied embeddings repeats its input
    return model


def bart(**more):
    from transformers import BartConfig, BartForConditionalGeneration

    sizes = {f"{side}_{what}": 1 for side in ("encoder", "decoder") for what in ("layers",)}
    sizes.update(encoder_ffn_dim=64, decoder_ffn_dim=64)
    sizes.update(encoder_attention_heads=2, decoder_attention_heads=2)
    config = BartConfig(
        vocab_size=VOCABULARY, d_model=32, max_position_embeddings=64, dropout=0.0, **sizes, **more
    )
    return enlarge(BartForConditionalGeneration(config))


def t5(**more):
    from transformers import T5Config, T5ForConditionalGeneration

    config = T5Config(
        vocab_size=VOCABULARY,
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=1,
        num_heads=2,
        dropout_rate=0.0,
        pad_token_id=PAD,
        eos_token_id=EOS,
        decoder_start_token_id=PAD,
        **more,
    )
    return enlarge(T5ForConditionalGeneration(config))


def gpt2(**more):
    from transformers import GPT2Config, GPT2LMHeadModel

    dropout = {name: 0.0 for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")}
    sizes = {"n_positions": 64, "n_embd": 32, "n_layer": 1, "n_head": 2}
    ids = {"bos_token_id": EOS, "eos_token_id": EOS, "pad_token_id": PAD}
    return enlarge(
        GPT2LMHeadModel(GPT2Config(vocab_size=VOCABULARY, **sizes, **dropout, **ids, **more))
    )


MODELS = {"bart": bart, "t5": t5, "gpt2": gpt2}


def sentences(seed: int) -> list:
    generator = torch.Generator().manual_seed(seed)
    return [
        torch.randint(4, VOCABULARY, (length,), generator=generator).tolist() + [EOS]
        for length in LENGTHS
    ]


def pairs() -> list:
    """Eight examples of sources and labels."""
    return [{"input_ids": s, "labels": t} for s, t in zip(sentences(1), sentences(2))]


def prompts() -> list:
    """Eight examples of rows that hold a prompt and its completion."""
    return [
        {"input_ids": s[:-1] + t, "labels": [-100] * (len(s) - 1) + t}
        for s, t in zip(sentences(1), sentences(2))
    ]


def tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import WhitespaceSplit
    from transformers import PreTrainedTokenizerFast

    words = ["<unk>", "<pad>", "<eos>", *(f"w{i}" for i in range(3, VOCABULARY))]
    plain = Tokenizer(WordLevel({w: i for i, w in enumerate(words)}, unk_token="<unk>"))
    plain.pre_tokenizer = WhitespaceSplit()
    return PreTrainedTokenizerFast(
        tokenizer_object=plain, unk_token="<unk>", pad_token="<pad>", eos_token="<eos>"
    )


def collate(items: list) -> dict:
    """Padded on the right, as collators do it."""
    found = {}
    for key, pad in (("input_ids", PAD), ("labels", -100)):
        width = max(len(item[key]) for item in items)
        rows = [item[key] + [pad] * (width - len(item[key])) for item in items]
        found[key] = torch.tensor(rows)
    found["attention_mask"] = found["input_ids"].ne(PAD).long()
    return found


class Update(NamedTuple):
    """The gradient of one update, by parameter, and what was logged."""

    grads: dict
    log: dict


def one_update(trainer) -> Update:
    """Train for one update and stop before the optimiser uses the gradient."""
    from transformers import TrainerCallback

    grads = {}

    class Keep(TrainerCallback):
        def on_pre_optimizer_step(self, args, state, control, model=None, **rest):
            for name, parameter in model.named_parameters():
                if parameter.grad is not None:
                    grads[name] = parameter.grad.clone()

    trainer.add_callback(Keep())
    trainer.train()
    return Update(grads, trainer.state.log_history[0])


def assert_same_gradients(found: dict, expected: dict, factor: float = 1.0):
    assert set(found) == set(expected) and found
    for name, grad in expected.items():
        torch.testing.assert_close(
            found[name],
            factor * grad,
            rtol=2e-4,
            atol=2e-5,
            msg=lambda text, n=name: f"{n}: {text}",
        )


AT_EOS = {
    "end": {},
    "go_on": {"candidate_after_eos": True},
    "avoid": {"candidate_avoid_eos": True},
}
"""Arguments of the trainers."""


def greedy(next_logits, begin: list, most: int, at_eos: str = "end") -> list:
    """The tokens after ``begin``, without a cache: ``next_logits(tokens)`` is (V,)."""
    tokens = list(begin)
    while len(tokens) - len(begin) < most:
        values: Tensor = next_logits(tokens).clone()
        values[PAD] = -float("inf")
        if at_eos == "avoid" and len(tokens) - len(begin) < most - 1:
            values[EOS] = -float("inf")
        tokens.append(int(values.argmax()))
        if at_eos == "end" and tokens[-1] == EOS:
            break
    return tokens[len(begin) :]


@pytest.fixture
def training_arguments(tmp_path):
    """Arguments of one update of eight sentences on the CPU."""

    def make(kind, rows: int = 8, **more):
        given = {
            "output_dir": str(tmp_path / "out"),
            "per_device_train_batch_size": rows,
            "per_device_eval_batch_size": rows,
            "gradient_accumulation_steps": 8 // rows,
            "max_steps": 1,
            "max_grad_norm": 0.0,
            "logging_steps": 1,
            "save_strategy": "no",
            "report_to": [],
            "use_cpu": True,
            "disable_tqdm": True,
            "seed": 1,
        }
        return kind(**{**given, **more})

    return make
