// tt_shm for C++17: reports the memory of Tenstorrent devices, and reads what processes report. Header-only, over tt_shm.h.
//
// Opening, registering and reading throw tt_shm::Error. Recording never throws, since hosts do it in the middle of
// allocating and in destructors: those calls return a std::error_code, which may be ignored. Errors of recording are counted
// where monitors see them, and make no total wrong.
//
// docs/embedding.md has examples. tt_shm_allocation_client.hpp is the drop-in for the proof of concept's client.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef TT_SHM_HPP
#define TT_SHM_HPP

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <system_error>
#include <type_traits>
#include <utility>
#include <vector>

#include "tt_shm.h"

namespace tt_shm {

// ---- Errors ---------------------------------------------------------------------------------------------------------

// The category of TT_SHM_ERR_... numbers.
inline const std::error_category& category() noexcept {
    class Category final : public std::error_category {
        const char* name() const noexcept override { return "tt_shm"; }
        std::string message(int code) const override { return tt_shm_strerror(code); }
    };
    static const Category instance;
    return instance;
}

inline std::error_code make_code(std::int32_t code) noexcept { return {code, category()}; }

// A call that failed: its number, and what it was about.
class Error : public std::system_error {
public:
    explicit Error(std::int32_t code) : std::system_error(make_code(code), tt_shm_last_error()), errno_(tt_shm_last_errno()) {}

