#!/usr/bin/env bash
# Measures Postrider beside notmuch, mu, SQLite FTS5 and bare Tantivy; see docs/benchmarks.md.
#
#   bench/run.sh SOURCE SCRATCH
#
# SOURCE   directory of mboxes (a tree of Mailman archives, for instance); only read
# SCRATCH  directory for everything that is made, a few GB; must be empty or not there
#
# Environment:
#   REPEAT=1         runs of each timed step; tables show medians
#   MESSAGES=50000   messages of the Maildir made from SOURCE (0: all that are distinct)
#   STEPS="mbox maildir replay query http"   parts to do
#   PORT=17700       port of the server on 127.0.0.1
#   PROFILE=release  profile of cargo; figures of any other mean nothing
set -Eeuo pipefail

usage() { sed -n '2,/^set /{/^set /d;s/^# \{0,1\}//;p}' "$0" >&2; exit 2; }
[[ $# -eq 2 && -d $1 ]] || usage

ROOT=$(cd "$(dirname "$0")/.." && pwd)
SOURCE=$(cd "$1" && pwd)
mkdir -p "$2"
SCRATCH=$(cd "$2" && pwd)
REPEAT=${REPEAT:-1}
MESSAGES=${MESSAGES:-50000}
STEPS=${STEPS:-mbox maildir replay query http}
PORT=${PORT:-17700}
PROFILE=${PROFILE:-release}
RESULTS=$SCRATCH/results.jsonl
MAILDIR=$SCRATCH/maildir
NOTMUCH_CONFIG=$SCRATCH/notmuch.conf
MU_HOME=$SCRATCH/mu
NOW=starting
SERVER=

say() { printf '%s\n' "$*" >&2; }
die() { say "bench: $NOW: $*"; exit 1; }
wants() { [[ " $STEPS " == *" $1 "* ]]; }

[[ -z $(ls -A "$SCRATCH") ]] || die "$SCRATCH is not empty"
[[ $REPEAT =~ ^[1-9][0-9]*$ && $MESSAGES =~ ^[0-9]+$ ]] || die "REPEAT and MESSAGES are numbers"
for step in $STEPS; do
    case $step in mbox|maildir|replay|query|http) ;; *) die "no step $step" ;; esac
done
# What comes after builds on what the import of the Maildir leaves.
if wants replay || wants query || wants http; then
    wants maildir || die "replay, query and http need the step maildir"
fi
mkdir -p "$SCRATCH"/{logs,tmp}
export TMPDIR=$SCRATCH/tmp NOTMUCH_CONFIG
: >"$RESULTS"
unset POSTRIDER_DATA POSTRIDER_CONFIG

ended() {
    local code=$?
    trap - ERR EXIT
    if [[ -n $SERVER ]]; then kill -TERM "$SERVER" 2>/dev/null || true; fi
    if [[ -x ${BENCH:-} ]]; then
        if "$BENCH" report "$RESULTS" >"$SCRATCH/report.md"; then
            cat "$SCRATCH/report.md"
        else
            code=1
        fi
    fi
    if ((code != 0)); then
        say "bench: FAILED in: $NOW (logs in $SCRATCH/logs); the tables hold what was measured before"
    fi
    exit "$code"
}
trap ended EXIT
trap 'say "bench: $NOW: line $LINENO: $BASH_COMMAND"' ERR

# --- programs -------------------------------------------------------------------------------------

