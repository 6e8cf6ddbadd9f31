// The proof of concept's calls, as a tree that has them makes them, and its figures.

#include "check.h"
#include "tt_shm.hpp"
#include "tt_shm_allocation_client.hpp"

#include <thread>
#include <type_traits>

namespace tt::tt_metal {

// The signatures, exactly.
static_assert(std::is_same_v<decltype(&AllocationClient::report_allocation), void (*)(int, uint64_t, uint8_t, uint64_t) noexcept>);
static_assert(std::is_same_v<decltype(&AllocationClient::report_kernel_load), void (*)(int, uint64_t, uint64_t, uint8_t) noexcept>);
static_assert(std::is_same_v<decltype(&AllocationClient::report_kernel_unload), void (*)(int, uint64_t, uint64_t) noexcept>);
static_assert(std::is_same_v<decltype(&AllocationClient::is_enabled), bool (*)() noexcept>);

constexpr uint64_t KIB = 1024;

// Seed 001: a fabric kernel of 56 KiB on 16 cores and a dispatch kernel of 46 KiB on 2 are 988 KiB on each device.
void system_kernels(int device) {
    AllocationClient::report_kernel_load(device, 56 * KIB * 16, 0x100, 1);
    AllocationClient::report_kernel_load(device, 46 * KIB * 2, 0x200, 2);
}

// Seed 003: 2 fabric kernels (112 KiB), 2 dispatch kernels (92 KiB) and 5 application kernels (120 KiB) are 324 KiB.
void example(int device) {
    for (uint64_t id : {1, 2}) {
        AllocationClient::report_kernel_load(device, 56 * KIB, id, 1);
        AllocationClient::report_kernel_load(device, 46 * KIB, 10 + id, 2);
    }
    for (uint64_t id = 20; id < 25; id++) {
        AllocationClient::report_kernel_load(device, 24 * KIB, id);
    }
}

void buffers(int device) {
    AllocationClient::report_allocation(device, 4096, 0, 0xa000);
    // The same buffer again: a reference, and no bytes.
    AllocationClient::report_allocation(device, 4096, 0, 0xa000);
    AllocationClient::report_allocation(device, 4096, 0, 0xa000);
    AllocationClient::report_allocation(device, 100, 1, 0xb000);
    AllocationClient::report_allocation(device, 200, 3, 0xc000);
    AllocationClient::report_allocation(device, 300, 4, 0xd000);
    AllocationClient::report_deallocation(device, 0xa000);
    AllocationClient::report_deallocation(device, 0xa000);
    AllocationClient::report_deallocation(device, 0xb000);
    // Not accepted then either.
    AllocationClient::report_allocation(device, 0, 0, 0xe000);
    AllocationClient::report_allocation(device, (uint64_t{100} << 30) + 1, 0, 0xe000);
    AllocationClient::report_allocation(-1, 10, 0, 0xe000);
    AllocationClient::report_allocation(device, 10, 9, 0xe000);
    // 2.1 MB of circular buffers, as the example has; a repeated one counts once.
    AllocationClient::report_cb_allocation(device, 2 * KIB * KIB, 0x8000);
    AllocationClient::report_cb_allocation(device, 100 * KIB, 0x9000);
    AllocationClient::report_cb_allocation(device, 100 * KIB, 0x9000);
    AllocationClient::report_cb_allocation(device, 50, 0x9100);
    AllocationClient::report_cb_deallocation(device, 50, 0x9100);
}

void check_figures() {
    auto paths = tt_shm::Segment::list();
    EQUAL(paths.size(), 1);
    tt_shm::Segment segment(paths[0]);
    const auto process = segment.process();
    TRUE((process.flags & TT_SHM_PROCESS_PARTIAL) != 0);
    const auto devices = segment.devices();
    EQUAL(devices.size(), 3);
    EQUAL(devices[2].logical_id, 11);
    const auto counters = segment.counters();
    for (int device : {0, 1}) {
        EQUAL(counters[device].kernel_loaded_bytes, 988 * KIB);
        EQUAL(counters[device].classes[TT_SHM_CLASS_KERNEL_FABRIC].live_bytes, 896 * KIB);
        EQUAL(counters[device].classes[TT_SHM_CLASS_KERNEL_DISPATCH].live_bytes, 92 * KIB);
    }
    const auto& third = counters[2];
    EQUAL(third.kernel_loaded_bytes, 324 * KIB);
    EQUAL(third.classes[TT_SHM_CLASS_KERNEL_APPLICATION].live_bytes, 120 * KIB);
    EQUAL(third.classes[TT_SHM_CLASS_KERNEL_APPLICATION].live_count, 5);
    EQUAL(third.classes[TT_SHM_CLASS_CB].live_bytes, 2 * KIB * KIB + 100 * KIB);
    EQUAL(third.classes[TT_SHM_CLASS_DRAM].live_bytes, 4096);
    EQUAL(third.classes[TT_SHM_CLASS_DRAM].live_count, 1);
    EQUAL(third.classes[TT_SHM_CLASS_DRAM].requested_basis_bytes, 4096);
    EQUAL(third.classes[TT_SHM_CLASS_L1].live_bytes, 0);
    EQUAL(third.classes[TT_SHM_CLASS_L1_SMALL].live_bytes, 200);
    EQUAL(third.classes[TT_SHM_CLASS_TRACE].live_bytes, 300);
    EQUAL(third.dram_used_bytes, 4396);
    // Nothing of it is resident that was not dispatched.
    EQUAL(third.cb_resident_bytes, 0);
    EQUAL(process.anomalies[0], 0);
}

// Threads that share buffers: the last reference frees.
void threads() {
    std::vector<std::thread> all;
    for (int thread = 0; thread < 8; thread++) {
        all.emplace_back([] {
            for (int round = 0; round < 500; round++) {
                for (uint64_t id = 0; id < 4; id++) {
                    AllocationClient::report_allocation(11, 64, 1, id);
                }
                for (uint64_t id = 0; id < 4; id++) {
                    AllocationClient::report_deallocation(11, id);
                }
            }
        });
    }
    for (auto& thread : all) {
        thread.join();
    }
    tt_shm::Segment segment(tt_shm::Segment::list().at(0));
    EQUAL(segment.counters()[2].classes[TT_SHM_CLASS_L1].live_count, 0);
    EQUAL(segment.process().anomalies[0], 0);
    EQUAL(segment.process().anomalies[1], 1);
}

}  // namespace tt::tt_metal

int main() {
    using tt::tt_metal::AllocationClient;
    const char* enabled = std::getenv("TT_ALLOC_TRACKING_ENABLED");
    if (enabled == nullptr || std::string_view(enabled) != "1") {
        TRUE(!AllocationClient::is_enabled());
        AllocationClient::report_allocation(0, 1, 0, 1);
        EQUAL(tt_shm::Segment::list().size(), 0);
        return 0;
    }
    TRUE(AllocationClient::is_enabled());
    tt::tt_metal::system_kernels(0);
    tt::tt_metal::system_kernels(1);
    tt::tt_metal::example(11);
    tt::tt_metal::buffers(11);
    tt::tt_metal::check_figures();
    tt::tt_metal::threads();
    TRUE(tt_shm_is_reporting());
    return 0;
}
