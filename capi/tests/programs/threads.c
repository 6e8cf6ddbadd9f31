/* Eight threads report, read, and open and close, all at the same time; nothing is lost. */

#include <pthread.h>

#include "check.h"

#define THREADS 8
#define ROUNDS 2000

static tt_shm_tracker *tracker;
static tt_shm_device device;

static void *report(void *number) {
    uint64_t first = (uint64_t)(uintptr_t)number * ROUNDS;
    tt_shm_segment *segment = segment_of(tracker);
    for (uint64_t id = first; id < first + ROUNDS; id++) {
        OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, id, 64));
        if (id % 2 == 0) {
            OK(tt_shm_free(tracker, device, id));
        }
        EQUAL(tt_shm_free(tracker, device, UINT64_MAX - id), TT_SHM_ERR_UNMATCHED_FREE);
        if (id % 64 == 0) {
            uint64_t head = 0;
            OK(tt_shm_segment_head(segment, &head));
            TRUE(head > 0);
            OK(tt_shm_segment_close(segment));
            EQUAL(tt_shm_segment_head(segment, &head), TT_SHM_ERR_HANDLE);
            segment = segment_of(tracker);
        }
    }
    OK(tt_shm_segment_close(segment));
    return NULL;
}

/* Until another thread has closed it. */
static void *report_until_closed(void *closed) {
    int32_t code;
    do {
        code = tt_shm_marker(closed, TT_SHM_MARKER_INSTANT, 1, 0);
    } while (code == TT_SHM_OK);
    EQUAL(code, TT_SHM_ERR_HANDLE);
    return NULL;
}

int main(void) {
    pthread_t threads[THREADS];
    tracker = tracker_with_device(&device);
    for (uintptr_t thread = 0; thread < THREADS; thread++) {
        OK(pthread_create(&threads[thread], NULL, report, (void *)thread));
    }
    for (int thread = 0; thread < THREADS; thread++) {
        OK(pthread_join(threads[thread], NULL));
    }
    tt_shm_counters counters = own(tracker, device);
    EQUAL(counters.classes[TT_SHM_CLASS_DRAM].live_count, THREADS * ROUNDS / 2);
    EQUAL(counters.classes[TT_SHM_CLASS_DRAM].alloc_count, THREADS * ROUNDS);
    EQUAL(counters.dram_used_bytes, THREADS * ROUNDS / 2 * 64);
    tt_shm_segment *segment = segment_of(tracker);
    tt_shm_process process = {.size = sizeof process};
    OK(tt_shm_segment_process(segment, &process));
    EQUAL(process.anomalies[0], THREADS * ROUNDS);
    OK(tt_shm_segment_close(segment));

    for (int thread = 0; thread < THREADS; thread++) {
        OK(pthread_create(&threads[thread], NULL, report_until_closed, tracker));
    }
    OK(tt_shm_tracker_close(tracker));
    for (int thread = 0; thread < THREADS; thread++) {
        OK(pthread_join(threads[thread], NULL));
    }
    return 0;
}
