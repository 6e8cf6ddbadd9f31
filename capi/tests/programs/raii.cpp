// The C++ types: what they hold ends with them, and what fails is told.

#include "tt_shm.hpp"
#include "check.h"

#include <type_traits>

using namespace tt_shm;

static_assert(!std::is_copy_constructible_v<Tracker> && std::is_nothrow_move_constructible_v<Tracker>);
static_assert(!std::is_copy_constructible_v<Allocation> && std::is_nothrow_move_constructible_v<Allocation>);
static_assert(noexcept(std::declval<const Device&>().alloc(BufferType::Dram, 1, 1)));
static_assert(noexcept(std::declval<const Mesh&>().free(1)));

static Options on() {
    Options options;
    options.enabled = true;
    return options;
}

static void guards() {
    Tracker tracker(on());
    auto info = device_info(7);
    info.known = TT_SHM_KNOWN_POOL_L1;
    info.pools[TT_SHM_POOL_L1] = {64, 1393312, 32};
    Device device = tracker.device(info);
    Mesh mesh({device, tracker.device(8)});
    TRUE(!device.alloc(BufferType::Dram, 1, 4096));
    TRUE(device.alloc(BufferType::Dram, 1, 4096) == make_code(TT_SHM_ERR_DOUBLE_ALLOC));
    {
        Allocation one = device.allocate(Buffer(BufferType::L1, 2, 2048).bytes_per_bank(2048).name(tracker.intern("x")));
        Allocation moved = std::move(one);
        EQUAL(device.counters()->l1_used_bytes, 64 * 2048);
        Allocation both = mesh.allocate(Buffer(BufferType::Dram, 3, 10));
        both = std::move(moved);
        EQUAL(device.counters()->dram_used_bytes, 4096);
        EQUAL(device.counters()->l1_used_bytes, 64 * 2048);
    }
    EQUAL(device.counters()->l1_used_bytes, 0);
    try {
        device.allocate(Buffer(BufferType::Dram, 1, 1));
        TRUE(false);
    } catch (const Error& error) {
        EQUAL(error.code().value(), TT_SHM_ERR_DOUBLE_ALLOC);
        TRUE(std::string(error.what()).find("0x1") != std::string::npos);
    }
    std::vector<Kernel> kernels{Kernel(5, KernelType::Application, CoreType::Tensix, 100, 2).program(4),
                                Kernel(6, KernelType::Application, CoreType::Tensix, 10, 2).program(4)};
    TRUE(!device.cb_alloc(CircularBuffer(4, 1, 100, 2)));
    TRUE(!device.launch(Dispatch(4).queue(1), kernels, BinaryStatus::NotSent));
    EQUAL(device.counters()->kernel_resident_bytes, 220);
    EQUAL(device.counters()->cb_resident_bytes, 200);
    TRUE(!device.program_end(4));
    Tracker other = std::move(tracker);
    TRUE(other.is_enabled() && !tracker.is_enabled());
    TRUE(!other.close());
    TRUE(device.free(1) == make_code(TT_SHM_ERR_HANDLE));
}

static void one_thread() {
    Options options = on();
    options.exclusive = true;
    Tracker tracker(options);
    Device device = tracker.device(7);
    TRUE(!device.alloc(BufferType::Dram, 1, 10));
    TRUE(!tracker.release());
    TRUE(device.free(1) == make_code(TT_SHM_ERR_THREAD));
    TRUE(!tracker.acquire());
    TRUE(!device.free(1));
}

