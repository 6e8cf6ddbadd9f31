/* An exclusive tracker: all calls work for the thread that has it, and are refused to all others. */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static tt_shm_tracker *tracker;
static tt_shm_device device;

static tt_shm_tracker *opened(uint32_t flags) {
    tt_shm_tracker *made = NULL;
    tt_shm_options options = {.size = sizeof options, .flags = TT_SHM_OPEN_ENABLED | flags};
    OK(tt_shm_tracker_open(&options, &made));
    return made;
}

static void in_thread(void *(*work)(void *)) {
    pthread_t thread;
    OK(pthread_create(&thread, NULL, work, NULL));
    OK(pthread_join(thread, NULL));
}

static void *refused(void *unused) {
    tt_shm_buffer buffer = {.size = sizeof buffer, .type_ = TT_SHM_BUFFER_DRAM, .id = 9, .bytes = 1};
    tt_shm_dispatch_info dispatch = {.size = sizeof dispatch, .program = 1};
    tt_shm_counters counters = {.size = sizeof counters};
    tt_shm_name name;
    EQUAL(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 9, 1), TT_SHM_ERR_THREAD);
    TRUE(strstr(tt_shm_last_error(), "exclusive") != NULL);
    EQUAL(tt_shm_alloc_on(tracker, &device, 1, &buffer), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_dispatch_on(tracker, &device, 1, &dispatch), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_free(tracker, device, 1), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_intern(tracker, "x", 1, &name), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_own_counters(tracker, device, &counters), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_tracker_path(tracker, NULL, 0, NULL), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_tracker_release(tracker), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_tracker_acquire(tracker), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_tracker_close(tracker), TT_SHM_ERR_THREAD);
    /* What needs no lock is answered. */
    EQUAL(tt_shm_tracker_is_enabled(tracker), 1);
    EQUAL(tt_shm_is_reporting(), 1);
    return unused;
}

/* It is passed from thread to thread; each sees what those before it did. */
static void *next_owner(void *unused) {
    OK(tt_shm_tracker_acquire(tracker));
    uint64_t count = own(tracker, device).classes[TT_SHM_CLASS_DRAM].live_count;
    for (uint64_t id = 1000 * (count + 1); id < 1000 * (count + 1) + 100; id++) {
        OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, id, 8));
    }
    EQUAL(own(tracker, device).classes[TT_SHM_CLASS_DRAM].live_count, count + 100);
    OK(tt_shm_tracker_release(tracker));
    EQUAL(tt_shm_free(tracker, device, 1), TT_SHM_ERR_THREAD);
    return unused;
}

/* Many want it at the same time: one at a time has it. */
static void *contender(void *unused) {
    for (int done = 0; done < 50;) {
        int32_t code = tt_shm_tracker_acquire(tracker);
        if (code == TT_SHM_ERR_THREAD) {
            sched_yield();
            continue;
        }
        OK(code);
        OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_L1, 7, 64));
        OK(tt_shm_free(tracker, device, 7));
        OK(tt_shm_tracker_release(tracker));
        done++;
    }
    return unused;
}

/* A thread that ends without letting go. */
static void *forgetful(void *unused) {
    tracker = opened(TT_SHM_OPEN_EXCLUSIVE);
    return unused;
}

static void in_child(void) {
    pid_t child = fork();
    TRUE(child >= 0);
    if (child == 0) {
        /* With nothing live, as every forked child begins; the thread that forked has the tracker here, too. */
        EQUAL(own(tracker, device).dram_used_bytes, 0);
        OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 5));
        EQUAL(own(tracker, device).dram_used_bytes, 5);
        in_thread(refused);
        OK(tt_shm_tracker_close(tracker));
        _exit(0);
    }
    int status = 0;
    TRUE(waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0);
}

int main(void) {
    tracker = opened(TT_SHM_OPEN_EXCLUSIVE);
    tt_shm_device_info info = {.size = sizeof info, .chip_id = 7};
    OK(tt_shm_register_device(tracker, &info, &device));
    tt_shm_buffer buffer = {.size = sizeof buffer, .type_ = TT_SHM_BUFFER_DRAM, .id = 1, .bytes = 4096};
    OK(tt_shm_alloc_on(tracker, &device, 1, &buffer));
    EQUAL(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 4096), TT_SHM_ERR_DOUBLE_ALLOC);
    EQUAL(own(tracker, device).dram_used_bytes, 4096);
    tt_shm_cb cb = {.size = sizeof cb, .program = 3, .id = 1, .bytes_per_core = 10, .cores = 2};
    OK(tt_shm_cb_alloc(tracker, &device, 1, &cb));
    OK(tt_shm_dispatch(tracker, device, 3));
    EQUAL(own(tracker, device).cb_resident_bytes, 20);
    OK(tt_shm_program_end(tracker, &device, 1, 3));
    in_thread(refused);
    EQUAL(own(tracker, device).dram_used_bytes, 4096);

    /* It has a segment as all others. */
    tt_shm_segment *segment = segment_of(tracker);
    tt_shm_counters read[1] = {{.size = sizeof read[0]}};
    OK(tt_shm_segment_counters(segment, read, 1, NULL, NULL));
    EQUAL(read[0].dram_used_bytes, 4096);
    OK(tt_shm_segment_close(segment));

    OK(tt_shm_tracker_acquire(tracker));
    OK(tt_shm_tracker_release(tracker));
    EQUAL(tt_shm_tracker_release(tracker), TT_SHM_ERR_THREAD);
    in_thread(next_owner);
    in_thread(next_owner);
    pthread_t threads[4];
    for (int thread = 0; thread < 4; thread++) {
        OK(pthread_create(&threads[thread], NULL, contender, NULL));
    }
    for (int thread = 0; thread < 4; thread++) {
        OK(pthread_join(threads[thread], NULL));
    }
    OK(tt_shm_tracker_acquire(tracker));
    EQUAL(own(tracker, device).classes[TT_SHM_CLASS_DRAM].live_count, 201);
    EQUAL(own(tracker, device).classes[TT_SHM_CLASS_L1].alloc_count, 200);
    in_child();
    EQUAL(own(tracker, device).classes[TT_SHM_CLASS_DRAM].live_count, 201);

    /* Misuse: what it has not, what others are not, and the closed one. */
    tt_shm_tracker *other = NULL;
    EQUAL(tt_shm_tracker_without_waiting(tracker, &other), TT_SHM_ERR_VALUE);
    uint64_t no_wait = (uint64_t)(uintptr_t)tracker | UINT64_C(1) << 55;
    EQUAL(tt_shm_free((tt_shm_tracker *)(uintptr_t)no_wait, device, 1), TT_SHM_ERR_VALUE);
    other = opened(0);
    EQUAL(tt_shm_tracker_release(other), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_tracker_acquire(other), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_tracker_release(NULL), TT_SHM_ERR_NULL);
    OK(tt_shm_tracker_close(other));
    EQUAL(tt_shm_tracker_acquire(other), TT_SHM_ERR_HANDLE);
    OK(tt_shm_tracker_close(tracker));
    EQUAL(tt_shm_tracker_acquire(tracker), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 1), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_is_reporting(), 0);
    in_thread(forgetful);
    EQUAL(tt_shm_tracker_acquire(tracker), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_tracker_close(tracker), TT_SHM_ERR_THREAD);
    EQUAL(tt_shm_tracker_is_enabled(tracker), 1);
    /* Its segment is removed when the process ends. */
    return 0;
}
