# multi30k.sh --small: joint sentencepiece BPE of 4000 pieces, Transformer of 3+3 layers, from
# scratch. Sourced by multi30k.sh.

source "$ROOT/scripts/lib/multi30k_bpe.sh"
GENERATE=()
TASK+=(--target-noise-blank "$BLANK")
MODEL=(--arch transformer --share-all-embeddings --dropout 0.1
    --encoder-layers 3 --encoder-embed-dim 128 --encoder-ffn-embed-dim 512 --encoder-attention-heads 4
    --decoder-layers 3 --decoder-embed-dim 128 --decoder-ffn-embed-dim 512 --decoder-attention-heads 4
    --encoder-normalize-before --decoder-normalize-before)
BATCH=(--max-tokens-valid 6000 --optimizer adam --adam-betas '(0.9, 0.98)')

prepare_data() { binarise de en; }

# CE stops when it does not get better on the clean validation set: from there on it learns the
# noise. Both stages keep their best checkpoint by validation BLEU.
train_stages() {
    train ce "" --criterion label_smoothed_cross_entropy --max-tokens 1000 --lr 5e-3 \
        --lr-scheduler inverse_sqrt --warmup-updates 400 --clip-norm 0.1 --max-epoch 8 --patience 2
    train eisl "$RUN/ce/checkpoint_best.pt" --criterion eisl --ngram 1,2 --ngram-weight 0.5,0.5 \
        --max-tokens 2000 --lr 3e-4 --lr-scheduler inverse_sqrt --warmup-updates 100 --clip-norm 0.1 \
        --max-update 600 --validate-interval-updates 100 --save-interval-updates 100 --keep-interval-updates 1
}