    // The errno of the system call that failed, or 0.
    int system_errno() const noexcept { return errno_; }

private:
    int errno_;
};

inline void check(std::int32_t code) {
    if (code != TT_SHM_OK) {
        throw Error(code);
    }
}

// A struct of the C interface with its size set and everything else zero.
template <typename T>
T sized() noexcept {
    T value{};
    value.size = sizeof(T);
    return value;
}

// ---- What is reported -----------------------------------------------------------------------------------------------

enum class BufferType : std::uint32_t {
    Dram = TT_SHM_BUFFER_DRAM,
    L1 = TT_SHM_BUFFER_L1,
    SystemMemory = TT_SHM_BUFFER_SYSTEM_MEMORY,
    L1Small = TT_SHM_BUFFER_L1_SMALL,
    Trace = TT_SHM_BUFFER_TRACE,
};

enum class KernelType : std::uint32_t {
    Application = TT_SHM_KERNEL_APPLICATION,
    Fabric = TT_SHM_KERNEL_FABRIC,
    Dispatch = TT_SHM_KERNEL_DISPATCH,
};

enum class CoreType : std::uint32_t { Tensix = TT_SHM_CORES_TENSIX, Ethernet = TT_SHM_CORES_ETHERNET };

// The memories that peaks are of.
enum class Memory : std::uint32_t { Dram = TT_SHM_MEMORY_DRAM, L1 = TT_SHM_MEMORY_L1 };

// How far back a history reaches. That of telemetry begins with eight minutes.
enum class Resolution : std::uint32_t {
    Minute = TT_SHM_HISTORY_MINUTE,
    Hour = TT_SHM_HISTORY_HOUR,
    Day = TT_SHM_HISTORY_DAY,
};

enum class BinaryStatus : std::uint32_t {
    NotSent = TT_SHM_BINARY_NOT_SENT,
    InFlight = TT_SHM_BINARY_IN_FLIGHT,
    Committed = TT_SHM_BINARY_COMMITTED,
};

// An interned name. The default is none.
struct Name {
    tt_shm_name number = 0;
};

// A buffer: its id, and the bytes requested on each device.
class Buffer {
public:
    Buffer(BufferType type, std::uint64_t id, std::uint64_t bytes) noexcept {
        value_.type_ = static_cast<std::uint32_t>(type);
        value_.id = id;
        value_.bytes = bytes;
    }
    Buffer& address(std::uint64_t address) noexcept { return set(TT_SHM_HAS_ADDRESS, value_.address, address); }
    // The aligned bytes in each bank: it occupies that in every bank of its pool.
    Buffer& bytes_per_bank(std::uint64_t bytes) noexcept {
        return set(TT_SHM_HAS_BYTES_PER_BANK, value_.bytes_per_bank, bytes);
    }
    // The bytes that it occupies on each device, whatever its pool.
    Buffer& occupied(std::uint64_t bytes) noexcept { return set(TT_SHM_HAS_OCCUPIED, value_.occupied_bytes, bytes); }
    Buffer& cores(std::uint32_t cores) noexcept { return value_.cores = cores, *this; }
    Buffer& name(Name name) noexcept { return value_.name = name.number, *this; }
    Buffer& site(Name site) noexcept { return value_.site = site.number, *this; }
    Buffer& core_ranges(Name ranges) noexcept { return value_.core_ranges = ranges.number, *this; }
    const tt_shm_buffer& raw() const noexcept { return value_; }

private:
    Buffer& set(std::uint64_t bit, std::uint64_t& field, std::uint64_t value) noexcept {
        value_.known |= bit;
        field = value;
        return *this;
    }
    tt_shm_buffer value_ = sized<tt_shm_buffer>();
};

// A circular buffer of a program.
class CircularBuffer {
public:
    CircularBuffer(std::uint64_t program, std::uint64_t id, std::uint64_t bytes_per_core, std::uint32_t cores) noexcept {
        value_.program = program;
        value_.id = id;
        value_.bytes_per_core = bytes_per_core;
        value_.cores = cores;
    }
    CircularBuffer& address(std::uint64_t address) noexcept {
        value_.known |= TT_SHM_HAS_ADDRESS;
        value_.address = address;
        return *this;
    }
    // It lies inside an L1 buffer that is reported by itself, so that it has no bytes of its own.
    CircularBuffer& globally_allocated() noexcept { return value_.globally_allocated = 1, *this; }
    CircularBuffer& name(Name name) noexcept { return value_.name = name.number, *this; }
    CircularBuffer& core_ranges(Name ranges) noexcept { return value_.core_ranges = ranges.number, *this; }
    const tt_shm_cb& raw() const noexcept { return value_; }

private:
    tt_shm_cb value_ = sized<tt_shm_cb>();
};

// A kernel binary on a number of cores.
class Kernel {
public:
    Kernel(std::uint64_t id, KernelType type, CoreType core_type, std::uint64_t binary_bytes, std::uint32_t cores) noexcept {
        value_.id = id;
        value_.type_ = static_cast<std::uint32_t>(type);
        value_.core_type = static_cast<std::uint32_t>(core_type);
        value_.binary_bytes = binary_bytes;
        value_.cores = cores;
    }
    Kernel& program(std::uint64_t program) noexcept {
        value_.known |= TT_SHM_HAS_PROGRAM;
        value_.program = program;
        return *this;
    }
    Kernel& hash(std::uint64_t hash) noexcept { return value_.hash = hash, *this; }
    Kernel& name(Name name) noexcept { return value_.name = name.number, *this; }
    Kernel& core_ranges(Name ranges) noexcept { return value_.core_ranges = ranges.number, *this; }
    const tt_shm_kernel& raw() const noexcept { return value_; }

private:
    tt_shm_kernel value_ = sized<tt_shm_kernel>();
};

// A dispatch of a program.
class Dispatch {
public:
    Dispatch(std::uint64_t program) noexcept { value_.program = program; }  // NOLINT: a program is dispatched
    Dispatch& times(std::uint32_t times) noexcept { return value_.times = times, *this; }
    Dispatch& lane(std::uint8_t lane) noexcept { return value_.lane = lane, *this; }
    Dispatch& queue(std::uint8_t queue) noexcept { return value_.queue = queue, *this; }
    Dispatch& name(Name name) noexcept { return value_.name = name.number, *this; }
    const tt_shm_dispatch_info& raw() const noexcept { return value_; }

private:
    tt_shm_dispatch_info value_ = sized<tt_shm_dispatch_info>();
};

// ---- Devices --------------------------------------------------------------------------------------------------------

class Allocation;

// The calls on a device or on several, which are recorded on all of them or on none. `Target` has tracker(), data() and size().
template <typename Target>
class Calls {
public:
    std::error_code alloc(const Buffer& buffer) const noexcept {
        return make_code(tt_shm_alloc_on(tracker(), data(), size(), &buffer.raw()));
    }
    std::error_code free(std::uint64_t id) const noexcept {
        return make_code(tt_shm_free_on(tracker(), data(), size(), id));
    }
    std::error_code free_sized(std::uint64_t id, std::uint64_t bytes) const noexcept {
        return make_code(tt_shm_free_sized(tracker(), data(), size(), id, bytes));
    }
    std::error_code free_dropped(std::uint64_t id) const noexcept {
        return make_code(tt_shm_free_dropped(tracker(), data(), size(), id));
    }
    std::error_code free_many(const std::vector<std::uint64_t>& ids, std::size_t* recorded = nullptr) const noexcept {
        return make_code(tt_shm_free_many(tracker(), data(), size(), ids.data(), ids.size(), recorded));
    }
    // Records that a buffer was allocated, and that it was freed when the result is destroyed.
    Allocation allocate(const Buffer& buffer) const;

