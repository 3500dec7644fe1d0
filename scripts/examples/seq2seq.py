#!/usr/bin/env python3
"""A small BART or T5 from scratch on the toy corpus with repeated target words: CE, then EISL.

    python scripts/examples/seq2seq.py --model bart
    python scripts/examples/seq2seq.py --model t5 --noise blank:0.3

With a model and a corpus of yours,

    model = BartForConditionalGeneration.from_pretrained("facebook/bart-base")
    tokenizer = AutoTokenizer.from_pretrained("facebook/bart-base")

take the place of new_model and tokenizer_of, a datasets.Dataset with input_ids and labels that of
the list, and learning_rate is that of fine-tuning: 3e-5 for CE, 1e-5 or less for EISL. All else
stays: the collator has the model, which makes decoder_input_ids (without them BART would read its
source for them), and EISLConfig takes whatever Seq2SeqTrainingArguments takes (bf16=True, ...).
On noise that moves words (shuffle) use position_selection="sinkhorn" and a lower
gumbel_temperature, 0.1 to 0.3. Watch eval_nll and candidate_length, and choose the checkpoint by
a validation score, such as BLEU with predict_with_generate=True.
"""

import tempfile

# First: it says what to install where something is missing.
from toy import Scores, corpus, parsed, parser_of, tokenizer_of, translations
from transformers import (
    BartConfig,
    BartForConditionalGeneration,
    DataCollatorForSeq2Seq,
    T5Config,
    T5ForConditionalGeneration,
    set_seed,
)

from fairseq_eisl.integrations.huggingface import EISLConfig, EISLTrainer


def bart(vocabulary, ids):
    size = {"d_model": 64, "max_position_embeddings": 128, "dropout": 0.1}
    for side in ("encoder", "decoder"):
        size.update({f"{side}_layers": 2, f"{side}_ffn_dim": 256, f"{side}_attention_heads": 4})
    start = {"decoder_start_token_id": ids["eos_token_id"]}
    return BartForConditionalGeneration(BartConfig(vocab_size=vocabulary, **size, **ids, **start))


def t5(vocabulary, ids):
    size = {"d_model": 64, "d_ff": 256, "d_kv": 16, "num_heads": 4, "num_layers": 2}
    start = {"decoder_start_token_id": ids["pad_token_id"]}
    return T5ForConditionalGeneration(T5Config(vocab_size=vocabulary, **size, **ids, **start))


MODELS = {"bart": bart, "t5": t5}


def train(model, tokenizer, data, **settings):
    """One training; settings are those of EISLConfig."""
    with tempfile.TemporaryDirectory() as folder:
        args = EISLConfig(
            output_dir=folder,
            per_device_train_batch_size=64,
            logging_steps=25,
            save_strategy="no",
            report_to=[],
            **settings,
        )
        collator = DataCollatorForSeq2Seq(tokenizer, model=model)
        EISLTrainer(model=model, args=args, train_dataset=data, data_collator=collator).train()


def main():
    parser = parser_of(__doc__, ce_updates=500, eisl_updates=150)
    parser.add_argument("--model", default="bart", choices=list(MODELS))
    args = parsed(parser)
    pairs, test = corpus(args)
    set_seed(args.seed)
    tokenizer = tokenizer_of(pairs)
    data = [
        {"input_ids": tokenizer(source)["input_ids"], "labels": tokenizer(target)["input_ids"]}
        for source, target in pairs
    ]
    ids = {f"{name}_token_id": getattr(tokenizer, f"{name}_token_id") for name in
           ("bos", "eos", "pad")}  # fmt: skip
    model, sources = MODELS[args.model](len(tokenizer), ids), [source for source, _ in test]
    scores = Scores(args, f"{args.model}-2x64", test)

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
    scores.add("CE", args.ce_updates, translations(model, tokenizer, sources))

    # EISL from its weights, with a new optimiser and a lower learning rate.
    train(
        model,
        tokenizer,
        data,
        ngram=[1, 2],
        ngram_weight=[0.5, 0.5],
        max_steps=args.eisl_updates,
        learning_rate=1e-3,
        warmup_steps=min(20, args.eisl_updates),
        seed=args.seed,
    )
    scores.add("EISL", args.eisl_updates, translations(model, tokenizer, sources))


if __name__ == "__main__":
    main()
