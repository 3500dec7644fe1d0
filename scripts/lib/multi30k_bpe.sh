# Multi30k as a joint sentencepiece BPE of 4000 pieces. Sourced by the scripts that train small models.

BPE=sentencepiece
# A blanked word as one piece. The dictionary's <unk> would be two ("▁ <unk>"), and then more than
# half of all targets of blank:0.4 are blanks, which is what the model learns to say.
BLANK="▁<unk>"

# binarise SOURCE TARGET: $TEXT's files as fairseq-preprocess's folder $DATA.
binarise() {
    local source="$1" target="$2" pieces="$RUN/pieces"
    bash "$ROOT/scripts/prepare/encode_sentencepiece.sh" "$TEXT" "$pieces" "$source" "$target" 4000 "$BLANK"
    run "$RUN/preprocess.log" fairseq-preprocess -s "$source" -t "$target" --trainpref "$pieces/train" \
        --validpref "$pieces/valid" --testpref "$pieces/test" --destdir "$DATA" \
        --joined-dictionary --srcdict "$pieces/dict.txt"
}
