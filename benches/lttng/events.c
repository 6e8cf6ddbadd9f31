/* Emits pairs of allocation and free, and prints what the best of some rounds took per event. */
#define LTTNG_UST_TRACEPOINT_CREATE_PROBES
#define LTTNG_UST_TRACEPOINT_DEFINE
#include "provider.h"

#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now_ns(void)
{
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static void emit(uint8_t kind, uint64_t id)
{
    lttng_ust_tracepoint(tt_shm_bench, allocation, kind, 0, id, 4096, id << 12, 64);
}

int main(int argc, char **argv)
{
    long events = argc > 1 ? atol(argv[1]) : 200000;
    long rounds = argc > 2 ? atol(argv[2]) : 20;
    double best = 1e18;

    /* Asserted before timing: the session is on, and the tracepoint is enabled by it. */
    for (int wait = 0; wait < 3000 && !lttng_ust_tracepoint_enabled(tt_shm_bench, allocation); wait++) {
        struct timespec pause = { 0, 1000000 };
        nanosleep(&pause, NULL);
    }
    if (!lttng_ust_tracepoint_enabled(tt_shm_bench, allocation)) {
        puts("lttng: skipped: the tracepoint was not enabled by the session");
        return 77;
    }
    for (long round = 0; round < rounds; round++) {
        double start = now_ns();
        for (long event = 0; event < events; event++)
            emit(1 + event % 2, (uint64_t)event / 2);
        double mean = (now_ns() - start) / events;
        if (mean < best)
            best = mean;
    }
    double *single = malloc(sizeof(double) * events);
    for (long event = 0; event < events; event++) {
        double start = now_ns();
        emit(1 + event % 2, (uint64_t)event / 2);
        single[event] = now_ns() - start;
    }
    qsort(single, events, sizeof(double), by_value);
    printf("{\"ns\": %.1f, \"percentiles\": {\"p50\": %.0f, \"p99\": %.0f, \"p99_9\": %.0f, \"p99_99\": %.0f, \"max\": %.0f}}\n",
           best, single[events / 2], single[(long)(events * 0.99)], single[(long)(events * 0.999)],
           single[(long)(events * 0.9999)], single[events - 1]);
    return 0;
}