    std::error_code name_buffer(std::uint64_t id, Name name, Name site = {}) const noexcept {
        return make_code(
            tt_shm_name_live(tracker(), data(), size(), TT_SHM_KIND_BUFFER, 0, id, name.number, site.number));
    }
    std::error_code cb_alloc(const CircularBuffer& cb) const noexcept {
        return make_code(tt_shm_cb_alloc(tracker(), data(), size(), &cb.raw()));
    }
    std::error_code cb_free(std::uint64_t program, std::uint64_t id, std::uint64_t bytes = TT_SHM_UNKNOWN) const noexcept {
        return make_code(tt_shm_cb_free(tracker(), data(), size(), program, id, bytes));
    }
    std::error_code kernel_load(const Kernel& kernel, bool* cached = nullptr) const noexcept {
        std::uint32_t found = 0;
        const auto code = tt_shm_kernel_load(tracker(), data(), size(), &kernel.raw(), &found);
        if (cached != nullptr) {
            *cached = found != 0;
        }
        return make_code(code);
    }
    std::error_code kernel_unload(std::uint64_t id, std::uint64_t bytes = TT_SHM_UNKNOWN) const noexcept {
        return make_code(tt_shm_kernel_unload(tracker(), data(), size(), id, bytes));
    }
    // A launch: those of the kernels that were not sent before are loaded, and the program is dispatched.
    std::error_code launch(const Dispatch& dispatch, const std::vector<Kernel>& kernels, BinaryStatus status) const noexcept {
        // A Kernel is a tt_shm_kernel and nothing else.
        static_assert(sizeof(Kernel) == sizeof(tt_shm_kernel), "arrays of kernels are passed as they are");
        const auto* first = kernels.empty() ? nullptr : &kernels.front().raw();
        return make_code(tt_shm_launch(tracker(), data(), size(), &dispatch.raw(), first, kernels.size(),
                                       static_cast<std::uint32_t>(status)));
    }
    std::error_code dispatch(const Dispatch& dispatch) const noexcept {
        return make_code(tt_shm_dispatch_on(tracker(), data(), size(), &dispatch.raw()));
    }
    std::error_code program_end(std::uint64_t program) const noexcept {
        return make_code(tt_shm_program_end(tracker(), data(), size(), program));
    }
    std::error_code alloc_failed(tt_shm_failure failure) const noexcept {
        failure.size = sizeof failure;
        return make_code(tt_shm_alloc_failed(tracker(), data(), size(), &failure));
    }
    std::error_code reset_peaks() const noexcept { return make_code(tt_shm_reset_peaks(tracker(), data(), size())); }
    std::error_code opened() const noexcept { return make_code(tt_shm_device_open(tracker(), data(), size())); }
    std::error_code closed() const noexcept { return make_code(tt_shm_device_close(tracker(), data(), size())); }
    std::error_code kernel_ring(std::uint64_t total, std::uint64_t used, std::uint64_t programs) const noexcept {
        return make_code(tt_shm_kernel_ring(tracker(), data(), size(), total, used, programs));
    }

private:
    tt_shm_tracker* tracker() const noexcept { return static_cast<const Target*>(this)->tracker(); }
    const tt_shm_device* data() const noexcept { return static_cast<const Target*>(this)->data(); }
    std::size_t size() const noexcept { return static_cast<const Target*>(this)->size(); }
};

// A registered device. Cheap to copy; valid as long as its tracker is open, and then refused.
class Device : public Calls<Device> {
public:
    Device(tt_shm_tracker* tracker, tt_shm_device number) noexcept : tracker_(tracker), number_(number) {}

    tt_shm_device number() const noexcept { return number_; }

    using Calls<Device>::alloc;
    // The short form: what the buffer occupies is not known then.
    std::error_code alloc(BufferType type, std::uint64_t id, std::uint64_t bytes) const noexcept {
        return make_code(tt_shm_alloc(tracker_, number_, static_cast<std::uint32_t>(type), id, bytes));
    }
    // This process's own counters, exact as of the last call; none if tracking is disabled.
    std::optional<tt_shm_counters> counters() const noexcept {
        auto counters = sized<tt_shm_counters>();
        if (tt_shm_own_counters(tracker_, number_, &counters) != TT_SHM_OK) {
            return std::nullopt;
        }
        return counters;
    }

    tt_shm_tracker* tracker() const noexcept { return tracker_; }
    const tt_shm_device* data() const noexcept { return &number_; }
    std::size_t size() const noexcept { return 1; }

private:
    tt_shm_tracker* tracker_;
    tt_shm_device number_;
};

// Several devices that act as one.
class Mesh : public Calls<Mesh> {
public:
    explicit Mesh(const std::vector<Device>& devices) : tracker_(devices.empty() ? nullptr : devices.front().tracker()) {
        for (const auto& device : devices) {
            numbers_.push_back(device.number());
        }
    }

