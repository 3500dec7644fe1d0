# Shared by the scripts of this folder; sourced, not run. Needs bash.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

die() { echo "${0##*/}: $*" >&2; exit 2; }
say() { echo "[$(date +%H:%M:%S)] $*" >&2; }

# use_environment [extras]: put a Python environment with this package first on PATH.
# $FAIRSEQ_EISL_VENV, else the active one ($VIRTUAL_ENV), else .venv in this checkout. It is made, and
# the package is installed into it with the pins of constraints.txt, where that has not been done.
# FAIRSEQ_EISL_VENV=none takes the python on PATH as it is (conda, containers).
use_environment() {
    local extras="${1:-plots}" venv="${FAIRSEQ_EISL_VENV:-${VIRTUAL_ENV:-$ROOT/.venv}}"
    [ "$venv" != none ] || return 0
    if [ ! -x "$venv/bin/python" ]; then
        local python="${PYTHON:-python3}"
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' || \
            die "Python 3.11 or 3.12 is needed (the pins of constraints.txt; fairseq has no later build), not $("$python" -V 2>&1); name one with PYTHON=python3.12"
        say "making the environment $venv"
        "$python" -m venv "$venv"
    fi
    export VIRTUAL_ENV="$venv" PATH="$venv/bin:$PATH"
    # A line for each of the extras that are there, of this checkout as it is now.
    local stamp="$venv/.fairseq_eisl" state part missing=""
    state="$ROOT $(cat "$ROOT/constraints.txt" "$ROOT/setup.py" | cksum)"
    for part in ${extras//,/ }; do grep -qsxF "$part $state" "$stamp" || missing=yes; done
    if [ -n "$missing" ]; then
        say "installing fairseq_eisl[$extras] and what it needs (torch alone is large: minutes the first time)"
        # A fairseq that is there lacks torchaudio, on purpose: setup.py says why.
        python -m pip install -q --no-warn-conflicts -c "$ROOT/constraints.txt" -e "$ROOT[fairseq-deps,$extras]" || die "the installation failed"
        # A fairseq that is there stays.
        python -c 'import importlib.util, sys; sys.exit(not importlib.util.find_spec("fairseq"))' || \
            python -m pip install -q -c "$ROOT/constraints.txt" --no-deps ve-fairseq || die "the installation failed"
        [ -s "$stamp" ] && grep -qF "$state" "$stamp" || : > "$stamp"
        for part in ${extras//,/ }; do echo "$part $state" >> "$stamp"; done
    fi
}

# run LOG COMMAND...: run with output to LOG; on failure show its end and stop.
run() {
    local log="$1"; shift
    if ! "$@" > "$log" 2>&1; then
        tail -n 25 "$log" >&2
        die "failed: $1 (whole log: $log)"
    fi
}

# show_help FILE: the comment that a script begins with.
show_help() { sed -n '2,/^[^#]/s/^# \{0,1\}//p' "$1"; }

# Whoever sources this file shows its help for -h or --help before it does anything.
for word in "$@"; do
    case "$word" in -h|--help) show_help "$0"; exit 0 ;; esac
done
unset word

# destination NAME: stop unless it can be a folder to write to.
destination() {
    case "${1:-}" in
        "") die "DEST, the folder to write to, comes first (--help says more)" ;;
        -*) die "DEST, the folder to write to, comes first, not $1 (--help says more)" ;;
    esac
}

# package_python WORDS...: python with the package of this checkout.
package_python() {
    local python
    python="$(command -v python || command -v python3)" || die "python is needed on PATH"
    PYTHONPATH="$ROOT${PYTHONPATH:+:$PYTHONPATH}" "$python" "$@"
}

# sentences [options] FROM TO...: texts made ready for training (prepare/sentences.py).
sentences() { package_python "$ROOT/scripts/prepare/sentences.py" "$@" || exit 2; }

# choose WHAT NAME CHOICES...: stop unless NAME is one of the choices.
choose() {
    local what="$1" name="$2"; shift 2
    for choice in "$@"; do [ "$name" != "$choice" ] || return 0; done
    die "the first argument is $what, not '$name' (choose from $(printf '%s, ' "$@" | sed 's/, $//'))"
}

# run_recipe CONFIG WORDS...: one recipe of configs/, in the environment of this package.
run_recipe() {
    local config="$1"; shift
    use_environment plots
    exec python -m fairseq_eisl.recipes run "$ROOT/configs/$config.yaml" "$@"
}
