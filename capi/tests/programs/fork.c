/* A forked child has a segment of its own, with the same devices and names, also while a thread of its parent reports. */

#include <pthread.h>
#include <sys/wait.h>
#include <unistd.h>

#include "check.h"

static tt_shm_tracker *tracker;
static tt_shm_device device;
static volatile int stop;

static void *report(void *unused) {
    (void)unused;
    for (uint64_t id = 1000; !stop; id++) {
        OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, id, 64));
        OK(tt_shm_free(tracker, device, id));
    }
    return NULL;
}

static void child(tt_shm_name name) {
    char path[256];
    tt_shm_segment *segment;
    tt_shm_process process = {.size = sizeof process};
    /* What was live in the parent is none of its own. */
    EQUAL(tt_shm_free(tracker, device, 1), TT_SHM_ERR_UNMATCHED_FREE);
    tt_shm_buffer buffer = {.size = sizeof buffer, .type_ = TT_SHM_BUFFER_L1, .id = 1, .bytes = 10, .name = name};
    OK(tt_shm_alloc_on(tracker, &device, 1, &buffer));
    EQUAL(own(tracker, device).l1_used_bytes, 10);
    EQUAL(own(tracker, device).dram_used_bytes, 0);
    OK(tt_shm_tracker_path(tracker, path, sizeof path, NULL));
    OK(tt_shm_segment_open(path, &segment));
    OK(tt_shm_segment_process(segment, &process));
    EQUAL(process.pid, getpid());
    char text[16];
    OK(tt_shm_segment_name(segment, name, text, sizeof text, NULL));
    EQUAL(strcmp(text, "named"), 0);
    OK(tt_shm_segment_close(segment));
}

int main(void) {
    tracker = tracker_with_device(&device);
    tt_shm_segment *segment = segment_of(tracker);
    tt_shm_name name;
    OK(tt_shm_intern(tracker, "named", 5, &name));
    OK(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 4096));
    pthread_t thread;
    OK(pthread_create(&thread, NULL, report, NULL));
    for (int round = 0; round < 20; round++) {
        pid_t pid = fork();
        TRUE(pid >= 0);
        if (pid == 0) {
            /* A handle of the parent's is its own, too. */
            uint32_t alive = 0;
            OK(tt_shm_segment_is_alive(segment, &alive));
            EQUAL(alive, 1);
            child(name);
            /* By exit, which removes its segment, every other time. */
            if (round % 2 == 0) {
                exit(0);
            }
            OK(tt_shm_tracker_close(tracker));
            _exit(0);
        }
        int status = -1;
        EQUAL(waitpid(pid, &status, 0), pid);
        EQUAL(status, 0);
    }
    stop = 1;
    OK(pthread_join(thread, NULL));
    EQUAL(own(tracker, device).dram_used_bytes, 4096);
    EQUAL(own(tracker, device).l1_used_bytes, 0);
    size_t total = 0;
    OK(tt_shm_segment_list(NULL, NULL, 0, &total));
    EQUAL(total, 1);
    OK(tt_shm_segment_close(segment));
    return 0;
}