    tt_shm_tracker* tracker() const noexcept { return tracker_; }
    const tt_shm_device* data() const noexcept { return numbers_.data(); }
    std::size_t size() const noexcept { return numbers_.size(); }

private:
    tt_shm_tracker* tracker_;
    std::vector<tt_shm_device> numbers_;
};

// A buffer that is reported as freed when this is destroyed.
class Allocation {
public:
    Allocation(tt_shm_tracker* tracker, std::vector<tt_shm_device> devices, std::uint64_t id) noexcept
        : tracker_(tracker), devices_(std::move(devices)), id_(id) {}
    Allocation(Allocation&& other) noexcept
        : tracker_(std::exchange(other.tracker_, nullptr)), devices_(std::move(other.devices_)), id_(other.id_) {}
    Allocation& operator=(Allocation&& other) noexcept {
        if (this != &other) {
            free();
            tracker_ = std::exchange(other.tracker_, nullptr);
            devices_ = std::move(other.devices_);
            id_ = other.id_;
        }
        return *this;
    }
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;
    ~Allocation() { free(); }

    std::uint64_t id() const noexcept { return id_; }

    // Reports it as freed now.
    std::error_code free() noexcept {
        if (tracker_ == nullptr) {
            return {};
        }
        return make_code(tt_shm_free_on(std::exchange(tracker_, nullptr), devices_.data(), devices_.size(), id_));
    }

    // Leaves it live.
    void release() noexcept { tracker_ = nullptr; }

private:
    tt_shm_tracker* tracker_;
    std::vector<tt_shm_device> devices_;
    std::uint64_t id_;
};

template <typename Target>
Allocation Calls<Target>::allocate(const Buffer& buffer) const {
    std::vector<tt_shm_device> devices(data(), data() + size());
    check(tt_shm_alloc_on(tracker(), data(), size(), &buffer.raw()));
    return Allocation(tracker(), std::move(devices), buffer.raw().id);
}

// ---- The tracker ----------------------------------------------------------------------------------------------------

// How a tracker is opened. What is not set, or empty, comes from the environment.
struct Options {
    std::optional<bool> enabled = std::nullopt;
    std::string name_space = {};
    std::string process_name = {};
    std::uint64_t ring_slots = 0;
    std::uint64_t live_capacity = 0;
    std::uint64_t name_bytes = 0;
    bool backtrace = false;
    // What it reports is no memory of tt-metal's allocators: a tap in this process goes on.
    bool beside_tap = false;
    // For the thread that opens it alone, without a lock: others are refused (TT_SHM_ERR_THREAD).
    bool exclusive = false;
};

// A device as the host describes it: fields of tt_shm_device_info, with the bits of `known` for those that are set.
inline tt_shm_device_info device_info(std::uint64_t chip_id) noexcept {
    auto info = sized<tt_shm_device_info>();
    info.chip_id = chip_id;
    return info;
}

// Reports from any number of threads. Moved, not copied; the segment is closed when a tracker that was opened is destroyed.
class Tracker {
public:
    // The one tracker of this process, opened by the environment: what hosts use unless they have a reason not to. It stays
    // open when the object is destroyed.
    static Tracker for_process() {
        tt_shm_tracker* handle = nullptr;
        check(tt_shm_tracker_for_process(&handle));
        return Tracker(handle, false);
    }

    // A tracker of its own, with a segment of its own.
    explicit Tracker(const Options& options) {
        auto raw = sized<tt_shm_options>();
        raw.flags = (options.backtrace ? TT_SHM_OPEN_BACKTRACE : 0u) | (options.beside_tap ? TT_SHM_OPEN_BESIDE_TAP : 0u) |
                    (options.exclusive ? TT_SHM_OPEN_EXCLUSIVE : 0u);
        if (options.enabled) {
            raw.flags |= *options.enabled ? TT_SHM_OPEN_ENABLED : TT_SHM_OPEN_DISABLED;
        }
        raw.name_space = options.name_space.empty() ? nullptr : options.name_space.c_str();
        raw.process_name = options.process_name.empty() ? nullptr : options.process_name.c_str();
        raw.ring_slots = options.ring_slots;
        raw.live_capacity = options.live_capacity;
        raw.name_bytes = options.name_bytes;
        check(tt_shm_tracker_open(&raw, &handle_));
        is_own_ = true;
    }
    Tracker(Tracker&& other) noexcept
        : handle_(std::exchange(other.handle_, nullptr)), is_own_(std::exchange(other.is_own_, false)) {}
    Tracker& operator=(Tracker&& other) noexcept {
        std::swap(handle_, other.handle_);
        std::swap(is_own_, other.is_own_);
        return *this;
    }
    Tracker(const Tracker&) = delete;
    Tracker& operator=(const Tracker&) = delete;
    ~Tracker() {
        if (is_own_) {
            tt_shm_tracker_close(handle_);
        }
    }

    bool is_enabled() const noexcept { return tt_shm_tracker_is_enabled(handle_) != 0; }

