/* Calls while the process ends: from functions that were registered before and after the tracker was opened, and from
 * destructors of threads. */

#include <pthread.h>

#include "check.h"

static tt_shm_tracker *tracker;
static tt_shm_device device;
static pthread_key_t key;

static void last(void) {
    /* After the library's own, which removed the file: harmless, whatever it says. */
    (void)tt_shm_free(tracker, device, 1);
    (void)tt_shm_client_deallocation(0, 1);
    (void)tt_shm_last_error();
    EQUAL(tt_shm_free(NULL, device, 1), TT_SHM_ERR_NULL);
    TRUE(strlen(tt_shm_last_error()) > 0);
}

static void first(void) {
    OK(tt_shm_free(tracker, device, 2));
    EQUAL(own(tracker, device).dram_used_bytes, 10);
}

static void thread_ends(void *unused) {
    (void)unused;
    OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 3, 30));
    EQUAL(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 3, 30), TT_SHM_ERR_DOUBLE_ALLOC);
    TRUE(strlen(tt_shm_last_error()) > 0);
}

static void *thread(void *unused) {
    (void)unused;
    OK(pthread_setspecific(key, &key));
    return NULL;
}

int main(void) {
    EQUAL(atexit(last), 0);
    tracker = tracker_with_device(&device);
    OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 10));
    OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 2, 20));
    EQUAL(tt_shm_client_allocation(0, 1, 0, 1), TT_SHM_OK);
    OK(pthread_key_create(&key, thread_ends));
    pthread_t ended;
    OK(pthread_create(&ended, NULL, thread, NULL));
    OK(pthread_join(ended, NULL));
    EQUAL(own(tracker, device).dram_used_bytes, 60);
    OK(tt_shm_free(tracker, device, 3));
    EQUAL(atexit(first), 0);
    return 0;
}
