/* Every call of the writer, and what a reader finds then. */

#include "check.h"

static tt_shm_tracker *tracker;
static tt_shm_device devices[2];

static void devices_and_names(void) {
    tt_shm_device_info info = {.size = sizeof info,
                               .known = TT_SHM_KNOWN_LOGICAL | TT_SHM_KNOWN_POOL_L1 | TT_SHM_KNOWN_BOARD,
                               .chip_id = 1,
                               .logical_id = 0,
                               .board = "n300"};
    info.pools[TT_SHM_POOL_L1] = (tt_shm_pool){.banks = 64, .bank_bytes = 1393312, .alignment = 32};
    OK(tt_shm_register_device(tracker, &info, &devices[0]));
    info.chip_id = 2;
    info.logical_id = 1;
    OK(tt_shm_register_device(tracker, &info, &devices[1]));
    EQUAL(devices[0], 0);
    EQUAL(devices[1], 1);
    tt_shm_device again;
    OK(tt_shm_register_device(tracker, &info, &again));
    EQUAL(again, 1);
    OK(tt_shm_device_open(tracker, devices, 2));
    EQUAL(own(tracker, 0).open, 1);
}

static void buffers(void) {
    tt_shm_name weights, none;
    OK(tt_shm_intern(tracker, "weights", 7, &weights));
    OK(tt_shm_intern(tracker, NULL, 0, &none));
    EQUAL(none, 0);
    OK(tt_shm_alloc(tracker, 0, TT_SHM_BUFFER_DRAM, 1, 4096));
    EQUAL(tt_shm_alloc(tracker, 0, TT_SHM_BUFFER_DRAM, 1, 4096), TT_SHM_ERR_DOUBLE_ALLOC);
    TRUE(strstr(tt_shm_last_error(), "0x1") != NULL && strstr(tt_shm_last_error(), "4096") != NULL);
    /* On both devices, in every bank of the pool. */
    tt_shm_buffer buffer = {.size = sizeof buffer,
                            .type_ = TT_SHM_BUFFER_L1,
                            .id = 2,
                            .bytes = 2048,
                            .known = TT_SHM_HAS_BYTES_PER_BANK | TT_SHM_HAS_ADDRESS,
                            .address = 0x1000,
                            .bytes_per_bank = 2048,
                            .cores = 64,
                            .name = weights};
    OK(tt_shm_alloc_on(tracker, devices, 2, &buffer));
    EQUAL(own(tracker, 0).l1_used_bytes, 64 * 2048);
    EQUAL(own(tracker, 1).l1_used_bytes, 64 * 2048);
    EQUAL(own(tracker, 1).classes[TT_SHM_CLASS_L1].requested_bytes, 2048);
    /* All or nothing: device 0 has buffer 1, so that neither gets it. */
    buffer.id = 1;
    EQUAL(tt_shm_alloc_on(tracker, devices, 2, &buffer), TT_SHM_ERR_DOUBLE_ALLOC);
    EQUAL(own(tracker, 1).l1_used_bytes, 64 * 2048);

    tt_shm_buffer many[3];
    memset(many, 0, sizeof many);
    for (size_t place = 0; place < 3; place++) {
        many[place] = (tt_shm_buffer){.size = sizeof(tt_shm_buffer), .type_ = TT_SHM_BUFFER_TRACE, .bytes = 10};
        many[place].id = place == 2 ? 1 : 100 + place;
    }
    size_t recorded = 99;
    EQUAL(tt_shm_alloc_many(tracker, devices, 1, many, 3, &recorded), TT_SHM_ERR_DOUBLE_ALLOC);
    EQUAL(recorded, 2);
    OK(tt_shm_alloc_many(tracker, &devices[1], 1, many, 3, NULL));
    uint64_t ids[3] = {100, 101, 555};
    EQUAL(tt_shm_free_many(tracker, devices, 1, ids, 3, &recorded), TT_SHM_ERR_UNMATCHED_FREE);
    EQUAL(recorded, 2);
    OK(tt_shm_free_many(tracker, &devices[1], 1, ids, 2, &recorded));
    EQUAL(recorded, 2);
    OK(tt_shm_free_on(tracker, &devices[1], 1, 1));

    OK(tt_shm_name_live(tracker, devices, 2, TT_SHM_KIND_BUFFER, 0, 2, weights, 0));
    OK(tt_shm_name_if_live(tracker, devices, 2, TT_SHM_KIND_BUFFER, 0, 987, weights));
    EQUAL(tt_shm_name_live(tracker, devices, 1, TT_SHM_KIND_KERNEL, 0, 987, weights, 0), TT_SHM_ERR_UNMATCHED_FREE);

    OK(tt_shm_alloc(tracker, 0, TT_SHM_BUFFER_L1_SMALL, 3, 64));
    EQUAL(tt_shm_free_sized(tracker, devices, 1, 3, 65), TT_SHM_ERR_SIZE_MISMATCH);
    EQUAL(tt_shm_free(tracker, 0, 3), TT_SHM_ERR_UNMATCHED_FREE);
    OK(tt_shm_alloc(tracker, 0, TT_SHM_BUFFER_SYSTEM_MEMORY, 4, 64));
    OK(tt_shm_free_dropped(tracker, devices, 1, 4));
    EQUAL(tt_shm_alloc(tracker, 9, TT_SHM_BUFFER_DRAM, 5, 1), TT_SHM_ERR_UNKNOWN_DEVICE);
    EQUAL(tt_shm_alloc(tracker, 0, TT_SHM_BUFFER_DRAM, 5, UINT64_MAX), TT_SHM_ERR_SIZE_OUT_OF_RANGE);
}