    // The file that this process writes; empty if tracking is disabled.
    std::string path() const {
        std::size_t needed = 0;
        check(tt_shm_tracker_path(handle_, nullptr, 0, &needed));
        std::string text(needed, '\0');
        check(tt_shm_tracker_path(handle_, text.data(), text.size(), nullptr));
        text.resize(needed == 0 ? 0 : needed - 1);
        return text;
    }

    // Registers a device; one that is known keeps its number.
    Device device(tt_shm_device_info info) {
        info.size = sizeof info;
        tt_shm_device number = 0;
        check(tt_shm_register_device(handle_, &info, &number));
        return Device(handle_, number);
    }
    Device device(std::uint64_t chip_id) { return device(device_info(chip_id)); }

    // A name for use in later calls; none if there is no room for it.
    Name intern(std::string_view name) noexcept {
        Name interned;
        tt_shm_intern(handle_, name.data(), name.size(), &interned.number);
        return interned;
    }

    std::error_code begin_step(std::uint64_t id, Name name = {}) noexcept { return marker(TT_SHM_MARKER_BEGIN, id, name); }
    std::error_code end_step(std::uint64_t id, Name name = {}) noexcept { return marker(TT_SHM_MARKER_END, id, name); }
    std::error_code instant(std::uint64_t id, Name name = {}) noexcept { return marker(TT_SHM_MARKER_INSTANT, id, name); }

    // This process holds memory that it cannot report, or does no longer.
    std::error_code partial(bool partial) noexcept { return make_code(tt_shm_partial(handle_, partial ? 1 : 0)); }
    std::error_code self_checks(std::uint64_t made, std::uint64_t different) noexcept {
        return make_code(tt_shm_self_checks(handle_, made, different));
    }

    // Passes an exclusive tracker on: the thread that has it lets go, and another takes it.
    std::error_code release() noexcept { return make_code(tt_shm_tracker_release(handle_)); }
    std::error_code acquire() noexcept { return make_code(tt_shm_tracker_acquire(handle_)); }

    // Ends the reports, also those of other threads.
    std::error_code close() noexcept {
        is_own_ = false;
        return make_code(tt_shm_tracker_close(std::exchange(handle_, nullptr)));
    }

    tt_shm_tracker* handle() const noexcept { return handle_; }

private:
    Tracker(tt_shm_tracker* handle, bool is_own) noexcept : handle_(handle), is_own_(is_own) {}
    std::error_code marker(std::uint32_t phase, std::uint64_t id, Name name) noexcept {
        return make_code(tt_shm_marker(handle_, phase, id, name.number));
    }

    tt_shm_tracker* handle_ = nullptr;
    bool is_own_ = false;
};

// ---- Reading --------------------------------------------------------------------------------------------------------

namespace detail {

// Calls a function that fills an array until there was room for everything.
template <typename T, typename Fill>
std::vector<T> filled(Fill fill) {
    std::vector<T> items;
    std::size_t total = 0;
    check(fill(nullptr, std::size_t{0}, &total));
    while (total > items.size()) {
        T first{};
        if constexpr (!std::is_same_v<T, tt_shm_event> && !std::is_same_v<T, tt_shm_path>) {
            first.size = sizeof(T);
        }
        items.assign(total, first);
        check(fill(items.data(), items.size(), &total));
    }
    items.resize(total);
    return items;
}

}  // namespace detail

// Converts a segment's ticks to times.
class Calibration {
public:
    explicit Calibration(const tt_shm_calibration& raw) noexcept : raw_(raw) {}

    std::uint64_t to_monotonic_ns(std::uint64_t ticks) const {
        std::uint64_t time = 0;
        check(tt_shm_to_monotonic_ns(&raw_, &ticks, &time, 1));
        return time;
    }
    std::optional<std::uint64_t> to_realtime_ns(std::uint64_t ticks) const {
        std::uint64_t time = 0;
        check(tt_shm_to_realtime_ns(&raw_, &ticks, &time, 1));
        return time == TT_SHM_UNKNOWN ? std::nullopt : std::optional<std::uint64_t>(time);
    }
    const tt_shm_calibration& raw() const noexcept { return raw_; }

private:
    tt_shm_calibration raw_;
};

// One process's memory as it reports it. Copies share one mapping.
class Segment {
public:
    explicit Segment(const std::string& path) {
        tt_shm_segment* handle = nullptr;
        check(tt_shm_segment_open(path.c_str(), &handle));
        handle_.reset(handle, tt_shm_segment_close);
    }

    // By a descriptor, which stays the caller's.
    static Segment from_descriptor(int descriptor) {
        tt_shm_segment* handle = nullptr;
        check(tt_shm_segment_open_fd(descriptor, &handle));
        return Segment(handle);
    }

