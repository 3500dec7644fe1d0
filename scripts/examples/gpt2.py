#!/usr/bin/env python3
"""A small GPT-2 from scratch that translates the toy corpus with repeated target words: CE, then
EISL, on TRL's SFTTrainer.

    python scripts/examples/gpt2.py

The source is the prompt, "SOURCE =>", and the target the completion. With a model and data of
yours,

    model = "Qwen/Qwen3-0.6B"
    data = datasets.load_dataset(..., split="train")   # with the columns prompt and completion

take the place of new_model and Dataset.from_list (a conversational dataset is formatted by the
model's chat template; give its last turn as the completion), processing_class is left away, and
learning_rate is 1e-5 for CE and a third of that for EISL. EISLSFTConfig takes whatever SFTConfig
takes but packing (bf16=True, peft_config of the trainer, ...). Keep max_length above the length of
prompt and completion: what is cut off is not learnt. A candidate costs as much decoding as a
completion is long; decoding_interval=2 halves that.
"""

import tempfile

# First: it says what to install where something is missing.
from toy import Scores, corpus, parsed, parser_of, tokenizer_of, translations

# isort: split
from datasets import Dataset
from transformers import GPT2Config, GPT2LMHeadModel, set_seed

from fairseq_eisl.integrations.huggingface import EISLSFTConfig, EISLSFTTrainer

PROMPT = " =>"


def new_model(tokenizer):
    dropout = {name: 0.1 for name in ("resid_pdrop", "embd_pdrop", "attn_pdrop")}
    size = {"n_positions": 128, "n_embd": 64, "n_layer": 3, "n_head": 4}
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in
           ("bos", "eos", "pad")}  # fmt: skip
    return GPT2LMHeadModel(GPT2Config(vocab_size=len(tokenizer), **size, **dropout, **ids))


def train(model, tokenizer, data, **settings):
    """One training; settings are those of EISLSFTConfig."""
    with tempfile.TemporaryDirectory() as folder:
        args = EISLSFTConfig(
            output_dir=folder,
            per_device_train_batch_size=64,
            logging_steps=25,
            save_strategy="no",
            report_to=[],
            bf16=False,  # leave it away on a GPU
            gradient_checkpointing=False,  # which saves memory that a small model does not need
            **settings,
        )
        EISLSFTTrainer(
            model=model, args=args, train_dataset=data, processing_class=tokenizer
        ).train()


def main():
    args = parsed(parser_of(__doc__, ce_updates=750, eisl_updates=125))
    pairs, test = corpus(args)
    set_seed(args.seed)
    tokenizer = tokenizer_of(pairs, end=False)  # the trainer adds the end symbol itself
    data = Dataset.from_list(
        [{"prompt": source + PROMPT, "completion": " " + target} for source, target in pairs]
    )
    model, sources = new_model(tokenizer), [source for source, _ in test]
    scores = Scores(args, "gpt2-3x64", test)

    # Cross entropy first: EISL needs outputs that have something of the target in them.
    train(
        model,
        tokenizer,
        data,
        ngram_factor=0.0,
        ce_factor=1.0,
        max_steps=args.ce_updates,
        learning_rate=4e-3,
        lr_scheduler_type="inverse_sqrt",
        warmup_steps=min(100, args.ce_updates),
        seed=args.seed,
    )
    scores.add("CE", args.ce_updates, translations(model, tokenizer, sources, PROMPT))

    # EISL from its weights, with a new optimiser and a lower learning rate.
    train(
        model,
        tokenizer,
        data,
        ngram=[1, 2],
        ngram_weight=[0.5, 0.5],
        max_steps=args.eisl_updates,
        learning_rate=5e-4,
        warmup_steps=min(20, args.eisl_updates),
        seed=args.seed,
    )
    scores.add("EISL", args.eisl_updates, translations(model, tokenizer, sources, PROMPT))


if __name__ == "__main__":
    main()
