#!/usr/bin/env bash
# Multi30k task 1 (German-English, lower-cased, normalised, tokenised) into a folder as
# {train,valid,test}.{de,en}; test is test_2018_flickr, as in the paper.
#   bash scripts/prepare/multi30k.sh DEST [--data DIR] [--test test_2016_flickr] [--monolingual]
# --data: a folder that has the files already; without it they are fetched (7 MB) from the data
# set's own repository, github.com/multi30k/dataset, and a broken download goes on where it stopped.
# Either way the files must have the checksums of multi30k.sha256 (a part of Multi30k, or a version
# of your own: text.sh).
# --monolingual: also mono.{train,valid}.en, English captions for denoising pretraining, from the
# file mono.lc.norm.tok.en of the folder --data: captions of task 2, lower-cased, normalised and
# tokenised like the others, without any sentence of task 1. The last 1000 are for validation.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE/../lib/common.sh"
URL=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/tok

[ $# -ge 1 ] || die "usage: multi30k.sh DEST [--data DIR] [--test NAME] [--monolingual] (--help says more)"
destination "$1"
dest="$1" data="" mono="" test=test_2018_flickr; shift
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --test) test="${2:?--test needs a name}"; shift 2 ;;
        --monolingual) mono=mono.lc.norm.tok.en; shift ;;
        *) die "unknown option $1 (choose from --data, --test, --monolingual)" ;;
    esac
done
case "$test" in
    test_2016_flickr|test_2018_flickr) ;;
    *) die "--test: there is no $test (choose from test_2016_flickr, test_2018_flickr)" ;;
esac
[ -z "$data" ] || [ -d "$data" ] || die "--data: there is no folder $data"
[ -z "$mono" ] || [ -s "$data/$mono" ] || \
    die "--monolingual: $mono is not in the folder of --data (${data:-not given}); it cannot be fetched, the head of this script says what it is"
mkdir -p "$dest"

while read -r checksum file; do
    split="${file%%.*}" language="${file##*.}"
    case "$split" in
        val) split=valid ;;
        "$test") split=test ;;
        test_*) continue ;;
    esac
    target="$dest/$split.$language"
    if [ -e "$target" ] && echo "$checksum  $target" | sha256sum --status -c -; then continue; fi
    if [ -n "$data" ]; then
        [ -s "$data/$file" ] || die "--data: $data has no file $file (or an empty one)"
        cp "$data/$file" "$target.part"
    else
        command -v curl > /dev/null || die "curl is needed to fetch $file; or give a folder with --data"
        say "fetching $file"
        curl -fsSL --retry 5 --retry-delay 2 -C - -o "$target.part" "$URL/$file" || \
            die "could not fetch $URL/$file; fetch the files by hand and give their folder with --data"
    fi
    if ! echo "$checksum  $target.part" | sha256sum --status -c -; then
        rm -f "$target.part"
        [ -n "$data" ] || die "$file is not the file it should be (sha256 $checksum expected); it was removed"
        die "$data/$file is not that of Multi30k (sha256 $checksum expected). For a part of it, or a corpus of your own, name the files {train,valid,test}.{de,en} and use the preparation text: bash scripts/prepare/text.sh $dest de en --data $data; in a recipe data.prepare=text data.options=[]"
    fi
    mv "$target.part" "$target"
done < "$HERE/multi30k.sha256"
if [ -n "$mono" ]; then
    sentences "$data/$mono" "$dest/mono.part"
    [ "$(wc -l < "$dest/mono.part")" -gt 2000 ] || { rm "$dest/mono.part"; die "--monolingual: $data/$mono has too few lines"; }
    head -n -1000 "$dest/mono.part" > "$dest/mono.train.en.part"
    tail -n 1000 "$dest/mono.part" > "$dest/mono.valid.en.part"
    for split in train valid; do mv "$dest/mono.$split.en.part" "$dest/mono.$split.en"; done
    rm "$dest/mono.part"
fi
say "Multi30k is in $dest"
