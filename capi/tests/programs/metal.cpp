// The calls that tt-metal's code makes, by a stand-in for its allocator: two chips in lock step, a program, fabric and dispatch.

#include "../../../integrations/tt-metal/tt_shm_metal.hpp"

#include "check.h"

#include <thread>

using tt_shm::metal::Reports;

constexpr std::uint64_t KIB = 1024;

int main() {
    auto& reports = Reports::get();
    const int mesh = 0;  // Its address stands for the allocator.
    tt_shm::metal::Pools pools{};
    pools[TT_SHM_POOL_DRAM] = {12, 1072693184, 32};
    pools[TT_SHM_POOL_L1] = {64, 1393312, 32};
    reports.allocator_made(&mesh, {{0xa, 0, TT_SHM_ARCH_WORMHOLE}, {0xb, 1, TT_SHM_ARCH_WORMHOLE}}, pools, 0);
    if (!reports.is_enabled()) {
        reports.allocated(&mesh, tt_shm::BufferType::L1, 1, 2048, 2048, 0x1000);
        EQUAL(tt_shm::Segment::list().size(), 0);
        return 0;
    }
    const tt_shm::Segment segment(tt_shm::Segment::list().at(0));
    const auto both = [&](auto check) {
        const auto counters = segment.counters();
        EQUAL(counters.size(), 2);
        check(counters[0]);
        check(counters[1]);
    };
    // Ten L1 buffers of 2 KiB occupy 1.25 MiB of each chip.
    for (std::uint64_t id = 1; id <= 10; id++) {
        reports.allocated(&mesh, tt_shm::BufferType::L1, id, 2048, 2048, 0x1000 * id);
    }
    both([](const tt_shm_counters& c) { EQUAL(c.l1_used_bytes, 1310720); });
    both([](const tt_shm_counters& c) { EQUAL(c.classes[TT_SHM_CLASS_L1].requested_bytes, 20480); });
    reports.freed(&mesh, 1);
    reports.dropped(&mesh, 2);
    both([](const tt_shm_counters& c) { EQUAL(c.l1_used_bytes, 8 * 64 * 2048); });
    reports.failed(&mesh, TT_SHM_CLASS_L1, 1 << 30, 1 << 24, 64, 1000, 500);
    both([](const tt_shm_counters& c) { EQUAL(c.failed_allocs, 1); });

    // 988 KiB of system kernels on each.
    using tt_shm::CoreType, tt_shm::KernelType;
    reports.system_kernel(&mesh, tt_shm::Kernel(100, KernelType::Fabric, CoreType::Ethernet, 56 * KIB, 16));
    reports.system_kernel(&mesh, tt_shm::Kernel(101, KernelType::Dispatch, CoreType::Tensix, 46 * KIB, 2));
    both([](const tt_shm_counters& c) { EQUAL(c.kernel_loaded_bytes, 988 * KIB); });
    both([](const tt_shm_counters& c) { EQUAL(c.system_kernel_bytes + c.system_kernel_eth_bytes, 988 * KIB); });

    // A program: its circular buffers are resident once it is launched, and one inside a tensor has no bytes.
    reports.placed(&mesh, 7, 0x2000, 4096, 8, false);
    reports.placed(&mesh, 7, 0x3000, 4096, 8, true);
    both([](const tt_shm_counters& c) { EQUAL(c.cb_resident_bytes, 0); });
    const std::vector<tt_shm::Kernel> kernels{tt_shm::Kernel(70, KernelType::Application, CoreType::Tensix, 1000, 8).program(7)};
    const auto dispatch = tt_shm::Dispatch(7).queue(1).name(reports.name("Matmul"));
    reports.launched(&mesh, dispatch, kernels, false);
    reports.launched(&mesh, dispatch, kernels, true);
    both([](const tt_shm_counters& c) { EQUAL(c.cb_resident_bytes, 8 * 4096); });
    both([](const tt_shm_counters& c) { EQUAL(c.kernel_resident_bytes, 8000); });
    both([](const tt_shm_counters& c) { EQUAL(c.dispatches * 10 + c.cached_dispatches, 21); });
    reports.ring(&mesh, 70656, 8000, 1);
    reports.program_ended(&mesh, 7);
    both([](const tt_shm_counters& c) { EQUAL(c.cb_resident_bytes + c.kernel_resident_bytes, 0); });
    both([](const tt_shm_counters& c) { EQUAL(c.kernel_ring_used_bytes, 8000); });

    std::vector<std::thread> threads;
    for (std::uint64_t thread = 1; thread <= 8; thread++) {
        threads.emplace_back([&, thread] {
            for (std::uint64_t id = thread << 32; id < (thread << 32) + 500; id++) {
                reports.allocated(&mesh, tt_shm::BufferType::Dram, id, 100, 32, 0);
                reports.freed(&mesh, id);
            }
        });
    }
    for (auto& thread : threads) {
        thread.join();
    }
    both([](const tt_shm_counters& c) { EQUAL(c.dram_used_bytes, 0); });
    both([](const tt_shm_counters& c) { EQUAL(c.classes[TT_SHM_CLASS_DRAM].alloc_count, 4000); });
    EQUAL(segment.process().anomalies[0] + segment.process().anomalies[1], 0);
    EQUAL(segment.process().flags & TT_SHM_PROCESS_PARTIAL, 0);
    reports.allocator_ended(&mesh);
    both([](const tt_shm_counters& c) { EQUAL(c.open, 0); });
    return 0;
}