static void programs(void) {
    tt_shm_cb cb = {.size = sizeof cb, .cores = 4, .program = 50, .id = 1, .bytes_per_core = 1024};
    OK(tt_shm_cb_alloc(tracker, devices, 2, &cb));
    EQUAL(own(tracker, 0).cb_resident_bytes, 0);
    tt_shm_kernel kernels[2] = {
        {.size = sizeof(tt_shm_kernel), .type_ = TT_SHM_KERNEL_APPLICATION, .id = 51, .known = TT_SHM_HAS_PROGRAM,
         .program = 50, .binary_bytes = 100, .cores = 4},
        {.size = sizeof(tt_shm_kernel), .type_ = TT_SHM_KERNEL_APPLICATION, .id = 52, .known = TT_SHM_HAS_PROGRAM,
         .program = 50, .binary_bytes = 10, .cores = 4},
    };
    tt_shm_dispatch_info dispatch = {.size = sizeof dispatch, .program = 50};
    OK(tt_shm_launch(tracker, devices, 2, &dispatch, kernels, 2, TT_SHM_BINARY_NOT_SENT));
    EQUAL(own(tracker, 0).cb_resident_bytes, 4096);
    EQUAL(own(tracker, 0).kernel_resident_bytes, 440);
    OK(tt_shm_dispatch(tracker, 0, 50));
    dispatch.times = 5;
    dispatch.lane = 1;
    dispatch.queue = 1;
    OK(tt_shm_dispatch_on(tracker, devices, 1, &dispatch));
    EQUAL(own(tracker, 0).dispatches, 7);
    EQUAL(own(tracker, 0).cached_dispatches, 6);
    dispatch.lane = TT_SHM_LANES;
    EQUAL(tt_shm_dispatch_on(tracker, devices, 1, &dispatch), TT_SHM_ERR_LANE_OUT_OF_RANGE);
    EQUAL(tt_shm_dispatch(tracker, 0, 999), TT_SHM_ERR_UNKNOWN_PROGRAM);

    tt_shm_kernel fabric = {.size = sizeof fabric, .type_ = TT_SHM_KERNEL_FABRIC, .id = 60, .binary_bytes = 57344,
                            .cores = 16, .core_type = TT_SHM_CORES_ETHERNET};
    uint32_t cached = 9;
    OK(tt_shm_kernel_load(tracker, devices, 1, &fabric, &cached));
    EQUAL(cached, 0);
    OK(tt_shm_kernel_load(tracker, devices, 1, &fabric, &cached));
    EQUAL(cached, 1);
    EQUAL(own(tracker, 0).system_kernel_eth_bytes, 57344 * 16);
    OK(tt_shm_kernel_unload(tracker, devices, 1, 60, 57344 * 16));
    OK(tt_shm_cb_free(tracker, &devices[1], 1, 50, 1, TT_SHM_UNKNOWN));
    EQUAL(tt_shm_cb_free(tracker, &devices[1], 1, 50, 1, 4096), TT_SHM_ERR_UNMATCHED_FREE);
    OK(tt_shm_kernel_ring(tracker, devices, 2, 70656, 4096, 3));
    EQUAL(own(tracker, 1).kernel_ring_used_bytes, 4096);
}

