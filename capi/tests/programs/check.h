/* What the programs of the tests share. */

#ifndef CHECK_H
#define CHECK_H

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "tt_shm.h"

/* Both sides as numbers: codes, sizes, counts. */
#define EQUAL(found, expected)                                                                                         \
    do {                                                                                                               \
        unsigned long long found_ = (unsigned long long)(found), expected_ = (unsigned long long)(expected);           \
        if (found_ != expected_) {                                                                                     \
            fprintf(stderr, "%s:%d: %s is %llu, not %llu (%s)\n", __FILE__, __LINE__, #found, found_, expected_,       \
                    tt_shm_last_error());                                                                              \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

#define OK(call) EQUAL(call, TT_SHM_OK)

#define TRUE(condition)                                                                                                \
    do {                                                                                                               \
        if (!(condition)) {                                                                                            \
            fprintf(stderr, "%s:%d: not so: %s (%s)\n", __FILE__, __LINE__, #condition, tt_shm_last_error());          \
            abort();                                                                                                   \
        }                                                                                                              \
    } while (0)

/* A tracker that is on, with one device. */
static inline tt_shm_tracker *tracker_with_device(tt_shm_device *device) {
    tt_shm_options options;
    tt_shm_device_info info;
    tt_shm_tracker *tracker = NULL;
    memset(&options, 0, sizeof options);
    options.size = sizeof options;
    options.flags = TT_SHM_OPEN_ENABLED;
    OK(tt_shm_tracker_open(&options, &tracker));
    memset(&info, 0, sizeof info);
    info.size = sizeof info;
    info.chip_id = 7;
    OK(tt_shm_register_device(tracker, &info, device));
    return tracker;
}

/* The segment that a tracker writes, opened as any other process would. */
static inline tt_shm_segment *segment_of(tt_shm_tracker *tracker) {
    char path[256];
    size_t needed = 0;
    tt_shm_segment *segment = NULL;
    OK(tt_shm_tracker_path(tracker, path, sizeof path, &needed));
    EQUAL(needed, strlen(path) + 1);
    OK(tt_shm_segment_open(path, &segment));
    return segment;
}

static inline tt_shm_counters own(tt_shm_tracker *tracker, tt_shm_device device) {
    tt_shm_counters counters;
    counters.size = sizeof counters;
    OK(tt_shm_own_counters(tracker, device, &counters));
    return counters;
}

#endif
