// All processes: by an aggregation in this process, and by the table of an aggregator that the test has started.

#include "check.h"
#include "tt_shm.hpp"

#include <chrono>
#include <thread>

using namespace tt_shm;

// The row of this program's device: a tt-metal that runs on this machine has rows of its own.
static std::optional<tt_shm_device_stats> own_device(const Snapshot& snapshot) {
    for (const auto& device : snapshot.devices()) {
        if (device.chip_id == 7) {
            return device;
        }
    }
    return std::nullopt;
}

static bool uses(const Snapshot& snapshot, std::uint64_t bytes) {
    const auto device = own_device(snapshot);
    return device && device->dram_used_bytes == bytes;
}

// What has just happened is merged, or published, a moment later.
static void wait_for(Source& source, std::uint64_t bytes, bool embedded) {
    auto origin = sized<tt_shm_origin>();
    for (int round = 0; round < 10000; round++) {
        if (uses(source.read(&origin), bytes) && (origin.embedded != 0) == embedded) {
            return;
        }
        std::this_thread::sleep_for(std::chrono::nanoseconds(source.poll()));
    }
    TRUE(false);
}

static void check_rows(const Snapshot& snapshot, const Device& device) {
    const auto info = snapshot.describe();
    const std::vector<tt_shm_device_stats> devices{own_device(snapshot).value()};
    EQUAL(info.processes, 1);
    EQUAL(info.devices, snapshot.devices().size());
    EQUAL(devices[0].dram_used_bytes, 4096);
    EQUAL(devices[0].dram_total_bytes, 12 * 1024);
    EQUAL(devices[0].l1_total_bytes, TT_SHM_UNKNOWN);
    EQUAL(devices[0].classes[TT_SHM_CLASS_DRAM].live_count, 1);
    TRUE(devices[0].dram_peak.low >= 4096 && devices[0].dram_peak.high >= devices[0].dram_peak.low);
    const auto described = snapshot.device_info(devices[0].row);
    EQUAL(described.pools[TT_SHM_POOL_DRAM].banks, 12);
    const auto processes = snapshot.processes();
    EQUAL(processes[0].state, TT_SHM_STATE_ALIVE);
    EQUAL(processes[0].source, TT_SHM_SOURCE_RING);
    EQUAL(std::string(processes[0].name) == "rows", 1);
    const auto usages = snapshot.usages();
    EQUAL(usages.size(), 1);
    EQUAL(usages[0].process, processes[0].row);
    EQUAL(usages[0].device, devices[0].row);
    EQUAL(usages[0].counters.dram_used_bytes, device.counters()->dram_used_bytes);
    EQUAL(usages[0].counters.size, sizeof(tt_shm_counters));
    EQUAL(snapshot.usage_info(usages[0].row).pools[TT_SHM_POOL_DRAM].bank_bytes, 1024);
    const auto made_of = snapshot.composition(devices[0].row, Memory::Dram);
    EQUAL(made_of.peak.low, devices[0].dram_peak.low);
    EQUAL(made_of.classes[TT_SHM_CLASS_DRAM], 4096);
    EQUAL(made_of.holders[0].bytes, 4096);
    EQUAL(made_of.holders[0].identity, processes[0].identity);
    EQUAL(made_of.holders[1].identity | made_of.others, 0);
    EQUAL(made_of.exact != 0, (devices[0].flags & TT_SHM_DEVICE_DRAM_COMPOSITION_EXACT) != 0);
    const auto failures = snapshot.failures();
    EQUAL(failures.size(), 1);
    EQUAL(failures[0].request_bytes, 1 << 20);
    EQUAL(failures[0].class_, TT_SHM_CLASS_L1);
    EQUAL(failures[0].free_bytes, TT_SHM_UNKNOWN);
    EQUAL(failures[0].identity, processes[0].identity);
    EQUAL(std::string(failures[0].name) == "rows", 1);
    EQUAL(devices[0].last_failure.request_bytes, failures[0].request_bytes);
    EQUAL(info.failures, 1);
    EQUAL(info.notices, snapshot.notices().size());
    EQUAL(info.driver, snapshot.driver().size());
    EQUAL(info.regions, snapshot.regions().size());
    try {
        snapshot.device_info(77);
        TRUE(false);
    } catch (const Error& error) {
        EQUAL(error.code().value(), TT_SHM_ERR_NOT_FOUND);
    }
}

int main(int count, char**) {
    Options options;
    options.enabled = true;
    options.process_name = "rows";
    Tracker tracker(options);
    auto info = device_info(7);
    info.known = TT_SHM_KNOWN_POOL_DRAM;
    info.pools[TT_SHM_POOL_DRAM] = {12, 1024, 32};
    Device device = tracker.device(info);
    TRUE(!device.alloc(BufferType::Dram, 1, 4096));
    tt_shm_failure failure{};
    failure.class_ = TT_SHM_CLASS_L1;
    failure.request_bytes = 1 << 20;
    TRUE(!device.alloc_failed(failure));

    Source source;
    const bool embedded = count == 1;
    wait_for(source, 4096, embedded);
    check_rows(source.read(), device);
    // The last bucket has what is used now.
    const auto history = source.history(own_device(source.read()).value(), Resolution::Minute);
    TRUE(!history.empty() && history.back().dram_last_bytes == 4096 && history.back().length_ns == 250000000);
    EQUAL(source.telemetry(100000, Resolution::Day).size(), 0);
    if (embedded) {
        TRUE(!device.free(1));
        wait_for(source, 0, true);
        return 0;
    }
    Table table;
    TRUE(table.freshness().fresh != 0 && table.freshness().replaced == 0 && table.freshness().closed == 0);
    check_rows(table.snapshot(), device);
    const auto row = own_device(table.snapshot())->row;
    EQUAL(table.device(row).dram_used_bytes, 4096);
    EQUAL(table.history(row, Resolution::Minute).back().dram_last_bytes, 4096);
    EQUAL(table.telemetry(100000, Resolution::Hour).size(), 0);
    TRUE(std::string(table.describe().path).find("/dev/shm/") == 0 && table.describe().pid != 0);
    return 0;
}