static void notes(void) {
    tt_shm_failure failure = {.size = sizeof failure, .class_ = TT_SHM_CLASS_L1, .request_bytes = 1 << 20,
                              .known = TT_SHM_HAS_FREE | TT_SHM_HAS_NEEDED, .free_bytes = 100,
                              .largest_free_bytes = 50, .needed_per_bank_bytes = 16384, .banks = 64, .per_bank = 1};
    OK(tt_shm_alloc_failed(tracker, devices, 1, &failure));
    EQUAL(own(tracker, 0).failed_allocs, 1);
    OK(tt_shm_marker(tracker, TT_SHM_MARKER_BEGIN, 1, 0));
    OK(tt_shm_marker(tracker, TT_SHM_MARKER_END, 1, 0));
    TRUE(own(tracker, 0).dram_peak_bytes > own(tracker, 0).dram_used_bytes);
    OK(tt_shm_reset_peaks(tracker, devices, 2));
    EQUAL(own(tracker, 0).dram_peak_bytes, own(tracker, 0).dram_used_bytes);
    OK(tt_shm_self_checks(tracker, 3, 0));
    OK(tt_shm_partial(tracker, 1));
    OK(tt_shm_partial(tracker, 0));
}

/* The same through the reader. */
static void read_back(void) {
    tt_shm_segment *segment = segment_of(tracker);
    tt_shm_process process = {.size = sizeof process};
    OK(tt_shm_segment_process(segment, &process));
    EQUAL(process.source, TT_SHM_SOURCE_RING);
    EQUAL(process.devices, 2);
    EQUAL(process.self_checks, 3);
    EQUAL(process.flags, TT_SHM_PROCESS_TIME_KNOWN | TT_SHM_PROCESS_SHARES_CLOCK);
    EQUAL(strcmp(process.name, "a C host"), 0);
    TRUE(process.pid == process.pid_here && process.head > 20 && process.anomalies[1] == 3);
    uint32_t alive = 0;
    OK(tt_shm_segment_is_alive(segment, &alive));
    EQUAL(alive, 1);

    tt_shm_device_info infos[3];
    size_t total = 0;
    infos[0].size = sizeof infos[0];
    OK(tt_shm_segment_devices(segment, infos, 3, &total));
    EQUAL(total, 2);
    EQUAL(infos[1].chip_id, 2);
    EQUAL(infos[1].pools[TT_SHM_POOL_L1].bank_bytes, 1393312);
    EQUAL(strcmp(infos[1].board, "n300"), 0);
    TRUE((infos[1].known & TT_SHM_KNOWN_DRAM) == 0);

    tt_shm_counters counters[2];
    uint64_t position = 0;
    counters[0].size = sizeof counters[0];
    OK(tt_shm_segment_counters(segment, counters, 2, &total, &position));
    EQUAL(total, 2);
    EQUAL(position, process.head);
    tt_shm_counters mine = own(tracker, 0);
    EQUAL(memcmp(&counters[0], &mine, sizeof mine), 0);
    OK(tt_shm_segment_counters(segment, NULL, 0, &total, NULL));
    EQUAL(total, 2);

    tt_shm_allocation live[16];
    tt_shm_listing listing = {.size = sizeof listing};
    OK(tt_shm_segment_allocations(segment, live, 2, &total, &listing));
    EQUAL(listing.exact, 1);
    EQUAL(total, 8);
    OK(tt_shm_segment_allocations(segment, live, 16, &total, NULL));
    size_t buffers_found = 0;
    char name[32];
    for (size_t place = 0; place < total; place++) {
        buffers_found += live[place].kind == TT_SHM_EVENT_ALLOC;
        if (live[place].id == 2 && live[place].kind == TT_SHM_EVENT_ALLOC) {
            EQUAL(live[place].bytes, 64 * 2048);
            EQUAL(live[place].aux, 2048);
            EQUAL(live[place].address, 0x1000);
            OK(tt_shm_segment_name(segment, live[place].name, name, sizeof name, NULL));
            EQUAL(strcmp(name, "weights"), 0);
        }
    }
    EQUAL(buffers_found, 3);
    size_t needed = 0;
    OK(tt_shm_segment_name(segment, 1, name, 4, &needed));
    EQUAL(needed, 8);
    EQUAL(strcmp(name, "wei"), 0);
    EQUAL(tt_shm_segment_name(segment, 0, name, 4, &needed), TT_SHM_ERR_NOT_FOUND);

    tt_shm_program found[4];
    found[0].size = sizeof found[0];
    OK(tt_shm_segment_programs(segment, found, 4, &total));
    EQUAL(total, 2);
    EQUAL(found[0].program, 50);
    EQUAL(found[0].kernel_count, 2);
    EQUAL(found[0].kernel_bytes, 440);
    EQUAL(found[0].cb_bytes, 4096);
    EQUAL(found[0].dispatches, 7);
    EQUAL(found[1].cb_bytes, 0);

    tt_shm_kernel_sharing sharing[2];
    sharing[0].size = sizeof sharing[0];
    OK(tt_shm_segment_kernel_sharing(segment, sharing, 2, &total));
    TRUE(total >= 1);
    EQUAL(sharing[0].loaded_bytes, own(tracker, (tt_shm_device)sharing[0].device).kernel_loaded_bytes);
    EQUAL(sharing[0].loaded_bytes, sharing[0].unique_bytes + sharing[0].shared_bytes + sharing[0].unhashed_bytes);

    /* All events, some at a time, without a gap. */
    tt_shm_event events[7];
    uint64_t next = 0, missed = 9, count = 0;
    size_t read = 0;
    do {
        OK(tt_shm_segment_read_from(segment, next, events, 7, &read, &missed, &next));
        EQUAL(missed, 0);
        for (size_t place = 0; place < read; place++) {
            EQUAL(events[place].stamp, ++count);
        }
    } while (read > 0);
    EQUAL(count, process.head);
    uint64_t head = 0;
    OK(tt_shm_segment_head(segment, &head));
    EQUAL(head, count);

    /* Times: of the last event, between the creation of the segment and now. */
    tt_shm_calibration calibration = {.size = sizeof calibration};
    OK(tt_shm_segment_calibration(segment, &calibration));
    uint64_t times[2] = {counters[0].time, counters[0].dram_peak_time}, real[2];
    OK(tt_shm_to_realtime_ns(&calibration, times, real, 2));
    OK(tt_shm_to_monotonic_ns(&calibration, times, times, 2));
    TRUE(process.created_ns <= times[0] + 1000000 && times[0] <= calibration.second.monotonic_ns);
    TRUE(real[0] > UINT64_C(1700000000000000000));

    OK(tt_shm_program_end(tracker, devices, 2, 50));
    OK(tt_shm_device_close(tracker, devices, 2));
    OK(tt_shm_segment_read_from(segment, next, events, 7, &read, NULL, &next));
    TRUE(read >= 6);
    OK(tt_shm_segment_close(segment));
    EQUAL(tt_shm_segment_head(segment, &head), TT_SHM_ERR_HANDLE);
}