NOW="installing programs"
missing=()
command -v notmuch >/dev/null || missing+=(notmuch)
command -v mu >/dev/null || missing+=(maildir-utils)
[[ -x /usr/bin/time ]] || missing+=(time)
if ((${#missing[@]})); then
    [[ $(id -u) -eq 0 ]] || die "install these first: ${missing[*]}"
    apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq "${missing[@]}" >&2
fi

NOW=building
export CARGO_TARGET_DIR=${CARGO_TARGET_DIR:-$ROOT/target}
LOAD=$(cut -d' ' -f1 /proc/loadavg)
cargo build --locked --profile "$PROFILE" --manifest-path "$ROOT/Cargo.toml" --bin postrider >&2
cargo build --locked --profile "$PROFILE" --manifest-path "$ROOT/bench/Cargo.toml" >&2
built=$CARGO_TARGET_DIR/${PROFILE/#dev/debug}
# Copies: another build must not replace them under way.
cp "$built/postrider" "$built/postrider-bench" "$SCRATCH/"
POSTRIDER=$SCRATCH/postrider
BENCH=$SCRATCH/postrider-bench

# --- parts of steps -------------------------------------------------------------------------------

# A line of results, printed by the bench program under the name of a step.
record() {
    local step=$1
    shift
    NOW=$step
    say "== $step"
    "$BENCH" --step "$step" "$@" | tee -a "$RESULTS" >&2
}

# Runs a program under time(1): `timed NAME COMMAND…`; output goes to logs/NAME.out.
timed() {
    local name=$1
    shift
    NOW=$name
    say "== $name: $*"
    /usr/bin/time -v -o "$SCRATCH/logs/$name.time" "$@" \
        >"$SCRATCH/logs/$name.out" 2>"$SCRATCH/logs/$name.err" || {
        tail -n 20 "$SCRATCH/logs/$name.err" "$SCRATCH/logs/$name.out" >&2
        die "exit status is not 0"
    }
}

disk_bytes() { du -s -B1 "$1" | cut -f1; }

# Size of mail in files, gzipped ones unpacked.
raw_bytes() {
    local plain packed
    plain=$(find "$1" -type f ! -name '*.gz' -printf '%s\n' | awk '{ sum += $1 } END { printf "%d", sum }')
    packed=$(find "$1" -type f -name '*.gz' -exec gzip -dc {} + | wc -c)
    echo $((plain + packed))
}

# Whatever comes first must not pay for reading the disk.
warm() { find "$1" -type f -exec cat {} + >/dev/null; }

# Refuses a count that is more than 1 % off: figures over different messages mean nothing.
near() {
    local count=$1 wanted=$2
    ((count * 100 >= wanted * 99 && count * 100 <= wanted * 101)) \
        || die "holds $count messages, not about $wanted"
}

import_postrider() { # SOURCE-NAME PATH MESSAGES-WANTED(0: any)
    local name=import-$1-postrider data=$SCRATCH/data-$1 account read stored failed run
    for ((run = 1; run <= REPEAT; run++)); do
        rm -rf "$data"
        timed "$name" "$POSTRIDER" --data-dir "$data" --json import "$2"
        account=$("$BENCH" account "$SCRATCH/logs/$name.out")
        read -r read stored failed <<<"$account"
        ((failed == 0)) || die "$failed messages failed"
        (($3 == 0)) || near "$stored" "$3"
        record "$name" timed "$SCRATCH/logs/$name.time" messages="$read" stored="$stored" \
            disk_bytes="$(disk_bytes "$data")"
    done
}

import_fts5() { # SOURCE-NAME PATH
    local name=import-$1-fts5 run
    for ((run = 1; run <= REPEAT; run++)); do
        rm -f "$SCRATCH/fts5-$1.db"*
        timed "$name" "$BENCH" --step "$name" fts5-load "$2" "$SCRATCH/fts5-$1.db"
        # Seconds are its own, without the start of the process; CPU is that of the process.
        local cpu
        cpu=$(awk '/User time|System time/ { sum += $NF } END { printf "%.2f", sum }' \
            "$SCRATCH/logs/$name.time")
        sed "s/}\$/,\"cpu_seconds\":$cpu}/" "$SCRATCH/logs/$name.out" | tee -a "$RESULTS" >&2
    done
}

import_notmuch() { # MESSAGES
    local name=import-maildir-notmuch run count
    cat >"$NOTMUCH_CONFIG" <<EOF
[database]
path=$SCRATCH/notmuch
mail_root=$MAILDIR
[user]
name=Bench
primary_email=bench@example.org
[new]
tags=
ignore=
[search]
exclude_tags=
[maildir]
synchronize_flags=false
EOF
    for ((run = 1; run <= REPEAT; run++)); do
        rm -rf "$SCRATCH/notmuch"
        mkdir "$SCRATCH/notmuch"
        timed "$name" notmuch new --quiet --no-hooks
        count=$(notmuch count '*')
        near "$count" "$1"
        record "$name" timed "$SCRATCH/logs/$name.time" messages="$1" stored="$count" \
            disk_bytes="$(disk_bytes "$SCRATCH/notmuch")"
    done
}

import_mu() { # MESSAGES
    local name=import-maildir-mu run count
    for ((run = 1; run <= REPEAT; run++)); do
        rm -rf "$MU_HOME"
        mu init --quiet --maildir="$MAILDIR" --muhome="$MU_HOME" >"$SCRATCH/logs/mu-init.out" 2>&1
        timed "$name" mu index --quiet --muhome="$MU_HOME"
        count=$(mu info store --muhome="$MU_HOME" | awk -F'|' '/messages in store/ { print $3 + 0 }')
        near "$count" "$1"
        record "$name" timed "$SCRATCH/logs/$name.time" messages="$1" stored="$count" \
            disk_bytes="$(disk_bytes "$MU_HOME")"
    done
}

# --- steps ----------------------------------------------------------------------------------------

mu_version=$(mu --version | sed -n '1s/.*version //p')
record machine note "date=$(date -u +%F)" \
    "commit=$(git -C "$ROOT" describe --always --dirty --abbrev=12 2>/dev/null || echo unknown)" \
    "cpu=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)" "cores=$(nproc)" \
    "memory_kb=$(awk '/^MemTotal/ { print $2 }' /proc/meminfo)" "kernel=$(uname -sr)" \
    "filesystem=$(df --output=fstype "$SCRATCH" | tail -n 1)" "load=$LOAD" \
    "profile=$PROFILE" "rustc=$(rustc --version | cut -d' ' -f2)" \
    "notmuch=$(notmuch --version | cut -d' ' -f2)" "mu=${mu_version%)}"

if wants mbox; then
    NOW="warming $SOURCE"
    warm "$SOURCE"
    record source-mbox note "source_bytes=$(raw_bytes "$SOURCE")"
    import_postrider mbox "$SOURCE" 0
    import_fts5 mbox "$SOURCE"
fi

if wants maildir; then
    record source-maildir-made maildir "$MAILDIR" "$MESSAGES" "$SOURCE"
    NOW="warming $MAILDIR"
    warm "$MAILDIR"
    count=$(find "$MAILDIR/cur" -type f | wc -l)
    record source-maildir note "source_bytes=$(raw_bytes "$MAILDIR")" "messages=$count"
    # Dirty pages of what was just written are nobody's import.
    sync
    import_postrider maildir "$MAILDIR" "$count"
    import_notmuch "$count"
    import_mu "$count"
    import_fts5 maildir "$MAILDIR"
fi

if wants replay; then
    for ((run = 1; run <= REPEAT; run++)); do
        rm -rf "$SCRATCH/data-replay"
        cp -a "$SCRATCH/data-maildir" "$SCRATCH/data-replay"
        sync
        record rebuild rebuild "$SCRATCH/data-replay"
        record tantivy tantivy-loop "$MAILDIR"
    done
    rm -rf "$SCRATCH/data-replay"
fi

if wants query; then
    for ((run = 1; run <= REPEAT; run++)); do
        record query-fts5 fts5-query "$SCRATCH/fts5-maildir.db"
        record query-cli-postrider command-query native 5 \
            "$POSTRIDER" --data-dir "$SCRATCH/data-maildir" search --limit 10 {}
        record query-cli-notmuch command-query notmuch 5 notmuch search --limit=10 {}
        record query-cli-notmuch-messages command-query notmuch 5 \
            notmuch search --output=messages --limit=10 {}
        record query-cli-mu command-query mu 5 mu find --muhome="$MU_HOME" -n 10 {}
    done
    record count-postrider command-count native \
        "$POSTRIDER" --data-dir "$SCRATCH/data-maildir" --json search --limit 10 {}
    record count-notmuch command-count notmuch notmuch search --output=messages {}
    record count-mu command-count mu mu find --muhome="$MU_HOME" -f i {}
fi

if wants http; then
    for ((run = 1; run <= REPEAT; run++)); do
        NOW="starting the server"
        rm -f "$SCRATCH/data-maildir/server.json"
        # By words, as the other programs do; and no vectors are computed meanwhile.
        echo 'embedding = "off"' >"$SCRATCH/words.toml"
        "$POSTRIDER" --config "$SCRATCH/words.toml" --data-dir "$SCRATCH/data-maildir" \
            serve --listen "127.0.0.1:$PORT" \
            >"$SCRATCH/logs/server.out" 2>"$SCRATCH/logs/server.err" &
        SERVER=$!
        for ((tries = 0; tries < 300; tries++)); do
            [[ -e $SCRATCH/data-maildir/server.json ]] && break
            kill -0 "$SERVER" 2>/dev/null || { tail "$SCRATCH/logs/server.err" >&2; die "it ended"; }
            sleep 0.1
        done
        [[ -e $SCRATCH/data-maildir/server.json ]] || die "no server.json after 30 s"
        record query-http http-query "$SCRATCH/data-maildir"
        peak=$(awk '/^VmHWM/ { print $2 * 1024 }' "/proc/$SERVER/status")
        record server note "peak_rss_bytes=$peak"
        NOW="stopping the server"
        kill -TERM "$SERVER"
        stopping=$SERVER SERVER=
        ended=0
        wait "$stopping" || ended=$?
        # 130: interrupted, as it was.
        ((ended == 0 || ended == 130)) || die "it ended with $ended"
    done
fi

NOW=done
