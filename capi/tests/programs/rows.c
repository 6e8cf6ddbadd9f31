/* Prints every figure of every row of a table, one to a line: the test that starts it has the same from Rust. */

#include "check.h"

static char prefix[64];

#define PRINT(field, value) printf("%s.%s %lld\n", prefix, field, (long long)(value))
#define NUMBER(row, field) PRINT(#field, (row)->field)
#define TEXT(row, field) printf("%s.%s %s\n", prefix, #field, (row)->field)
#define NUMBERS(row, field)                                                                                            \
    for (size_t at_ = 0; at_ < sizeof(row)->field / sizeof *(row)->field; at_++) {                                     \
        printf("%s.%s[%zu] %lld\n", prefix, #field, at_, (long long)(row)->field[at_]);                                \
    }

/* All elements of an array that is filled, into memory that is exactly as long. */
#define FILLED(type, rows, total, ...)                                                                                 \
    size_t total = 0;                                                                                                  \
    {                                                                                                                  \
        type *none = NULL;                                                                                             \
        const size_t capacity = 0;                                                                                     \
        type *into = none;                                                                                             \
        OK(__VA_ARGS__);                                                                                               \
    }                                                                                                                  \
    type *rows = calloc(total == 0 ? 1 : total, sizeof *rows);                                                         \
    {                                                                                                                  \
        type *into = rows;                                                                                             \
        const size_t capacity = total;                                                                                 \
        rows->size = sizeof *rows;                                                                                     \
        OK(__VA_ARGS__);                                                                                               \
        EQUAL(total, capacity);                                                                                        \
    }                                                                                                                  \
    for (size_t at = 0; at < total; at++) {                                                                            \
        EQUAL(rows[at].size, sizeof *rows);                                                                            \
    }

static void print_peak(const char *name, const tt_shm_peak *peak) {
    printf("%s.%s %llu %llu %llu %llu\n", prefix, name, (unsigned long long)peak->low, (unsigned long long)peak->high,
           (unsigned long long)peak->time_ns, (unsigned long long)peak->count);
}

static void print_info(const char *kind, unsigned long long row, const tt_shm_device_info *info) {
    snprintf(prefix, sizeof prefix, "%s info %llu", kind, row);
    NUMBER(info, chip_id);
    NUMBER(info, allocator);
    NUMBER(info, pci);
    NUMBER(info, l1_base);
    TEXT(info, board);
}

static void print_snapshot(tt_shm_snapshot *snapshot) {
    tt_shm_snapshot_info info = {.size = sizeof info}, *row = &info;
    OK(tt_shm_snapshot_describe(snapshot, &info));
    snprintf(prefix, sizeof prefix, "snapshot");
    NUMBER(row, consistent);
    NUMBER(row, generation);
    NUMBER(row, as_of_ns);
    NUMBER(row, devices);
    NUMBER(row, processes);
    NUMBER(row, usages);
    NUMBER(row, events);
    NUMBER(row, missed);
    NUMBER(row, refused);
    NUMBER(row, unseen);
    NUMBER(row, window_since_ns);
    NUMBER(row, windows);
    NUMBER(row, late);
    NUMBER(row, lost);
    NUMBER(row, notices);
    NUMBER(row, failures);
    NUMBER(row, driver);
    NUMBER(row, driver_left_out);
    NUMBER(row, regions);
    NUMBER(row, regions_left_out);
    NUMBER(row, overflow);
    NUMBER(row, publish_errors);
    NUMBER(row, incomplete_since_ns);
    NUMBER(row, clock_steps);
    NUMBER(row, awake_since_ns);
    NUMBER(row, gap_start_ns);
    NUMBER(row, gap_end_ns);
}

static void print_device(const tt_shm_device_stats *row) {
    const tt_shm_last_failure *failure = &row->last_failure;
    snprintf(prefix, sizeof prefix, "device %u", row->row);
    NUMBER(row, flags);
    NUMBER(row, chip_id);
    NUMBER(row, processes);
    NUMBER(row, dram_total_bytes);
    NUMBER(row, dram_used_bytes);
    NUMBER(row, l1_total_bytes);
    NUMBER(row, l1_used_bytes);
    NUMBER(row, eth_used_bytes);
    NUMBER(row, cb_resident_bytes);
    NUMBER(row, kernel_resident_bytes);
    NUMBER(row, kernel_resident_eth_bytes);
    NUMBER(row, system_kernel_bytes);
    NUMBER(row, system_kernel_eth_bytes);
    NUMBER(row, dispatches);
    NUMBER(row, cached_dispatches);
    NUMBER(row, failed_allocs);
    NUMBER(row, kernel_ring_total_bytes);
    NUMBER(row, kernel_ring_used_bytes);
    NUMBER(row, kernel_ring_programs);
    NUMBER(row, events);
    NUMBER(row, events_per_1000s);
    NUMBER(row, dispatches_per_1000s);
    print_peak("dram_peak", &row->dram_peak);
    print_peak("l1_peak", &row->l1_peak);
    print_peak("eth_peak", &row->eth_peak);
    print_peak("cb_resident_peak", &row->cb_resident_peak);
    print_peak("kernel_resident_peak", &row->kernel_resident_peak);
    NUMBER(failure, time_ns);
    NUMBER(failure, pid);
    NUMBER(failure, class_);
    NUMBER(failure, request_bytes);
    NUMBER(failure, free_bytes);
    NUMBER(failure, largest_free_bytes);
    NUMBER(failure, needed_per_bank_bytes);
    NUMBER(failure, banks);
    NUMBER(failure, per_bank);
    for (size_t class_ = 0; class_ <= TT_SHM_CLASS_SYSTEM_MEMORY; class_++) {
        const tt_shm_class_stats *figures = &row->classes[class_];
        snprintf(prefix, sizeof prefix, "device %u class %zu", row->row, class_);
        NUMBER(figures, live_bytes);
        NUMBER(figures, live_count);
        NUMBER(figures, alloc_bytes);
        NUMBER(figures, alloc_count);
        NUMBER(figures, requested_bytes);
        NUMBER(figures, requested_basis_bytes);
        print_peak("peak", &figures->peak);
    }
}

static void print_composition(tt_shm_snapshot *snapshot, uint32_t device, uint32_t memory) {
    tt_shm_composition made_of = {.size = sizeof made_of}, *row = &made_of;
    OK(tt_shm_snapshot_composition(snapshot, device, memory, &made_of));
    snprintf(prefix, sizeof prefix, "composition %u %u", device, memory);
    NUMBER(row, exact);
    print_peak("peak", &row->peak);
    NUMBERS(row, classes);
    for (size_t at = 0; at < TT_SHM_HOLDERS; at++) {
        const tt_shm_holder *holder = &row->holders[at];
        snprintf(prefix, sizeof prefix, "composition %u %u holder %zu", device, memory, at);
        NUMBER(holder, identity);
        NUMBER(holder, pid);
        NUMBER(holder, bytes);
    }
    NUMBER(row, others);
}

static void print_devices(tt_shm_table *table, tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_device_stats, rows, total, tt_shm_snapshot_devices(snapshot, into, capacity, &total));
    for (size_t at = 0; at < total; at++) {
        tt_shm_device_stats one = {.size = sizeof one};
        tt_shm_device_info info = {.size = sizeof info};
        print_device(&rows[at]);
        OK(tt_shm_table_device(table, rows[at].row, &one));
        EQUAL(memcmp(&one, &rows[at], sizeof one), 0);
        OK(tt_shm_snapshot_device_info(snapshot, rows[at].row, &info));
        print_info("device", rows[at].row, &info);
        print_composition(snapshot, rows[at].row, TT_SHM_MEMORY_DRAM);
        print_composition(snapshot, rows[at].row, TT_SHM_MEMORY_L1);
        EQUAL(tt_shm_snapshot_composition(snapshot, rows[at].row, 2, NULL), TT_SHM_ERR_VALUE);
    }
    tt_shm_composition none = {.size = sizeof none};
    tt_shm_device_stats one = {.size = sizeof one};
    EQUAL(tt_shm_snapshot_composition(snapshot, 7000, TT_SHM_MEMORY_L1, &none), TT_SHM_ERR_NOT_FOUND);
    EQUAL(tt_shm_table_device(table, 7000, &one), TT_SHM_ERR_NOT_FOUND);
    free(rows);
}