int main(void) {
    EQUAL(tt_shm_abi_version(), TT_SHM_ABI_VERSION);
    TRUE(strlen(tt_shm_version()) > 2);
    tt_shm_options options = {.size = sizeof options, .flags = TT_SHM_OPEN_ENABLED, .process_name = "a C host",
                              .ring_slots = 1024, .live_capacity = 4096};
    OK(tt_shm_tracker_open(&options, &tracker));
    EQUAL(tt_shm_tracker_is_enabled(tracker), 1);
    devices_and_names();
    buffers();
    programs();
    notes();
    read_back();
    /* It is found by its namespace, and gone when it is closed. */
    tt_shm_path path;
    size_t total = 0;
    OK(tt_shm_segment_list(NULL, &path, 1, &total));
    EQUAL(total, 1);
    OK(tt_shm_tracker_close(tracker));
    OK(tt_shm_segment_list(NULL, &path, 1, &total));
    EQUAL(total, 0);
    tt_shm_segment *segment;
    EQUAL(tt_shm_segment_open(path.text, &segment), TT_SHM_ERR_NOT_FOUND);
    TRUE(tt_shm_last_errno() != 0);
    /* Off unless the environment says otherwise: then calls do nothing. */
    tt_shm_tracker *off = NULL, *same = NULL;
    OK(tt_shm_tracker_for_process(&off));
    OK(tt_shm_tracker_for_process(&same));
    TRUE(off == same && !tt_shm_tracker_is_enabled(off) && !tt_shm_is_reporting());
    OK(tt_shm_alloc(off, 0, TT_SHM_BUFFER_DRAM, 1, 1));
    OK(tt_shm_tracker_path(off, NULL, 0, &total));
    EQUAL(total, 0);
    return 0;
}