    // The files that are named as segments of a namespace, or of that of the environment.
    static std::vector<std::string> list(const char* name_space = nullptr) {
        const auto paths = detail::filled<tt_shm_path>([&](tt_shm_path* paths, std::size_t room, std::size_t* total) {
            return tt_shm_segment_list(name_space, paths, room, total);
        });
        std::vector<std::string> texts;
        for (const auto& path : paths) {
            texts.emplace_back(path.text);
        }
        return texts;
    }

    tt_shm_process process() const {
        auto process = sized<tt_shm_process>();
        check(tt_shm_segment_process(handle(), &process));
        return process;
    }
    bool is_alive() const {
        std::uint32_t alive = 0;
        check(tt_shm_segment_is_alive(handle(), &alive));
        return alive != 0;
    }
    std::vector<tt_shm_device_info> devices() const {
        return detail::filled<tt_shm_device_info>([this](tt_shm_device_info* items, std::size_t room, std::size_t* total) {
            return tt_shm_segment_devices(handle(), items, room, total);
        });
    }
    // The exact counters of all devices at one position, by their index.
    std::vector<tt_shm_counters> counters(std::uint64_t* position = nullptr) const {
        return detail::filled<tt_shm_counters>([&](tt_shm_counters* items, std::size_t room, std::size_t* total) {
            return tt_shm_segment_counters(handle(), items, room, total, position);
        });
    }
    // Everything that is live, oldest first. `listing`, if given, says how exact that is.
    std::vector<tt_shm_allocation> allocations(tt_shm_listing* listing = nullptr) const {
        if (listing != nullptr) {
            listing->size = sizeof *listing;
        }
        return detail::filled<tt_shm_allocation>([&](tt_shm_allocation* items, std::size_t room, std::size_t* total) {
            return tt_shm_segment_allocations(handle(), items, room, total, listing);
        });
    }
    std::vector<tt_shm_program> programs() const {
        return detail::filled<tt_shm_program>([this](tt_shm_program* items, std::size_t room, std::size_t* total) {
            return tt_shm_segment_programs(handle(), items, room, total);
        });
    }
    // How many bytes of loaded kernels are copies of a binary that is also loaded elsewhere, by device.
    std::vector<tt_shm_kernel_sharing> kernel_sharing() const {
        return detail::filled<tt_shm_kernel_sharing>(
            [this](tt_shm_kernel_sharing* items, std::size_t room, std::size_t* total) {
                return tt_shm_segment_kernel_sharing(handle(), items, room, total);
            });
    }
    // The bytes of a name; empty if there is none.
    std::string name(tt_shm_name number) const {
        std::size_t needed = 0;
        const auto code = tt_shm_segment_name(handle(), number, nullptr, 0, &needed);
        if (code == TT_SHM_ERR_NOT_FOUND) {
            return {};
        }
        check(code);
        std::string text(needed, '\0');
        check(tt_shm_segment_name(handle(), number, text.data(), text.size(), nullptr));
        text.resize(needed - 1);
        return text;
    }
    std::uint64_t head() const {
        std::uint64_t position = 0;
        check(tt_shm_segment_head(handle(), &position));
        return position;
    }
    Calibration calibration() const {
        auto raw = sized<tt_shm_calibration>();
        check(tt_shm_segment_calibration(handle(), &raw));
        return Calibration(raw);
    }

    tt_shm_segment* handle() const noexcept { return handle_.get(); }

private:
    explicit Segment(tt_shm_segment* handle) : handle_(handle, tt_shm_segment_close) {}
    std::shared_ptr<tt_shm_segment> handle_;
};

// The events of a process, in order. Keeps its segment open.
class Follower {
public:
    // From now on.
    explicit Follower(Segment segment) : segment_(std::move(segment)), position_(segment_.head()) {}
    // After the event of a position; 0 is from the oldest that is kept.
    Follower(Segment segment, std::uint64_t position) : segment_(std::move(segment)), position_(position) {}

    // Copies what has happened since the last call; how many events that were. Never waits.
    std::size_t read(tt_shm_event* events, std::size_t room) {
        std::size_t read = 0;
        std::uint64_t missed = 0;
        check(tt_shm_segment_read_from(segment_.handle(), position_, events, room, &read, &missed, &position_));
        missed_ += missed;
        return read;
    }
    std::vector<tt_shm_event> read(std::size_t most = 1024) {
        std::vector<tt_shm_event> events(most);
        events.resize(read(events.data(), most));
        return events;
    }
    // Events that were overwritten before they were read.
    std::uint64_t missed() const noexcept { return missed_; }
    std::uint64_t position() const noexcept { return position_; }
    const Segment& segment() const noexcept { return segment_; }

private:
    Segment segment_;
    std::uint64_t position_;
    std::uint64_t missed_ = 0;
};

// A span of time in a process: the most that it used within, and what that was made of. Begins when it is made.
class Span {
public:
    explicit Span(const Segment& segment) {
        tt_shm_span* handle = nullptr;
        check(tt_shm_span_begin(segment.handle(), &handle));
        handle_.reset(handle, tt_shm_span_close);
    }

