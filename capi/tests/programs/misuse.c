/* What callers get wrong: null, closed and foreign handles, wrong sizes, wrong values. Nothing of it is undefined. */

#include <fcntl.h>
#include <unistd.h>

#include "check.h"

static void handles(void) {
    tt_shm_device device;
    tt_shm_tracker *tracker = tracker_with_device(&device);
    tt_shm_segment *segment = segment_of(tracker);
    tt_shm_table *table = NULL;
    uint64_t head;
    EQUAL(tt_shm_alloc(NULL, device, TT_SHM_BUFFER_DRAM, 1, 1), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_segment_head(NULL, &head), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_table_open("nobody-is-here", &table), TT_SHM_ERR_NOT_FOUND);
    TRUE(table == NULL);
    /* Of another kind. */
    EQUAL(tt_shm_free((tt_shm_tracker *)(void *)segment, device, 1), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_segment_head((tt_shm_segment *)(void *)tracker, &head), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_segment_close((tt_shm_segment *)(void *)tracker), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_table_close((tt_shm_table *)(void *)segment), TT_SHM_ERR_HANDLE);
    /* Never given out: any address, and any number. */
    uint64_t memory[8] = {0};
    EQUAL(tt_shm_free((tt_shm_tracker *)(void *)memory, device, 1), TT_SHM_ERR_HANDLE);
    for (uintptr_t number = 1; number != 0; number <<= 1) {
        EQUAL(tt_shm_free((tt_shm_tracker *)number, device, 1), TT_SHM_ERR_HANDLE);
        EQUAL(tt_shm_segment_head((tt_shm_segment *)number, &head), TT_SHM_ERR_HANDLE);
        EQUAL(tt_shm_free((tt_shm_tracker *)((uintptr_t)tracker ^ number), device, 1),
              number == UINT64_C(1) << 55 ? TT_SHM_ERR_UNMATCHED_FREE : TT_SHM_ERR_HANDLE);
    }
    TRUE(!tt_shm_tracker_is_enabled(NULL) && !tt_shm_tracker_is_enabled((tt_shm_tracker *)(void *)segment));
    /* A span. */
    tt_shm_span *span = NULL;
    OK(tt_shm_span_begin(segment, &span));
    EQUAL(tt_shm_span_begin(segment, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_span_begin((tt_shm_segment *)(void *)span, &span), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_span_poll((tt_shm_span *)(void *)segment, NULL), TT_SHM_ERR_HANDLE);
    tt_shm_span_report report = {.size = 3};
    size_t count = 0;
    EQUAL(tt_shm_span_end(span, &report), TT_SHM_ERR_SIZE);
    EQUAL(tt_shm_span_devices(span, NULL, 0, &count), TT_SHM_ERR_STATE);
    EQUAL(tt_shm_span_parts(span, 0, TT_SHM_MEMORY_DRAM, NULL, 0, &count), TT_SHM_ERR_STATE);
    OK(tt_shm_span_end(span, NULL));
    EQUAL(tt_shm_span_end(span, NULL), TT_SHM_ERR_STATE);
    EQUAL(tt_shm_span_poll(span, NULL), TT_SHM_ERR_STATE);
    OK(tt_shm_span_devices(span, NULL, 0, &count));
    EQUAL(count, 1);
    EQUAL(tt_shm_span_parts(span, 0, 2, NULL, 0, &count), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_span_devices(span, NULL, 1, &count), TT_SHM_ERR_NULL);
    OK(tt_shm_span_close(span));
    EQUAL(tt_shm_span_close(span), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_span_close(NULL), TT_SHM_ERR_NULL);
    /* Closed. */
    tt_shm_tracker *without_waiting = NULL;
    OK(tt_shm_tracker_without_waiting(tracker, &without_waiting));
    TRUE(without_waiting != tracker);
    OK(tt_shm_alloc(without_waiting, device, TT_SHM_BUFFER_DRAM, 1, 1));
    OK(tt_shm_free(tracker, device, 1));
    OK(tt_shm_tracker_close(tracker));
    EQUAL(tt_shm_tracker_close(tracker), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 1), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_marker(without_waiting, TT_SHM_MARKER_INSTANT, 1, 0), TT_SHM_ERR_HANDLE);
    OK(tt_shm_segment_close(segment));
    EQUAL(tt_shm_segment_close(segment), TT_SHM_ERR_HANDLE);
    /* The next ones have other handles, though they may be in the same places. */
    tt_shm_tracker *second = tracker_with_device(&device);
    tt_shm_segment *other = segment_of(second);
    TRUE(second != tracker && other != segment);
    EQUAL(tt_shm_alloc(tracker, device, TT_SHM_BUFFER_DRAM, 1, 1), TT_SHM_ERR_HANDLE);
    EQUAL(tt_shm_segment_head(segment, &head), TT_SHM_ERR_HANDLE);
    /* A segment whose process has closed it can still be read. */
    OK(tt_shm_tracker_close(second));
    OK(tt_shm_segment_head(other, &head));
    OK(tt_shm_segment_close(other));
}