static void print_processes(tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_process_stats, rows, total, tt_shm_snapshot_processes(snapshot, into, capacity, &total));
    for (const tt_shm_process_stats *row = rows; row < rows + total; row++) {
        snprintf(prefix, sizeof prefix, "process %u", row->row);
        NUMBER(row, state);
        NUMBER(row, source);
        NUMBER(row, flags);
        NUMBER(row, identity);
        NUMBER(row, pid);
        NUMBER(row, uid);
        NUMBER(row, on_behalf_of);
        NUMBER(row, started_ns);
        NUMBER(row, ended_ns);
        NUMBER(row, last_event_ns);
        NUMBER(row, position);
        NUMBER(row, missed);
        NUMBER(row, unlisted);
        NUMBER(row, devices);
        NUMBER(row, pid_namespace);
        NUMBER(row, start_time);
        NUMBER(row, late);
        NUMBER(row, events_per_1000s);
        NUMBER(row, self_checks);
        NUMBER(row, self_checks_different);
        NUMBERS(row, anomalies);
        TEXT(row, name);
    }
    free(rows);
}

static void print_usages(tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_usage, rows, total, tt_shm_snapshot_usages(snapshot, into, capacity, &total));
    for (const tt_shm_usage *row = rows; row < rows + total; row++) {
        const tt_shm_counters *counters = &row->counters;
        tt_shm_device_info info = {.size = sizeof info};
        snprintf(prefix, sizeof prefix, "usage %llu", (unsigned long long)row->row);
        NUMBER(row, conflict);
        NUMBER(row, process);
        NUMBER(row, device);
        NUMBER(row, logical_id);
        NUMBER(row, allocator);
        NUMBER(counters, position);
        NUMBER(counters, dram_used_bytes);
        NUMBER(counters, l1_peak_time);
        NUMBER(counters, kernel_ring_programs);
        OK(tt_shm_snapshot_usage_info(snapshot, row->row, &info));
        print_info("usage", row->row, &info);
        EQUAL(tt_shm_snapshot_usage_info(snapshot, 99999, &info), TT_SHM_ERR_NOT_FOUND);
    }
    free(rows);
}

