#!/usr/bin/env bash
# Multi30k task 1 (German-English, lower-cased, normalised, tokenised) into a folder as
# {train,valid,test}.{de,en}; test is test_2018_flickr, as in the paper.
#   bash scripts/prepare/multi30k.sh DEST [--data DIR] [--test test_2016_flickr]
# --data: a folder that has the files already; without it they are fetched (7 MB) from the data
# set's own repository, github.com/multi30k/dataset, and a broken download goes on where it stopped.
# Either way the files must have the checksums of multi30k.sha256.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE/../lib/common.sh"
URL=https://raw.githubusercontent.com/multi30k/dataset/master/data/task1/tok

[ $# -ge 1 ] || die "usage: multi30k.sh DEST [--data DIR]"
dest="$1" data="" test=test_2018_flickr; shift
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --test) test="${2:?--test needs a name}"; shift 2 ;;
        *) die "unknown option $1 (choose from --data, --test)" ;;
    esac
done
grep -q " $test[.]" "$HERE/multi30k.sha256" || \
    die "--test: there is no $test (choose from test_2016_flickr, test_2018_flickr)"
[ -z "$data" ] || [ -d "$data" ] || die "--data: there is no folder $data"
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
        die "$file is not the file it should be (sha256 $checksum expected); it was removed"
    fi
    mv "$target.part" "$target"
done < "$HERE/multi30k.sha256"
say "Multi30k is in $dest"
