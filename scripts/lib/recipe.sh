# The recipe in stock fairseq commands: CE on noisy targets, EISL from its best checkpoint,
# generation, scoring. Sourced after common.sh by the scripts of each data set, which set
#   RUN      folder of this run                 DATA   fairseq-preprocess's folder
#   BPE      --remove-bpe value, or empty       DEVICE array of flags: (--cpu) or (--fp16)
#   TASK     array: the task and its noise      MODEL  array: the architecture's flags
#   BATCH    array: flags of both training stages    SEED
#   EXTRA    array: more flags of both stages, which override the others (optional)
#   EVAL     how validation decodes, --eval-bleu-args (optional; default: greedily)

[ -n "${EXTRA+set}" ] || EXTRA=()
[ -n "${EVAL+set}" ] || EVAL='{"beam": 1, "max_len_a": 1.2, "max_len_b": 10}'
USER_DIR=(--user-dir "$ROOT/fairseq_eisl")
# --required-batch-size-multiple 1: fairseq's default of 8 drops the last sentences of a set.
COMMON=(--required-batch-size-multiple 1 --num-workers 0)

# Prints an epoch's line as it ends: progress for people, the whole log stays in the file.
show_validation() {
    sed -u -n -E 's/.*[|] (epoch [0-9]+) [|] valid on .*[|] loss ([0-9.]+) .*[|] bleu ([0-9.]+) .*[|] num_updates ([0-9]+).*/           \1  loss \2  BLEU \3  updates \4/p' >&2
}

# train NAME START COMMAND...: one training stage in $RUN/NAME. Finished stages are skipped, a
# killed one goes on from its last checkpoint, a changed command starts over.
# START: a checkpoint to start from with a fresh optimiser, or empty.
train() {
    local name="$1" start="$2"; shift 2
    local folder="$RUN/$name" command identity restore=()
    command=(fairseq-train "$DATA" "${USER_DIR[@]}" "${TASK[@]}" "${MODEL[@]}" "${BATCH[@]}" "${COMMON[@]}"
        "${DEVICE[@]}" --seed "$SEED" --no-progress-bar --log-format simple --log-interval 50
        --eval-bleu --eval-tokenized-bleu --eval-bleu-args "$EVAL"
        ${BPE:+--eval-bleu-remove-bpe "$BPE"} --best-checkpoint-metric bleu --maximize-best-checkpoint-metric
        --no-epoch-checkpoints --save-dir "$folder" "$@" "${EXTRA[@]}")
    identity="$(printf '%q ' "${command[@]}") start=${start:+$(cksum < "$start")}"
    if [ -e "$folder/command" ] && [ "$(cat "$folder/command")" != "$identity" ]; then
        say "$name: the command has changed, starting over"
        rm -rf "$folder"
    fi
    if [ -e "$folder/done" ]; then say "$name: done before ($folder)"; return; fi
    mkdir -p "$folder"
    printf '%s\n' "$identity" > "$folder/command"
    if [ -e "$folder/checkpoint_last.pt" ]; then
        say "$name: going on from $folder/checkpoint_last.pt"
    elif [ -n "$start" ]; then
        restore=(--restore-file "$start" --reset-optimizer --reset-dataloader --reset-meters --reset-lr-scheduler)
    fi
    say "$name: training (log: $folder/train.log)"
    if ! "${command[@]}" "${restore[@]}" 2>&1 | tee -a "$folder/train.log" | show_validation; then
        tail -n 15 "$folder/train.log" >&2
        die "$name: training failed (whole log: $folder/train.log)"
    fi
    touch "$folder/done"
}

# translate CHECKPOINT OUT FLAGS...: translate a part of the data with one checkpoint.
# The log appears whole or not at all; scoring checks the number of lines.
translate() {
    local checkpoint="$1" out="$2"; shift 2
    run "$out.part" fairseq-generate "$DATA" "${USER_DIR[@]}" --path "$checkpoint" \
        "${DEVICE[@]}" "${COMMON[@]}" --seed "$SEED" --max-tokens 8000 ${BPE:+--remove-bpe "$BPE"} "$@"
    mv "$out.part" "$out"
}

# generate NAME [FLAGS...]: translate the test set with $RUN/NAME's best checkpoint.
generate() {
    local name="$1"; shift
    say "$name: translating the test set"
    translate "$RUN/$name/checkpoint_best.pt" "$RUN/$name/test.out" --task noisy_translation "$@"
}

# Seconds that stage NAME has trained (since its last start, if it was killed in between).
training_seconds() {
    awk '/done training in/ { seconds = $(NF - 1) } END { print seconds }' "$RUN/$1/train.log"
}

# report TITLE SOURCE REFERENCE EXAMPLES key=value...: rows, pictures, examples and a table of the
# stages ce and eisl, whose translations are there. The key=value pairs are columns of the rows.
report() {
    local title="$1" source="$2" reference="$3" examples="$4" name; shift 4
    local evaluate=(python -m fairseq_eisl.evaluation)
    rm -f "$RUN/rows.csv"
    for name in ce eisl; do
        "${evaluate[@]}" score --log "$RUN/$name/test.out" --reference "$reference" --rows "$RUN/rows.csv" \
            --set system="${name^^}" seed="$SEED" training_seconds="$(training_seconds "$name")" "$@" > /dev/null
    done
    "${evaluate[@]}" plot --rows "$RUN/rows.csv" --out "$RUN/compare.png"
    "${evaluate[@]}" curve --log CE="$RUN/ce/train.log" EISL="$RUN/eisl/train.log" --out "$RUN/curve.png" --title "$title"
    "${evaluate[@]}" examples --source "$source" --reference "$reference" \
        --system CE="$RUN/ce/test.out" EISL="$RUN/eisl/test.out" -n "$examples" --seed "$SEED"
    "${evaluate[@]}" table --rows "$RUN/rows.csv" \
        --columns system bleu brevity_penalty repetition length_ratio unk_rate sentences bleu_signature
    say "rows: $RUN/rows.csv   pictures: $RUN/compare.png, $RUN/curve.png"
}
