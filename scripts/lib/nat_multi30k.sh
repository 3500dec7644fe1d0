# nat.sh --small: Multi30k en-de, 3+3 layers, 128 wide. Sourced by nat.sh.

source "$ROOT/scripts/lib/multi30k_bpe.sh"
PIECES="$RUN/pieces/train"
TEST_SET="Multi30k test2016 en-de, lc.norm.tok"
SIZE=(--encoder-layers 3 --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4
    --decoder-layers 3 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before --dropout 0.1)
MODEL+=("${SIZE[@]}")
[ "$ARCH" != levt ] || MODEL+=(--early-exit 3,3,3)
BATCH=(--max-tokens 1500 --max-tokens-valid 6000 --optimizer adam --adam-betas '(0.9, 0.98)' --clip-norm 1.0
    --lr-scheduler inverse_sqrt)
EPOCHS="${EPOCHS:-20}" UPDATES="${UPDATES:-1300}"
CE_STAGE=(--label-smoothing 0.1 --lr 2e-3 --warmup-updates 1000 --max-epoch "$EPOCHS")
# A model that has learnt already does not go back to the learning rate of the beginning.
[ -z "$START" ] || CE_STAGE+=(--lr 1e-3 --warmup-updates 300)
SECOND_STAGE=(--lr 1e-3 --warmup-updates 300 --max-tokens 3000 --max-update "$UPDATES" --validate-interval-updates 100
    --save-interval-updates 100 --keep-interval-updates 5)
# A sharper selection than the default: fewer positions share an n-gram, hence fewer repeats.
EISL_STAGE=(--ngram 2,3,4 --gumbel-temperature 0.3)
TEACHER=(--max-tokens 1000 --lr 5e-3 --warmup-updates 400 --clip-norm 0.1 --max-epoch 8 --patience 2)

bash "$ROOT/scripts/prepare/multi30k.sh" "$TEXT" --test test_2016_flickr ${DATA_DIR:+--data "$DATA_DIR"}
prepare_data() { binarise en de; }
