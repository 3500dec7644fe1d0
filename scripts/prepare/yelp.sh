#!/usr/bin/env bash
# Yelp's negative and positive sentences (Shen et al., 2017), with what people have written instead of
# the test sentences (Li et al., 2018), into a folder; styles.py says what it holds.
#   bash scripts/prepare/yelp.sh DEST --data DIR [--first N] [--first-valid N]
# DIR has {train,dev,test}.{0,1} (0 negative, 1 positive) and test_reference.{0,1}: sentences of
# github.com/shentianxiao/language-style-transfer (data/yelp/sentiment.*), and, as the test set, the
# 1000 of github.com/lijuncen/Sentiment-and-Style-Transfer (data/yelp), none of which may be in train.
# --first N, --first-valid N: only so many of each style. --monolingual changes nothing: the text of
# both styles is always there as mono.{train,valid}.positive.
set -euo pipefail
HERE="$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)"
source "$HERE/../lib/common.sh"
[ $# -ge 1 ] || die "usage: yelp.sh DEST --data DIR [--first N] [--first-valid N] (--help says more)"
destination "$1"
dest="$1" data="" options=(); shift
while [ $# -gt 0 ]; do
    case "$1" in
        --data) data="${2:?--data needs a folder}"; shift 2 ;;
        --first|--first-valid) options+=("$1" "${2:?$1 needs a number}"); shift 2 ;;
        --monolingual) shift ;;
        *) die "unknown option $1 (choose from --data, --first, --first-valid, --monolingual)" ;;
    esac
done
[ -n "$data" ] || die "--data DIR is needed; the head of this script says what it holds"
[ -d "$data" ] || die "--data: there is no folder $data"
for file in {train,dev,test,test_reference}.{0,1}; do
    [ -s "$data/$file" ] || die "--data: $data has no file $file (or an empty one)"
done
mkdir -p "$dest"
package_python "$HERE/styles.py" "$dest" negative positive --train "$data"/train.{0,1} \
    --valid "$data"/dev.{0,1} --test "$data"/test.{0,1} --human "$data"/test_reference.{0,1} \
    ${options[@]+"${options[@]}"} || exit 2
say "Yelp is in $dest"