static void print_notices(tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_notice, rows, total, tt_shm_snapshot_notices(snapshot, into, capacity, &total));
    for (const tt_shm_notice *row = rows; row < rows + total; row++) {
        snprintf(prefix, sizeof prefix, "notice %zu", (size_t)(row - rows));
        NUMBER(row, kind);
        NUMBER(row, time_ns);
        NUMBER(row, pid);
        NUMBER(row, uid);
        NUMBERS(row, bytes);
        NUMBERS(row, counts);
        TEXT(row, file);
        TEXT(row, text);
    }
    free(rows);
}

static void print_failures(tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_failure_record, rows, total, tt_shm_snapshot_failures(snapshot, into, capacity, &total));
    for (const tt_shm_failure_record *row = rows; row < rows + total; row++) {
        const size_t number = (size_t)(row - rows);
        snprintf(prefix, sizeof prefix, "failure %zu", number);
        NUMBER(row, class_);
        NUMBER(row, flags);
        NUMBER(row, time_ns);
        NUMBER(row, chip_id);
        NUMBER(row, identity);
        NUMBER(row, position);
        NUMBER(row, pid);
        NUMBER(row, pid_namespace);
        NUMBER(row, uid);
        NUMBER(row, request_bytes);
        NUMBER(row, free_bytes);
        NUMBER(row, largest_free_bytes);
        NUMBER(row, needed_per_bank_bytes);
        NUMBER(row, banks);
        NUMBER(row, holder_count);
        NUMBER(row, event_count);
        NUMBERS(row, classes);
        NUMBERS(row, others);
        TEXT(row, name);
        for (size_t at = 0; at < TT_SHM_HOLDERS; at++) {
            const tt_shm_failure_holder *holder = &row->holders[at];
            snprintf(prefix, sizeof prefix, "failure %zu holder %zu", number, at);
            NUMBER(holder, identity);
            NUMBER(holder, pid);
            NUMBER(holder, pid_namespace);
            NUMBERS(holder, classes);
            TEXT(holder, name);
        }
        for (size_t at = 0; at < row->event_count; at++) {
            const tt_shm_past_event *event = &row->events[at];
            snprintf(prefix, sizeof prefix, "failure %zu event %zu", number, at);
            NUMBER(event, time_ns);
            NUMBER(event, identity);
            NUMBER(event, pid);
            NUMBER(event, kind);
            NUMBER(event, class_);
            NUMBER(event, id);
            NUMBER(event, bytes);
        }
    }
    free(rows);
}

