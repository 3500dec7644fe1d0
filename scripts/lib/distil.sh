# Sequence-level knowledge distillation (Kim and Rush, 2016). Sourced by nat.sh, after the data are
# prepared: an autoregressive teacher is trained on them and translates the training set; $DATA becomes
# a folder with its translations as training targets, the same dictionary, validation and test sets.

distil() {
    local raw="$DATA" words="$RUN/distilled" lines
    DATA="$RUN/data.kd"
    if [ -e "$DATA/done" ]; then say "distillation: done before ($DATA)"; return; fi
    (
        DATA="$raw" EVAL='{"beam": 1, "max_len_a": 1.2, "max_len_b": 10}' TASK=(--task noisy_translation)
        MODEL=(--arch transformer --share-all-embeddings "${SIZE[@]}")
        train teacher "" --criterion label_smoothed_cross_entropy --label-smoothing 0.1 "${TEACHER[@]}"
        if [ ! -e "$words.out" ]; then
            say "teacher: translating the training set"
            BPE="" translate "$RUN/teacher/checkpoint_best.pt" "$words.out" --task noisy_translation \
                --gen-subset train --beam 5 --max-len-a 1.2 --max-len-b 10
        fi
    )
    # In the order of the training set, every line once, still in pieces: they are what is trained on.
    python "$ROOT/scripts/prepare/distilled.py" --log "$words.out" --source "$PIECES.en" --out "$words.de"
    cp "$PIECES.en" "$words.en"
    rm -rf "$DATA"
    run "$RUN/preprocess.kd.log" fairseq-preprocess -s en -t de --trainpref "$words" --destdir "$DATA" \
        --srcdict "$raw/dict.en.txt" --tgtdict "$raw/dict.de.txt"
    cp "$raw"/{valid,test}.en-de.* "$DATA/"
    cmp -s "$raw/dict.de.txt" "$DATA/dict.de.txt" || die "distillation: the dictionary has changed"
    touch "$DATA/done"
}