static void pointers(void) {
    tt_shm_device device;
    tt_shm_tracker *tracker = tracker_with_device(&device);
    tt_shm_segment *segment = segment_of(tracker);
    tt_shm_name name;
    size_t size;
    uint64_t number;
    EQUAL(tt_shm_tracker_open(NULL, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_tracker_for_process(NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_register_device(tracker, NULL, &device), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_intern(tracker, NULL, 3, &name), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_intern(tracker, "x", 1, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_alloc_on(tracker, NULL, 1, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_alloc_on(tracker, &device, 1, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_free_many(tracker, &device, 1, NULL, 1, &size), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_own_counters(tracker, device, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_segment_open(NULL, &segment), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_segment_counters(segment, NULL, 1, &size, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_segment_allocations(segment, NULL, 1, &size, NULL), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_segment_read_from(segment, 0, NULL, 0, NULL, NULL, &number), TT_SHM_ERR_NULL);
    EQUAL(tt_shm_segment_calibration(segment, NULL), TT_SHM_ERR_NULL);
    /* Nothing to report on is nothing to do. */
    OK(tt_shm_free_on(tracker, NULL, 0, 1));
    OK(tt_shm_alloc_many(tracker, &device, 1, NULL, 0, NULL));
    /* Not aligned. */
    _Alignas(8) char bytes[128] = {0};
    EQUAL(tt_shm_alloc_on(tracker, &device, 1, (tt_shm_buffer *)(void *)(bytes + 4)), TT_SHM_ERR_ALIGNMENT);
    EQUAL(tt_shm_segment_head(segment, (uint64_t *)(void *)(bytes + 1)), TT_SHM_ERR_ALIGNMENT);
    /* More than there can be. */
    EQUAL(tt_shm_free_on(tracker, &device, SIZE_MAX, 1), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_free_many(tracker, &device, 1, &number, SIZE_MAX / 4, &size), TT_SHM_ERR_VALUE);
    OK(tt_shm_tracker_close(tracker));
    OK(tt_shm_segment_close(segment));
}

static void sizes(void) {
    tt_shm_device device;
    tt_shm_tracker *tracker = tracker_with_device(&device);
    /* An older caller's: what it lacks is zero. */
    tt_shm_buffer buffer = {.size = 32, .type_ = TT_SHM_BUFFER_DRAM, .id = 1, .bytes = 100, .address = 9, .name = 9};
    OK(tt_shm_alloc_on(tracker, &device, 1, &buffer));
    EQUAL(own(tracker, device).dram_used_bytes, 100);
    /* A newer caller's: what is not known here must be zero. */
    struct {
        tt_shm_buffer known;
        uint64_t more[2];
    } newer = {{.size = sizeof newer, .type_ = TT_SHM_BUFFER_DRAM, .id = 2, .bytes = 10}, {0, 0}};
    OK(tt_shm_alloc_on(tracker, &device, 1, &newer.known));
    newer.known.id = 3;
    newer.more[1] = 1;
    EQUAL(tt_shm_alloc_on(tracker, &device, 1, &newer.known), TT_SHM_ERR_SIZE);
    TRUE(strstr(tt_shm_last_error(), "tt_shm_buffer") != NULL);
    uint32_t wrong[] = {0, 1, 4, 7, 71, UINT32_MAX};
    for (size_t place = 0; place < sizeof wrong / sizeof *wrong; place++) {
        buffer.size = wrong[place];
        EQUAL(tt_shm_alloc_on(tracker, &device, 1, &buffer), TT_SHM_ERR_SIZE);
        tt_shm_counters counters;
        counters.size = wrong[place];
        EQUAL(tt_shm_own_counters(tracker, device, &counters), TT_SHM_ERR_SIZE);
    }
    EQUAL(own(tracker, device).dram_used_bytes, 110);
    /* An array whose elements disagree. */
    tt_shm_buffer many[2] = {{.size = sizeof buffer, .id = 10, .bytes = 1}, {.size = 0, .id = 11, .bytes = 1}};
    size_t recorded = 9;
    EQUAL(tt_shm_alloc_many(tracker, &device, 1, many, 2, &recorded), TT_SHM_ERR_SIZE);
    EQUAL(recorded, 0);
    /* Results: as much as there is room for, and zeros after what is known. */
    struct {
        tt_shm_counters known;
        uint64_t more[4];
    } longer;
    memset(&longer, 0xff, sizeof longer);
    longer.known.size = sizeof longer;
    OK(tt_shm_own_counters(tracker, device, &longer.known));
    EQUAL(longer.known.size, sizeof longer);
    EQUAL(longer.more[0] | longer.more[3], 0);
    struct {
        uint32_t size, open;
        uint64_t position, time, dram_used_bytes;
        uint64_t after;
    } shorter = {.size = 32, .after = 77};
    OK(tt_shm_own_counters(tracker, device, (tt_shm_counters *)(void *)&shorter));
    EQUAL(shorter.dram_used_bytes, 110);
    EQUAL(shorter.after, 77);
    OK(tt_shm_tracker_close(tracker));
}

static void values(void) {
    tt_shm_device device;
    tt_shm_tracker *tracker = tracker_with_device(&device), *unused;
    EQUAL(tt_shm_alloc(tracker, device, 5, 1, 1), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_alloc(tracker, device, 256, 1, 1), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_marker(tracker, 3, 1, 0), TT_SHM_ERR_VALUE);
    tt_shm_kernel kernel = {.size = sizeof kernel, .type_ = 3};
    EQUAL(tt_shm_kernel_load(tracker, &device, 1, &kernel, NULL), TT_SHM_ERR_VALUE);
    kernel = (tt_shm_kernel){.size = sizeof kernel, .core_type = 2};
    EQUAL(tt_shm_kernel_load(tracker, &device, 1, &kernel, NULL), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_name_live(tracker, &device, 1, 3, 0, 0, 0, 0), TT_SHM_ERR_VALUE);
    tt_shm_failure failure = {.size = sizeof failure, .class_ = 200};
    EQUAL(tt_shm_alloc_failed(tracker, &device, 1, &failure), TT_SHM_ERR_VALUE);
    tt_shm_dispatch_info dispatch = {.size = sizeof dispatch, .program = 1};
    EQUAL(tt_shm_launch(tracker, &device, 1, &dispatch, NULL, 0, 3), TT_SHM_ERR_VALUE);
    tt_shm_options options = {.size = sizeof options, .flags = TT_SHM_OPEN_ENABLED | TT_SHM_OPEN_DISABLED};
    EQUAL(tt_shm_tracker_open(&options, &unused), TT_SHM_ERR_VALUE);
    options.flags = 1u << 31;
    EQUAL(tt_shm_tracker_open(&options, &unused), TT_SHM_ERR_VALUE);
    options = (tt_shm_options){.size = sizeof options, .flags = TT_SHM_OPEN_ENABLED, .name_space = "no/such"};
    EQUAL(tt_shm_tracker_open(&options, &unused), TT_SHM_ERR_OPEN_NAMESPACE);
    options.name_space = "\xff";
    EQUAL(tt_shm_tracker_open(&options, &unused), TT_SHM_ERR_UTF8);
    options.name_space = NULL;
    options.ring_slots = 63;
    EQUAL(tt_shm_tracker_open(&options, &unused), TT_SHM_ERR_OPEN_SETTING);
    tt_shm_calibration calibration = {.size = sizeof calibration, .clock = 9};
    uint64_t time = 1;
    EQUAL(tt_shm_to_monotonic_ns(&calibration, &time, &time, 1), TT_SHM_ERR_VALUE);
    OK(tt_shm_tracker_close(tracker));

    /* Descriptors: of none, of something else, of a segment. */
    tt_shm_segment *segment = NULL;
    EQUAL(tt_shm_segment_open_fd(-1, &segment), TT_SHM_ERR_IO);
    EQUAL(tt_shm_segment_open_fd(1 << 20, &segment), TT_SHM_ERR_IO);
    int null = open("/dev/null", O_RDONLY);
    EQUAL(tt_shm_segment_open_fd(null, &segment), TT_SHM_ERR_REFUSED);
    OK(close(null));
    tracker = tracker_with_device(&device);
    char path[256];
    OK(tt_shm_tracker_path(tracker, path, sizeof path, NULL));
    int file = open(path, O_RDONLY);
    OK(tt_shm_segment_open_fd(file, &segment));
    EQUAL(tt_shm_table_open_fd(file, (tt_shm_table **)(void *)&time), TT_SHM_ERR_REFUSED);
    OK(close(file));
    uint32_t alive = 0;
    OK(tt_shm_segment_is_alive(segment, &alive));
    EQUAL(alive, 1);
    OK(tt_shm_segment_close(segment));
    OK(tt_shm_tracker_close(tracker));
    for (int code = -1; code < 300; code++) {
        TRUE(strlen(tt_shm_strerror(code)) > 3);
    }
}

int main(void) {
    handles();
    pointers();
    sizes();
    values();
    return 0;
}