static void print_telemetry(tt_shm_table *table, uint32_t driver, uint32_t resolution) {
    FILLED(tt_shm_telemetry, rows, total, tt_shm_table_telemetry(table, driver, resolution, into, capacity, &total));
    for (const tt_shm_telemetry *row = rows; row < rows + total; row++) {
        snprintf(prefix, sizeof prefix, "telemetry %u %u", driver, resolution);
        NUMBER(row, known);
        NUMBER(row, start_ns);
        NUMBER(row, length_ns);
        for (size_t at = 0; at < TT_SHM_TRENDS; at++) {
            printf("trend %lld %lld %lld\n", (long long)row->trends[at].min, (long long)row->trends[at].max,
                   (long long)row->trends[at].last);
        }
    }
    free(rows);
}

static void print_driver(tt_shm_table *table, tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_driver_stats, rows, total, tt_shm_snapshot_driver(snapshot, into, capacity, &total));
    for (const tt_shm_driver_stats *row = rows; row < rows + total; row++) {
        tt_shm_device_info info = {.size = sizeof info};
        snprintf(prefix, sizeof prefix, "driver %u", row->row);
        NUMBER(row, flags);
        NUMBER(row, number);
        NUMBER(row, device);
        NUMBER(row, time_ns);
        NUMBER(row, chip_id);
        NUMBER(row, asic_id);
        NUMBER(row, serial);
        NUMBER(row, serial_chip_id);
        NUMBER(row, holders);
        NUMBER(row, unreported_holders);
        NUMBER(row, invisible_holders);
        NUMBER(row, nominal_dram_bytes);
        NUMBER(row, nominal_tensix_cores);
        NUMBER(row, nominal_l1_per_core);
        NUMBER(row, nominal_eth_cores);
        NUMBER(row, nominal_eth_l1_per_core);
        NUMBER(row, nominal_chips);
        for (size_t at = 0; at <= TT_SHM_TOLD_NUMA_NODE; at++) {
            printf("%s.numbers[%zu] %lld\n", prefix, at, (long long)row->numbers[at]);
        }
        NUMBERS(row, absences);
        TEXT(row, driver_version);
        for (size_t at = 0; at < TT_SHM_FIRMWARE_PARTS; at++) {
            printf("%s.firmware[%zu] %s\n", prefix, at, row->firmware[at]);
        }
        TEXT(row, note);
        OK(tt_shm_snapshot_driver_info(snapshot, row->row, &info));
        print_info("driver", row->row, &info);
        for (uint32_t resolution = TT_SHM_HISTORY_MINUTE; resolution <= TT_SHM_HISTORY_DAY; resolution++) {
            print_telemetry(table, row->row, resolution);
        }
    }
    free(rows);
}

