// What tt-metal's own code calls to report its memory: plain arguments, so that it includes nothing of tt-metal.
//
// For those who build tt-metal themselves; README.md says where each call goes. Nothing here throws, and everything returns at
// once unless TT_ALLOC_TRACKING_ENABLED is 1.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef TT_SHM_METAL_HPP
#define TT_SHM_METAL_HPP

#include <tt_shm.hpp>

#include <array>
#include <cstdint>
#include <mutex>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace tt_shm::metal {

// A chip that an allocator works for: its unique id (the same in every process), its number here, its architecture.
struct Chip {
    std::uint64_t unique_id;
    std::uint32_t number;
    std::uint32_t arch;  // TT_SHM_ARCH_...
};

// Pools of an allocator, by TT_SHM_POOL_...: banks, bytes per bank, alignment.
using Pools = std::array<tt_shm_pool, 4>;

// This process's reports. All calls may come from any thread. Not for a child that is forked while other threads allocate, and
// that uses devices itself: tt-metal is not either.
class Reports {
public:
    // Never destroyed: tt-metal frees buffers in destructors of statics.
    static Reports& get() {
        static Reports* const reports = new Reports();
        return *reports;
    }

    bool is_enabled() const noexcept { return enabled_; }

    // ---- AllocatorImpl ----

    // An allocator was made for these chips: one, or all of a mesh. `number` tells several allocators of a chip apart (a mesh
    // and its submeshes); 0 for the first.
    void allocator_made(const void* allocator, const std::vector<Chip>& chips, const Pools& pools, std::uint64_t number) noexcept {
        guarded([&] {
            std::vector<Device> devices;
            for (const auto& chip : chips) {
                auto info = device_info(chip.unique_id);
                info.known = TT_SHM_KNOWN_LOGICAL | TT_SHM_KNOWN_ARCH | TT_SHM_KNOWN_POOL_DRAM | TT_SHM_KNOWN_POOL_TRACE |
                             TT_SHM_KNOWN_POOL_L1 | TT_SHM_KNOWN_POOL_L1_SMALL;
                info.allocator = number;
                info.logical_id = chip.number;
                info.arch = chip.arch;
                for (std::size_t pool = 0; pool < pools.size(); pool++) {
                    info.pools[pool] = pools[pool];
                }
                devices.push_back(tracker_.device(info));
            }
            Mesh mesh(devices);
            mesh.opened();
            const std::lock_guard lock(mutex_);
            allocators_.insert_or_assign(allocator, std::move(mesh));
        });
    }

    // The allocator is gone.
    void allocator_ended(const void* allocator) noexcept {
        with(allocator, [](const Mesh& mesh) { mesh.closed(); });
        guarded([&] {
            const std::lock_guard lock(mutex_);
            allocators_.erase(allocator);
        });
    }

    // After a buffer was allocated. `bytes_per_bank` is what it really takes in each bank: its aligned size per bank, rounded up
    // to the alignment of the pool.
    void allocated(const void* allocator, BufferType type, std::uint64_t id, std::uint64_t bytes, std::uint64_t bytes_per_bank,
                   std::uint64_t address) noexcept {
        with(allocator, [&](const Mesh& mesh) {
            mesh.alloc(Buffer(type, id, bytes).bytes_per_bank(bytes_per_bank).address(address));
        });
    }

    // Before a buffer is freed: afterwards another thread may be given its address, and be reported first.
    void freed(const void* allocator, std::uint64_t id) noexcept {
        with(allocator, [&](const Mesh& mesh) { mesh.free(id); });
    }

    // Before the allocator drops a buffer because its device is closed: for each that it still has.
    void dropped(const void* allocator, std::uint64_t id) noexcept {
        with(allocator, [&](const Mesh& mesh) { mesh.free_dropped(id); });
    }

    // A buffer could not be allocated: where the allocator throws.
    void failed(const void* allocator, std::uint32_t memory_class, std::uint64_t bytes, std::uint64_t needed_per_bank,
                std::uint32_t banks, std::uint64_t free_per_bank, std::uint64_t largest_per_bank) noexcept {
        with(allocator, [&](const Mesh& mesh) {
            auto failure = sized<tt_shm_failure>();
            failure.class_ = memory_class;
            failure.request_bytes = bytes;
            failure.known = TT_SHM_HAS_FREE | TT_SHM_HAS_NEEDED;
            failure.needed_per_bank_bytes = needed_per_bank;
            failure.banks = banks;
            failure.free_bytes = free_per_bank;
            failure.largest_free_bytes = largest_per_bank;
            failure.per_bank = 1;
            mesh.alloc_failed(failure);
        });
    }

    // ---- Programs ----

    // A circular buffer, dataflow buffer or scratchpad was given its place in L1. `is_global`: it lies inside a tensor's buffer.
    void placed(const void* allocator, std::uint64_t program, std::uint64_t address, std::uint64_t bytes_per_core,
                std::uint32_t cores, bool is_global) noexcept {
        with(allocator, [&](const Mesh& mesh) {
            CircularBuffer cb(program, address, bytes_per_core, cores);
            cb.address(address);
            mesh.cb_alloc(is_global ? cb.globally_allocated() : cb);
        });
    }

    // A program was enqueued. Kernels that are known already are not loaded again; `is_cached`: its binary is on the device.
    void launched(const void* allocator, const Dispatch& dispatch, const std::vector<Kernel>& kernels, bool is_cached) noexcept {
        with(allocator, [&](const Mesh& mesh) {
            mesh.launch(dispatch, kernels, is_cached ? BinaryStatus::Committed : BinaryStatus::NotSent);
        });
    }

    // A fabric or dispatch kernel was written to its cores while a device was opened. Resident until it is unloaded.
    void system_kernel(const void* allocator, const Kernel& kernel) noexcept {
        with(allocator, [&](const Mesh& mesh) { mesh.kernel_load(kernel); });
    }

    // A program was destroyed.
    void program_ended(const void* allocator, std::uint64_t program) noexcept {
        with(allocator, [&](const Mesh& mesh) { mesh.program_end(program); });
    }

    // The kernel-config ring has this many bytes on a core, of which these are in use by this many programs.
    void ring(const void* allocator, std::uint64_t total, std::uint64_t used, std::uint64_t programs) noexcept {
        with(allocator, [&](const Mesh& mesh) { mesh.kernel_ring(total, used, programs); });
    }

    Name name(std::string_view text) noexcept { return enabled_ ? tracker_.intern(text) : Name{}; }

private:
    Reports() : tracker_(open()), enabled_(tracker_.is_enabled()) {}

    // Reports are no reason for a host to fail: without room for a segment it goes on without.
    static Tracker open() noexcept {
        try {
            return Tracker::for_process();
        } catch (const std::exception&) {
            Options off;
            off.enabled = false;
            return Tracker(off);
        }
    }

    template <typename Work>
    void guarded(Work work) noexcept {
        if (!enabled_) {
            return;
        }
        try {
            work();
        } catch (const std::exception&) {
            // Counted in the segment where it is an error of recording; there is nobody to tell otherwise.
        }
    }

    template <typename Work>
    void with(const void* allocator, Work work) noexcept {
        guarded([&] {
            const std::lock_guard lock(mutex_);
            const auto found = allocators_.find(allocator);
            if (found != allocators_.end()) {
                work(found->second);
            }
        });
    }

    Tracker tracker_;
    const bool enabled_;
    std::mutex mutex_;
    std::unordered_map<const void*, Mesh> allocators_;
};

}  // namespace tt_shm::metal

#endif  // TT_SHM_METAL_HPP
