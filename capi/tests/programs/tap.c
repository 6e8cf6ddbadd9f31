/* A tap that reports already is told to end when a tracker is opened, and asks before it begins. Here is one that only counts. */

#include <dlfcn.h>

#include "check.h"

static int ended(void *tap) {
    int *count = dlsym(tap, "ended");
    TRUE(count != NULL);
    return *count;
}

int main(int count, char **arguments) {
    TRUE(count == 2);
    /* For itself alone, as Python and `tt-smi attach` load it. */
    void *tap = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    TRUE(tap != NULL);
    tt_shm_tracker *tracker;
    tt_shm_options options = {.size = sizeof options, .flags = TT_SHM_OPEN_DISABLED};
    OK(tt_shm_tracker_open(&options, &tracker));
    EQUAL(ended(tap), 0);
    EQUAL(tt_shm_is_reporting(), 0);
    options.flags = TT_SHM_OPEN_ENABLED | TT_SHM_OPEN_BESIDE_TAP;
    OK(tt_shm_tracker_open(&options, &tracker));
    EQUAL(ended(tap), 0);
    EQUAL(tt_shm_is_reporting(), 0);
    options.flags = TT_SHM_OPEN_ENABLED;
    OK(tt_shm_tracker_open(&options, &tracker));
    EQUAL(ended(tap), 1);
    EQUAL(tt_shm_is_reporting(), 1);
    OK(tt_shm_tracker_close(tracker));
    EQUAL(tt_shm_is_reporting(), 0);
    /* That of the process: once, and also by the proof of concept's client. */
    EQUAL(tt_shm_client_is_enabled(), 1);
    EQUAL(ended(tap), 2);
    OK(tt_shm_tracker_for_process(&tracker));
    OK(tt_shm_client_allocation(0, 1, 0, 1));
    EQUAL(ended(tap), 2);
    EQUAL(tt_shm_is_reporting(), 1);
    return 0;
}