static void print_regions(tt_shm_snapshot *snapshot) {
    FILLED(tt_shm_region_stats, rows, total, tt_shm_snapshot_regions(snapshot, into, capacity, &total));
    for (const tt_shm_region_stats *row = rows; row < rows + total; row++) {
        snprintf(prefix, sizeof prefix, "region %u", row->row);
        NUMBER(row, kind);
        NUMBER(row, state);
        NUMBER(row, flags);
        NUMBER(row, device);
        NUMBER(row, chip_id);
        NUMBER(row, version);
        NUMBER(row, slot);
        NUMBER(row, pid);
        NUMBER(row, pid_here);
        NUMBER(row, uid);
        NUMBER(row, updated_realtime_ns);
        NUMBER(row, dram_bytes);
        NUMBER(row, l1_bytes);
        NUMBER(row, l1_small_bytes);
        NUMBER(row, trace_bytes);
        NUMBER(row, cb_bytes);
        TEXT(row, name);
        TEXT(row, note);
    }
    free(rows);
}

static void print_history(tt_shm_table *table, uint32_t device, uint32_t resolution) {
    FILLED(tt_shm_bucket, rows, total, tt_shm_table_history(table, device, resolution, into, capacity, &total));
    for (const tt_shm_bucket *row = rows; row < rows + total; row++) {
        snprintf(prefix, sizeof prefix, "bucket %u %u", device, resolution);
        NUMBER(row, flags);
        NUMBER(row, start_ns);
        NUMBER(row, length_ns);
        NUMBER(row, dram_min_bytes);
        NUMBER(row, dram_max_bytes);
        NUMBER(row, dram_last_bytes);
        NUMBER(row, l1_min_bytes);
        NUMBER(row, l1_max_bytes);
        NUMBER(row, l1_last_bytes);
        NUMBER(row, trace_last_bytes);
        NUMBER(row, l1_small_last_bytes);
        NUMBER(row, cb_last_bytes);
        NUMBER(row, steps);
    }
    free(rows);
}

int main(void) {
    tt_shm_table *table = NULL;
    tt_shm_snapshot *snapshot = NULL;
    tt_shm_table_info info = {.size = sizeof info}, *row = &info;
    size_t total = 9;
    OK(tt_shm_table_open(NULL, &table));
    OK(tt_shm_table_describe(table, &info));
    snprintf(prefix, sizeof prefix, "table");
    NUMBER(row, identity);
    NUMBER(row, pid);
    NUMBER(row, started_ns);
    NUMBER(row, started_realtime_ns);
    TEXT(row, path);
    OK(tt_shm_table_snapshot(table, &snapshot));
    print_snapshot(snapshot);
    print_devices(table, snapshot);
    print_processes(snapshot);
    print_usages(snapshot);
    print_notices(snapshot);
    print_failures(snapshot);
    print_driver(table, snapshot);
    print_regions(snapshot);
    for (uint32_t resolution = TT_SHM_HISTORY_MINUTE; resolution <= TT_SHM_HISTORY_DAY; resolution++) {
        print_history(table, 0, resolution);
    }
    EQUAL(tt_shm_table_history(table, 0, 3, NULL, 0, &total), TT_SHM_ERR_VALUE);
    EQUAL(tt_shm_table_telemetry(table, 0, 3, NULL, 0, &total), TT_SHM_ERR_VALUE);
    OK(tt_shm_table_history(table, 7000, 0, NULL, 0, &total));
    EQUAL(total, 0);
    OK(tt_shm_snapshot_close(snapshot));
    EQUAL(tt_shm_snapshot_notices(snapshot, NULL, 0, &total), TT_SHM_ERR_HANDLE);
    OK(tt_shm_table_close(table));
    return 0;
}
