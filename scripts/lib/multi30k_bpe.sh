# Multi30k as a joint sentencepiece BPE of 4000 pieces. Sourced by the scripts that train small models.

BPE=sentencepiece
# A blanked word as one piece. The dictionary's <unk> would be two ("▁ <unk>"), and then more than
# half of all targets of blank:0.4 are blanks, which is what the model learns to say.
BLANK="▁<unk>"

# binarise SOURCE TARGET: $TEXT's files as fairseq-preprocess's folder $DATA.
binarise() {
    local source="$1" target="$2" pieces="$ROOT/scripts/prepare/sentencepiece_bpe.py"
    python "$pieces" train --size 4000 --model "$RUN/bpe" "$TEXT/train.de" "$TEXT/train.en"
    for file in "$TEXT"/{train,valid,test}.{de,en}; do
        python "$pieces" encode --model "$RUN/bpe.model" < "$file" > "$RUN/pieces.${file##*/}"
    done
    run "$RUN/dictionary.log" fairseq-preprocess -s "$source" -t "$target" --trainpref "$RUN/pieces.train" \
        --destdir "$RUN/dictionary" --joined-dictionary --dict-only
    # A filler of fairseq's dictionary becomes the blank, a word that is one piece.
    sed "s/^madeupword0000 0$/$BLANK 0/" "$RUN/dictionary/dict.$target.txt" > "$RUN/dict.txt"
    grep -q "^$BLANK " "$RUN/dict.txt" || die "$RUN/dict.txt has no filler to make a blank from"
    run "$RUN/preprocess.log" fairseq-preprocess -s "$source" -t "$target" --trainpref "$RUN/pieces.train" \
        --validpref "$RUN/pieces.valid" --testpref "$RUN/pieces.test" --destdir "$DATA" \
        --joined-dictionary --srcdict "$RUN/dict.txt"
}
