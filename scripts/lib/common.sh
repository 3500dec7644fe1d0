# Shared by the scripts of this folder; sourced, not run. Needs bash.

ROOT="$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)"

die() { echo "${0##*/}: $*" >&2; exit 2; }
say() { echo "[$(date +%H:%M:%S)] $*" >&2; }

# use_environment [extras]: put a Python environment with this package first on PATH.
# $FAIRSEQ_EISL_VENV, else the active one ($VIRTUAL_ENV), else .venv in this checkout. It is made, and
# the package is installed into it with the pins of constraints.txt, where that has not been done.
use_environment() {
    local extras="${1:-plots}" venv="${FAIRSEQ_EISL_VENV:-${VIRTUAL_ENV:-$ROOT/.venv}}"
    if [ ! -x "$venv/bin/python" ]; then
        local python="${PYTHON:-python3}"
        "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] <= (3, 12))' || \
            die "Python 3.11 or 3.12 is needed (the pins of constraints.txt; fairseq has no later build), not $("$python" -V 2>&1); name one with PYTHON=python3.12"
        say "making the environment $venv"
        "$python" -m venv "$venv"
    fi
    export VIRTUAL_ENV="$venv" PATH="$venv/bin:$PATH"
    local stamp="$venv/.fairseq_eisl" wanted
    wanted="$ROOT $extras $(cat "$ROOT/constraints.txt" "$ROOT/setup.py" | cksum)"
    if [ "$(cat "$stamp" 2>/dev/null)" != "$wanted" ]; then
        say "installing fairseq_eisl[$extras] and what it needs"
        python -m pip install -q -c "$ROOT/constraints.txt" -e "$ROOT[$extras]" || die "the installation failed"
        echo "$wanted" > "$stamp"
    fi
}

# CPU runs: let the allocator keep its memory, which saves a fifth of the time of a step on Linux.
tune_cpu() {
    export MALLOC_MMAP_THRESHOLD_=4294967296 MALLOC_TRIM_THRESHOLD_=4294967296 MALLOC_TOP_PAD_=67108864
}

has_cuda() { python -c 'import sys, torch; sys.exit(not torch.cuda.is_available())'; }

# run LOG COMMAND...: run with output to LOG; on failure show its end and stop.
run() {
    local log="$1"; shift
    if ! "$@" > "$log" 2>&1; then
        tail -n 25 "$log" >&2
        die "failed: $1 (whole log: $log)"
    fi
}
