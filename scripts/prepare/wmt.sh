#!/usr/bin/env bash
# A WMT corpus that lies in a folder already, as {train,valid,test}.{SOURCE,TARGET}.
#   bash scripts/prepare/wmt.sh DEST SOURCE TARGET --data DIR [--size N]
# DIR has the six files, tokenised; N: only the first N pairs of the training set. Nothing is fetched:
# the corpora are gigabytes, and which parts of them are meant is the experiment's to say.
set -euo pipefail
source "$(dirname "${BASH_SOURCE[0]}")/../lib/common.sh"
[ $# -ge 3 ] || die "usage: wmt.sh DEST SOURCE TARGET --data DIR [--size N]"
dest="$1" source="$2" target="$3" data="" size=""; shift 3
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --size) size="${2:?--size needs a number}"; shift 2 ;;
        *) die "unknown option $1 (choose from --data, --size)" ;;
    esac
done
[ -n "$data" ] || die "--data DIR is needed: a folder with {train,valid,test}.{$source,$target}"
[ -z "$size" ] || [[ "$size" =~ ^[1-9][0-9]*$ ]] || die "--size needs a whole number above 0, not '$size'"
mkdir -p "$dest"
for split in train valid test; do
    for language in "$source" "$target"; do
        file="$split.$language"
        [ -s "$data/$file" ] || die "--data: $data has no file $file (or an empty one)"
        if [ "$split" = train ] && [ -n "$size" ]; then
            head -n "$size" "$data/$file" > "$dest/$file.part"
        else
            cp "$data/$file" "$dest/$file.part"
        fi
        mv "$dest/$file.part" "$dest/$file"
    done
    lines="$(wc -l < "$dest/$split.$source")"
    [ "$lines" = "$(wc -l < "$dest/$split.$target")" ] || die "$data: $split.$source and $split.$target differ in length"
    [ "$split" != train ] || [ -z "$size" ] || [ "$lines" = "$size" ] || die "--size $size: there are $lines pairs"
    say "$split: $lines pairs"
done