    // Takes in what has happened; a long span needs this once per quarter of the ring. How many events there were.
    std::uint64_t poll() {
        std::uint64_t events = 0;
        check(tt_shm_span_poll(handle_.get(), &events));
        return events;
    }
    // Ends it. What follows may be asked from then on.
    tt_shm_span_report end() {
        auto report = sized<tt_shm_span_report>();
        check(tt_shm_span_end(handle_.get(), &report));
        return report;
    }
    std::vector<tt_shm_span_device> devices() const {
        return detail::filled<tt_shm_span_device>([this](tt_shm_span_device* items, std::size_t room, std::size_t* total) {
            return tt_shm_span_devices(handle_.get(), items, room, total);
        });
    }
    // What the peak of a device, by its index, was made of, most bytes first; none if that is not known.
    std::optional<std::vector<tt_shm_span_part>> parts(std::uint32_t device, Memory memory) const {
        const auto fill = [&](tt_shm_span_part* items, std::size_t room, std::size_t* total) {
            return tt_shm_span_parts(handle_.get(), device, static_cast<std::uint32_t>(memory), items, room, total);
        };
        if (fill(nullptr, 0, nullptr) == TT_SHM_ERR_NOT_FOUND) {
            return std::nullopt;
        }
        return detail::filled<tt_shm_span_part>(fill);
    }

private:
    std::shared_ptr<tt_shm_span> handle_;
};

// A copy of all rows of a table, of one moment.
class Snapshot {
public:
    explicit Snapshot(tt_shm_snapshot* handle) : handle_(handle, tt_shm_snapshot_close) {}

    tt_shm_snapshot_info describe() const {
        auto info = sized<tt_shm_snapshot_info>();
        check(tt_shm_snapshot_describe(handle_.get(), &info));
        return info;
    }
    std::vector<tt_shm_device_stats> devices() const {
        return detail::filled<tt_shm_device_stats>([this](tt_shm_device_stats* items, std::size_t room, std::size_t* total) {
            return tt_shm_snapshot_devices(handle_.get(), items, room, total);
        });
    }
    tt_shm_device_info device_info(std::uint32_t row) const {
        auto info = sized<tt_shm_device_info>();
        check(tt_shm_snapshot_device_info(handle_.get(), row, &info));
        return info;
    }
    std::vector<tt_shm_process_stats> processes() const {
        return detail::filled<tt_shm_process_stats>([this](tt_shm_process_stats* items, std::size_t room, std::size_t* total) {
            return tt_shm_snapshot_processes(handle_.get(), items, room, total);
        });
    }
    std::vector<tt_shm_usage> usages() const {
        return detail::filled<tt_shm_usage>([this](tt_shm_usage* items, std::size_t room, std::size_t* total) {
            return tt_shm_snapshot_usages(handle_.get(), items, room, total);
        });
    }
    // What the process of a usage claims about the device.
    tt_shm_device_info usage_info(std::uint64_t row) const {
        auto info = sized<tt_shm_device_info>();
        check(tt_shm_snapshot_usage_info(handle_.get(), row, &info));
        return info;
    }
    // What the peak of the device in a row was made of.
    tt_shm_composition composition(std::uint32_t device_row, Memory memory) const {
        auto composition = sized<tt_shm_composition>();
        const auto number = static_cast<std::uint32_t>(memory);
        check(tt_shm_snapshot_composition(handle_.get(), device_row, number, &composition));
        return composition;
    }
    // Failed allocations, newest first.
    std::vector<tt_shm_failure_record> failures() const {
        return detail::filled<tt_shm_failure_record>(
            [this](tt_shm_failure_record* items, std::size_t room, std::size_t* total) {
                return tt_shm_snapshot_failures(handle_.get(), items, room, total);
            });
    }
    // Notices for the operator, newest first.
    std::vector<tt_shm_notice> notices() const {
        return detail::filled<tt_shm_notice>([this](tt_shm_notice* items, std::size_t room, std::size_t* total) {
            return tt_shm_snapshot_notices(handle_.get(), items, room, total);
        });
    }
    // What the driver tells of its devices.
    std::vector<tt_shm_driver_stats> driver() const {
        return detail::filled<tt_shm_driver_stats>([this](tt_shm_driver_stats* items, std::size_t room, std::size_t* total) {
            return tt_shm_snapshot_driver(handle_.get(), items, room, total);
        });
    }
    tt_shm_device_info driver_info(std::uint32_t row) const {
        auto info = sized<tt_shm_device_info>();
        check(tt_shm_snapshot_driver_info(handle_.get(), row, &info));
        return info;
    }
    // Regions of tt-metal, and their processes.
    std::vector<tt_shm_region_stats> regions() const {
        return detail::filled<tt_shm_region_stats>([this](tt_shm_region_stats* items, std::size_t room, std::size_t* total) {
            return tt_shm_snapshot_regions(handle_.get(), items, room, total);
        });
    }

private:
    std::shared_ptr<tt_shm_snapshot> handle_;
};

// What an aggregator publishes of all processes.
class Table {
public:
    // Of a namespace, or of that of the environment.
    explicit Table(const char* name_space = nullptr) {
        tt_shm_table* handle = nullptr;
        check(tt_shm_table_open(name_space, &handle));
        handle_.reset(handle, tt_shm_table_close);
    }

