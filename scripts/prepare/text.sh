#!/usr/bin/env bash
# A corpus of your own that lies in a folder, as {train,valid,test}.{SOURCE,TARGET}.
#   bash scripts/prepare/text.sh DEST SOURCE TARGET --data DIR [--size N] [--monolingual]
#   bash scripts/prepare/text.sh DEST SOURCE TARGET --files TRAIN VALID TEST [--size N]
# DIR has the six files {train,valid,test}.{SOURCE,TARGET}: plain words (tokenised, not in pieces),
# UTF-8, a sentence a line, the two sides of a split translations of one another, line by line.
# --files: the six files wherever they lie, each of TRAIN, VALID, TEST two words: source, target.
# --size N: only the first N pairs of the training set.
# --monolingual: also mono.{train,valid}.TARGET of DIR, text for denoising pretraining.
# White space of any kind becomes single spaces, and how many lines that touched is said; the files
# of DIR stay as they are. In a recipe: data.prepare=text data.folder=DIR, or data.files=[...].
# Nothing is fetched.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
USAGE="text.sh DEST SOURCE TARGET --data DIR|--files SIX [--size N] [--monolingual] (--help says more)"
[ $# -ge 3 ] || die "usage: $USAGE"
destination "$1"
dest="$1" source="$2" target="$3" data="" size="" mono="" own=(); shift 3
for language in "$source" "$target"; do
    [[ "$language" =~ ^[A-Za-z0-9][A-Za-z0-9_@-]*$ ]] || die "SOURCE and TARGET are the ends of the files' names, such as de and en, not '$language'"
done
[ "$source" != "$target" ] || die "SOURCE and TARGET are both $source; two sides are needed"
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --files)
            [ $# -ge 7 ] || die "--files needs six files: of $source and $target in turns, for training, validation and test"
            own=("${@:2:6}"); shift 7 ;;
        --size) size="${2:?--size needs a number}"; shift 2 ;;
        --monolingual) mono=yes; shift ;;
        *) die "unknown option $1 (choose from --data, --files, --size, --monolingual)" ;;
    esac
done
[ -n "$data" ] || [ ${#own[@]} -gt 0 ] || die "--data DIR is needed: a folder with {train,valid,test}.{$source,$target}; or --files"
[ -z "$data" ] || [ ${#own[@]} -eq 0 ] || die "--data and --files: one of them is enough"
[ -z "$mono" ] || [ -n "$data" ] || die "--monolingual: the text is mono.{train,valid}.$target of --data DIR"
[ -z "$data" ] || [ -d "$data" ] || die "--data: there is no folder $data"
[ -z "$size" ] || [[ "$size" =~ ^[1-9][0-9]*$ ]] || die "--size needs a whole number above 0, not '$size'"
files=({train,valid,test}.{"$source","$target"})
[ -z "$mono" ] || files+=(mono.{train,valid}."$target")
[ -z "$data" ] || for file in "${files[@]}"; do
    [ -s "$data/$file" ] || die "--data: $data has no file $file (or an empty one); it needs ${files[*]}"
done
if [ ${#own[@]} -eq 0 ]; then
    for file in {train,valid,test}.{"$source","$target"}; do own+=("$data/$file"); done
fi
for file in "${own[@]}"; do [ -s "$file" ] || die "--files: there is no file $file (or an empty one)"; done
mkdir -p "$dest"
for split in train valid test; do
    pair=()
    for language in "$source" "$target"; do
        pair+=("${own[0]}" "$dest/$split.$language"); own=("${own[@]:1}")
    done
    first=()
    [ "$split" != train ] || [ -z "$size" ] || first=(--first "$size")
    sentences --mark-is-space ${first[@]+"${first[@]}"} "${pair[@]}"
    count="$(wc -l < "$dest/$split.$source")"
    say "$split: $count pairs"
    [ "$split" != train ] || [ "$count" -ge 200 ] || echo "note: train: $count pairs are too few to learn from; 200 are enough to try everything" >&2
done
[ -z "$mono" ] || for split in train valid; do
    sentences --mark-is-space "$data/mono.$split.$target" "$dest/mono.$split.$target"
done