static void spans() {
    Tracker tracker(on());
    Device device = tracker.device(7);
    const Name weights = tracker.intern("weights"), scores = tracker.intern("scores");
    TRUE(!device.alloc(Buffer(BufferType::Dram, 1, 1000).name(weights)));
    Segment segment(tracker.path());
    Span span(segment);
    TRUE(!device.alloc(Buffer(BufferType::Dram, 2, 200).name(scores)));
    TRUE(!device.alloc(Buffer(BufferType::Dram, 3, 30).name(scores)));
    EQUAL(span.poll(), 2);
    TRUE(!device.free(2));
    TRUE(!device.free(1));
    try {
        span.devices();
        TRUE(false);
    } catch (const Error& error) {
        EQUAL(error.code().value(), TT_SHM_ERR_STATE);
    }
    const auto report = span.end();
    EQUAL(report.events, 4);
    EQUAL(report.missed | report.flags | report.broken, 0);
    EQUAL(report.end_position, report.begin_position + 4);
    TRUE(report.begin_ns <= report.end_ns);
    const auto devices = span.devices();
    EQUAL(devices.size(), 1);
    EQUAL(report.devices, 1);
    EQUAL(devices[0].chip_id, 7);
    EQUAL(devices[0].dram.begin_bytes, 1000);
    EQUAL(devices[0].dram.end_bytes, 30);
    EQUAL(devices[0].dram.peak_low, 1230);
    EQUAL(devices[0].dram.peak_high, 1230);
    TRUE(devices[0].dram.peak_time_ns >= report.begin_ns - 1000000 && devices[0].dram.peak_time_ns <= report.end_ns + 1000000);
    EQUAL(devices[0].dram.parts, 2);
    EQUAL(devices[0].l1.peak_low | devices[0].l1.peak_high | devices[0].l1.peak_time_ns, 0);
    const auto parts = span.parts(0, Memory::Dram).value();
    EQUAL(parts.size(), 2);
    EQUAL(std::string(parts[0].name) == "weights" && parts[0].bytes == 1000 && parts[0].count == 1, 1);
    EQUAL(std::string(parts[1].name) == "scores" && parts[1].bytes == 230 && parts[1].count == 2, 1);
    EQUAL(parts[1].name_number, scores.number);
    EQUAL(parts[1].class_, TT_SHM_CLASS_DRAM);
    EQUAL(span.parts(0, Memory::L1)->size(), 0);
    TRUE(!span.parts(9, Memory::Dram));
    try {
        span.end();
        TRUE(false);
    } catch (const Error& error) {
        EQUAL(error.code().value(), TT_SHM_ERR_STATE);
    }
}

static void reading() {
    std::optional<Segment> kept;
    {
        Tracker tracker(on());
        Device device = tracker.device(7);
        kept.emplace(tracker.path());
        Follower follower(*kept);
        TRUE(!tracker.begin_step(1, tracker.intern("step")));
        TRUE(!device.alloc(BufferType::Dram, 1, 4096));
        TRUE(!tracker.end_step(1));
        const auto events = follower.read();
        EQUAL(events.size(), 3);
        EQUAL(events[0].kind, TT_SHM_EVENT_MARKER);
        EQUAL(events[1].bytes, 4096);
        EQUAL(follower.missed(), 0);
        EQUAL(follower.read().size(), 0);
        EQUAL(follower.segment().name(events[0].name) == "step", 1);
        tt_shm_listing listing;
        const auto live = kept->allocations(&listing);
        EQUAL(live.size(), 1);
        EQUAL(listing.exact, 1);
        const auto calibration = kept->calibration();
        TRUE(calibration.to_monotonic_ns(events[0].time) <= calibration.to_monotonic_ns(events[2].time));
        TRUE(kept->is_alive());
    }
    // Its process has closed it.
    EQUAL(Segment::list().size(), 0);
    EQUAL(kept->head(), 3);
    EQUAL(kept->programs().size(), 0);
    try {
        Segment("/dev/shm/no-such-file");
        TRUE(false);
    } catch (const Error& error) {
        EQUAL(error.code().value(), TT_SHM_ERR_NOT_FOUND);
        TRUE(error.system_errno() != 0);
    }
    try {
        Table{};
        TRUE(false);
    } catch (const Error& error) {
        EQUAL(error.code().value(), TT_SHM_ERR_NOT_FOUND);
    }
}

int main() {
    guards();
    one_thread();
    spans();
    reading();
    Tracker process = Tracker::for_process();
    TRUE(!process.is_enabled() && process.path().empty() && !process.device(1).counters());
    return 0;
}