    tt_shm_freshness freshness() const {
        auto freshness = sized<tt_shm_freshness>();
        check(tt_shm_table_freshness(handle_.get(), &freshness));
        return freshness;
    }
    Snapshot snapshot() const {
        tt_shm_snapshot* snapshot = nullptr;
        check(tt_shm_table_snapshot(handle_.get(), &snapshot));
        return Snapshot(snapshot);
    }
    tt_shm_table_info describe() const {
        auto info = sized<tt_shm_table_info>();
        check(tt_shm_table_describe(handle_.get(), &info));
        return info;
    }
    // One device, without a copy of all rows.
    tt_shm_device_stats device(std::uint32_t row) const {
        auto stats = sized<tt_shm_device_stats>();
        check(tt_shm_table_device(handle_.get(), row, &stats));
        return stats;
    }
    // What was used of the device in a row, oldest first. A bucket that is missing is a time that nobody saw.
    std::vector<tt_shm_bucket> history(std::uint32_t device_row, Resolution resolution) const {
        const auto number = static_cast<std::uint32_t>(resolution);
        return detail::filled<tt_shm_bucket>([&](tt_shm_bucket* items, std::size_t room, std::size_t* total) {
            return tt_shm_table_history(handle_.get(), device_row, number, items, room, total);
        });
    }
    // What the driver measured of the device in one of its rows, oldest first.
    std::vector<tt_shm_telemetry> telemetry(std::uint32_t driver_row, Resolution resolution) const {
        const auto number = static_cast<std::uint32_t>(resolution);
        return detail::filled<tt_shm_telemetry>([&](tt_shm_telemetry* items, std::size_t room, std::size_t* total) {
            return tt_shm_table_telemetry(handle_.get(), driver_row, number, items, room, total);
        });
    }

private:
    std::shared_ptr<tt_shm_table> handle_;
};

// The figures of all processes: the table of a running aggregator, or else an aggregation in this process. For one thread at
// a time.
class Source {
public:
    // Of a namespace, or of that of the environment.
    explicit Source(const char* name_space = nullptr) {
        tt_shm_source* handle = nullptr;
        check(tt_shm_source_open(name_space, &handle));
        handle_.reset(handle, tt_shm_source_close);
    }

    // `origin`, if given, says where the rows come from.
    Snapshot read(tt_shm_origin* origin = nullptr) {
        if (origin != nullptr) {
            origin->size = sizeof *origin;
        }
        tt_shm_snapshot* snapshot = nullptr;
        check(tt_shm_source_read(handle_.get(), &snapshot, origin));
        return Snapshot(snapshot);
    }

    // What was used of a device that was read from here, oldest first.
    std::vector<tt_shm_bucket> history(const tt_shm_device_stats& device, Resolution resolution) {
        const auto number = static_cast<std::uint32_t>(resolution);
        return detail::filled<tt_shm_bucket>([&](tt_shm_bucket* items, std::size_t room, std::size_t* total) {
            return tt_shm_source_history(handle_.get(), device.row, device.chip_id, number, items, room, total);
        });
    }
    // What the driver measured of one of its devices, oldest first.
    std::vector<tt_shm_telemetry> telemetry(std::uint32_t driver_row, Resolution resolution) {
        const auto number = static_cast<std::uint32_t>(resolution);
        return detail::filled<tt_shm_telemetry>([&](tt_shm_telemetry* items, std::size_t room, std::size_t* total) {
            return tt_shm_source_telemetry(handle_.get(), driver_row, number, items, room, total);
        });
    }

    // Who reads more than once polls in between, after so many nanoseconds.
    std::uint64_t poll() {
        std::uint64_t wait_ns = 0;
        check(tt_shm_source_poll(handle_.get(), &wait_ns));
        return wait_ns;
    }

private:
    std::shared_ptr<tt_shm_source> handle_;
};

}  // namespace tt_shm

#endif  // TT_SHM_HPP
