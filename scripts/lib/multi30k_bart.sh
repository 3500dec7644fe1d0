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

if [ -z "$BART" ]; then
    BART="$ROOT/runs/bart.base"
    if [ ! -e "$BART/model.pt" ]; then
        say "fetching bart.base (about 1 GB)"
        mkdir -p "$ROOT/runs"
        curl -fL --retry 5 -C - -o "$ROOT/runs/bart.base.tar.gz" https://dl.fbaipublicfiles.com/fairseq/models/bart.base.tar.gz || \
            die "could not fetch bart.base; unpack it yourself and give the folder with --bart"
        tar -C "$ROOT/runs" -xzf "$ROOT/runs/bart.base.tar.gz"
    fi
fi
for file in model.pt dict.txt; do [ -s "$BART/$file" ] || die "--bart: $BART has no file $file"; done
for file in encoder.json vocab.bpe; do
    [ -s "$BART/$file" ] && continue
    curl -fsL --retry 5 -o "$BART/$file" "https://dl.fbaipublicfiles.com/fairseq/gpt2_bpe/$file" || \
        die "--bart: $BART has no $file (GPT-2's BPE), and it could not be fetched"
done
GENERATE=(--bpe gpt2 --gpt2-encoder-json "$BART/encoder.json" --gpt2-vocab-bpe "$BART/vocab.bpe")
TASK+=(--target-noise-gpt2-encoder "$BART/encoder.json")

prepare_data() {
    local encoder
    encoder="$(python -c 'import os, fairseq; print(os.path.dirname(fairseq.__file__))')/examples/roberta/multiprocessing_bpe_encoder.py"
    for file in "$TEXT"/{train,valid,test}.{de,en}; do
        python "$encoder" --encoder-json "$BART/encoder.json" --vocab-bpe "$BART/vocab.bpe" --keep-empty \
            --inputs "$file" --outputs "$RUN/pieces.${file##*/}" --workers 2 2> "$RUN/encode.log" || die "encoding $file failed: $RUN/encode.log"
    done
    # BART's own dictionary: its size is the size of the pretrained embedding.
    run "$RUN/preprocess.log" fairseq-preprocess -s de -t en --trainpref "$RUN/pieces.train" \
        --validpref "$RUN/pieces.valid" --testpref "$RUN/pieces.test" --destdir "$DATA" \
        --srcdict "$BART/dict.txt" --tgtdict "$BART/dict.txt"
}

train_stages() {
    train ce "$BART/model.pt" --criterion label_smoothed_cross_entropy --lr 3e-5 "${SCHEDULE[@]}" --patience 4
    train eisl "$RUN/ce/checkpoint_best.pt" --criterion eisl --ngram 1,2 --ngram-weight 0.8,0.2 --lr 1e-5 \
        "${SCHEDULE[@]}" --patience 4
}
