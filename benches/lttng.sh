#!/bin/sh
# What one LTTng-UST tracepoint with the fields of an allocation costs, in nanoseconds per event.
#
# Installs lttng from Debian's packages if it is not there (needs root and a network), traces a small C
# program in a session of its own, and removes everything that it made. Prints one line of JSON, which
# the benchmark `peers` reads; if LTTng is not to be had, one line that says so, and exit code 77.
set -eu

skip() { echo "lttng: skipped: $1"; exit 77; }

if ! command -v lttng-sessiond >/dev/null 2>&1 || [ ! -e /usr/include/lttng/tracepoint.h ]; then
    [ "$(id -u)" = 0 ] || skip "not installed, and only root can install it"
    export DEBIAN_FRONTEND=noninteractive
    apt-get install -y --no-install-recommends lttng-tools liblttng-ust-dev gcc libc6-dev \
        >/dev/null 2>&1 || skip "apt-get cannot install lttng-tools and liblttng-ust-dev"
fi
command -v gcc >/dev/null 2>&1 || skip "there is no C compiler"

here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
session="tt-shm-bench-$$"
daemon=
export LTTNG_HOME="$work"
# LTTng leaves these in /dev/shm for the next program that is traced; ours to remove if we made them.
waits=$(ls -d /dev/shm/lttng-ust-wait-* 2>/dev/null || true)

clean() {
    lttng destroy "$session" >/dev/null 2>&1 || true
    if [ -n "$daemon" ]; then
        kill "$daemon" 2>/dev/null || true
        wait "$daemon" 2>/dev/null || true
    fi
    rm -rf "$work"
    [ -n "$waits" ] || rm -f /dev/shm/lttng-ust-wait-*
}
trap clean EXIT INT TERM

gcc -O2 -I"$here/lttng" -o "$work/events" "$here/lttng/events.c" -llttng-ust -ldl

lttng-sessiond --no-kernel >/dev/null 2>&1 &
daemon=$!
for _ in 1 2 3 4 5 6 7 8 9 10; do
    lttng list >/dev/null 2>&1 && break
    sleep 0.3
done

lttng create "$session" --output "$work/trace" >/dev/null
# As our ring: 16384 events of some 64 bytes fit, and the oldest are overwritten, so nothing waits.
lttng enable-channel --userspace --overwrite --subbuf-size=512k --num-subbuf=4 ours >/dev/null
lttng enable-event --userspace --channel ours 'tt_shm_bench:*' >/dev/null
lttng start >/dev/null
"$work/events" "${1:-200000}" "${2:-20}"
lttng stop >/dev/null
