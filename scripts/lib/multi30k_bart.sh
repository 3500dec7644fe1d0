# multi30k.sh with BART-base: the paper's setting (Liu et al., NAACL 2022, App. A.3 and the released
# scripts): Adam, 3e-5 for CE and 1e-5 for EISL, polynomial decay, 500 warm-up updates, 10k updates,
# 6000 tokens x 4, clipping 0.1, EISL of 1- and 2-grams weighted 0.8, 0.2. Sourced by multi30k.sh.

BPE="" # GPT-2 pieces are numbers; fairseq-generate decodes them (GENERATE), validation does not
MODEL=(--arch bart_base --share-all-embeddings --share-decoder-input-output-embed --layernorm-embedding
    --dropout 0.1 --attention-dropout 0.1)
BATCH=(--max-tokens 6000 --max-tokens-valid 6000 --batch-size 128 --update-freq 4 --optimizer adam --adam-betas '(0.9, 0.999)'
    --adam-eps 1e-8 --weight-decay 0.01 --clip-norm 0.1 --max-source-positions 1024 --max-target-positions 1024)
SCHEDULE=(--lr-scheduler polynomial_decay --warmup-updates 500 --total-num-update 10000 --max-update 10000
    --validate-interval-updates 500 --save-interval-updates 500 --keep-interval-updates 1)

BART="${BART:-$ROOT/runs/bart.base}"
bash "$ROOT/scripts/prepare/bart_base.sh" "$BART"
GENERATE=(--bpe gpt2 --gpt2-encoder-json "$BART/encoder.json" --gpt2-vocab-bpe "$BART/vocab.bpe")
TASK+=(--target-noise-gpt2-encoder "$BART/encoder.json")

prepare_data() {
    bash "$ROOT/scripts/prepare/encode_gpt2.sh" "$TEXT" "$RUN/pieces" de en "$BART"
    # BART's own dictionary: its size is the size of the pretrained embedding.
    run "$RUN/preprocess.log" fairseq-preprocess -s de -t en --trainpref "$RUN/pieces/train" \
        --validpref "$RUN/pieces/valid" --testpref "$RUN/pieces/test" --destdir "$DATA" \
        --srcdict "$BART/dict.txt" --tgtdict "$BART/dict.txt"
}

train_stages() {
    train ce "$BART/model.pt" --criterion label_smoothed_cross_entropy --lr 3e-5 "${SCHEDULE[@]}" --patience 4
    train eisl "$RUN/ce/checkpoint_best.pt" --criterion eisl --ngram 1,2 --ngram-weight 0.8,0.2 --lr 1e-5 \
        "${SCHEDULE[@]}" --patience 4
}
