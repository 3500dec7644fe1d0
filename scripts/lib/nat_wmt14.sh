# nat.sh on WMT14 en-de in the published setting: base size, 64k tokens an update (8 GPUs x 8000; fewer
# GPUs: -- --update-freq), 300k updates of cross entropy (fairseq's NAT examples), then EISL. Sourced by nat.sh.

BPE="@@ "
PIECES="$DATA_DIR/train"
TEST_SET="WMT14 en-de newstest2014, tokenised"
SIZE=(--encoder-layers 6 --encoder-embed-dim 512 --encoder-ffn-embed-dim 2048 --encoder-attention-heads 8
    --decoder-layers 6 --decoder-embed-dim 512 --decoder-ffn-embed-dim 2048 --decoder-attention-heads 8 --dropout 0.1)
MODEL+=("${SIZE[@]}")
BATCH=(--max-tokens 8000 --max-tokens-valid 8000 --optimizer adam --adam-betas '(0.9, 0.98)' --weight-decay 0.01
    --lr-scheduler inverse_sqrt --stop-min-lr 1e-9 --warmup-init-lr 1e-7)
UPDATES="${UPDATES:-30000}"
CE_STAGE=(--label-smoothing 0.1 --lr 5e-4 --warmup-updates 10000 --max-update 300000 --validate-interval-updates 5000
    --save-interval-updates 5000 --keep-interval-updates 5 ${EPOCHS:+--max-epoch "$EPOCHS"})
SECOND_STAGE=(--lr 1e-4 --warmup-updates 500 --max-update "$UPDATES" --validate-interval-updates 1000
    --save-interval-updates 1000 --keep-interval-updates 5)
EISL_STAGE=(--ngram 2,3,4)
TEACHER=(--max-tokens 8000 --lr 7e-4 --warmup-updates 4000 --max-update 100000 --validate-interval-updates 5000
    --save-interval-updates 5000 --keep-interval-updates 5)

prepare_data() {
    local file
    mkdir -p "$TEXT"
    for file in {train,valid,test}.{en,de}; do
        [ -s "$DATA_DIR/$file" ] || die "--data: $DATA_DIR has no file $file"
        # The plain words, for scoring and for examples.
        sed 's/@@ //g' "$DATA_DIR/$file" > "$TEXT/$file.part" && mv "$TEXT/$file.part" "$TEXT/$file"
    done
    run "$RUN/preprocess.log" fairseq-preprocess -s en -t de --trainpref "$DATA_DIR/train" --validpref "$DATA_DIR/valid" \
        --testpref "$DATA_DIR/test" --destdir "$DATA" --joined-dictionary --workers "$(nproc)"
}
