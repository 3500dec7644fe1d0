#!/usr/bin/env bash
# A corpus as the pieces of one joint sentencepiece BPE, with the dictionary of both sides.
#   bash scripts/prepare/encode_sentencepiece.sh TEXT DEST SOURCE TARGET SIZE|auto [BLANK]
# TEXT has {train,valid,test}.{SOURCE,TARGET} and may have mono.{train,valid}.TARGET; DEST gets the
# same files in pieces, bpe.model, and dict.txt for fairseq-preprocess --srcdict. BLANK, such as
# '▁<unk>', becomes a symbol of the dictionary, one piece that stands for a word.
# Removing the pieces gives the words of the text back; what becomes of other white space than the
# space, sentencepiece_bpe.py says.
# Needs the environment of the package (python, fairseq-preprocess) on PATH.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -ge 5 ] && [ $# -le 6 ] || die "usage: encode_sentencepiece.sh TEXT DEST SOURCE TARGET SIZE [BLANK] (--help says more)"
text="$1" dest="$2" source="$3" target="$4" size="$5"
destination "$dest"
[[ "$size" =~ ^([1-9][0-9]*|auto)$ ]] || die "SIZE needs a whole number above 0, or auto for as many as fit the text, not '$size'"
blank=()
[ $# -lt 6 ] || blank=("$6")
for file in {train,valid,test}.{"$source","$target"}; do
    [ -s "$text/$file" ] || die "$text has no file $file (or an empty one)"
done
pieces() { package_python "$ROOT/scripts/prepare/sentencepiece_bpe.py" "$@" || exit 2; }
[ ! "$text" -ef "$dest" ] || die "TEXT and DEST are one folder, $dest: the text would be written over; choose another DEST"
mkdir -p "$dest"
plain="$(mktemp -d "$dest/.plain-XXXXXX")"
trap 'rm -rf "$plain"' EXIT
for split in train valid test; do
    sentences --for-pieces --mark-is-space "$text/$split.$source" "$plain/$split.$source" \
        "$text/$split.$target" "$plain/$split.$target"
done
for file in mono.{train,valid}."$target"; do
    [ ! -e "$text/$file" ] || sentences --for-pieces --mark-is-space "$text/$file" "$plain/$file"
done
# In the order of the alphabet, so that a corpus has one segmentation in both directions.
mapfile -t sides < <(printf '%s\n' "$plain/train.$source" "$plain/train.$target" | LC_ALL=C sort)
pieces train --size "$size" --model "$dest/bpe" ${blank[@]+--blank="$blank"} -- "${sides[@]}"
for split in train valid test; do
    files=()
    for language in "$source" "$target"; do
        files+=("$plain/$split.$language" "$dest/$split.$language")
    done
    pieces encode --model "$dest/bpe.model" -- "${files[@]}"
done
for file in mono.{train,valid}."$target"; do
    [ ! -e "$plain/$file" ] || pieces encode --model "$dest/bpe.model" -- "$plain/$file" "$dest/$file"
done
rm -rf "$dest/dictionary"  # of an earlier run; fairseq-preprocess does not replace it
run "$dest/dictionary.log" fairseq-preprocess -s "$source" -t "$target" --trainpref "$dest/train" \
    --destdir "$dest/dictionary" --joined-dictionary --dict-only
dictionary="$dest/dictionary/dict.$target.txt"
if [ ${#blank[@]} -gt 0 ]; then
    pieces blank --symbol="$blank" -- "$dictionary" "$dest/dict.txt"
else
    cp "$dictionary" "$dest/dict.txt.part"
    mv "$dest/dict.txt.part" "$dest/dict.txt"
fi
