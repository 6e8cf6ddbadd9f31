// The client of the proof of concept, tt::tt_metal::AllocationClient, with the same static functions, over tt_shm.
//
// A tree that has calls of it replaces
//
//     #include "tt_metal/impl/allocator/allocation_client.hpp"
//
// by this header, leaves allocation_client.cpp out of its build, and links tt-shm::static or tt-shm::shared.
//
// As before it is on only if TT_ALLOC_TRACKING_ENABLED is 1, a repeated allocation of an id raises a reference count, and
// devices are known by the host's numbers. No server is needed, nothing blocks, and nothing throws. Sizes of kernels and
// circular buffers are those on all cores. What it reports is marked as partial: it does not say what a buffer occupies, nor
// which programs are resident. integrations/tt-metal has calls that do.
//
// SPDX-License-Identifier: Apache-2.0

#ifndef TT_SHM_ALLOCATION_CLIENT_HPP
#define TT_SHM_ALLOCATION_CLIENT_HPP

#include <cstdint>

#include "tt_shm.h"

namespace tt::tt_metal {

class AllocationClient {
public:
    // buffer_type: 0 DRAM, 1 L1, 2 system memory, 3 L1_SMALL, 4 trace. buffer_id is often the address.
    static void report_allocation(int device_id, uint64_t size, uint8_t buffer_type, uint64_t buffer_id) noexcept {
        tt_shm_client_allocation(device_id, size, buffer_type, buffer_id);
    }

    static void report_deallocation(int device_id, uint64_t buffer_id) noexcept {
        tt_shm_client_deallocation(device_id, buffer_id);
    }

    static void report_cb_allocation(int device_id, uint64_t size, uint64_t cb_id) noexcept {
        tt_shm_client_cb_allocation(device_id, size, cb_id);
    }

    static void report_cb_deallocation(int device_id, uint64_t size, uint64_t cb_id) noexcept {
        tt_shm_client_cb_deallocation(device_id, size, cb_id);
    }

    // kernel_type: 0 application, 1 fabric, 2 dispatch; told, never guessed from the size.
    static void report_kernel_load(int device_id, uint64_t size, uint64_t kernel_id, uint8_t kernel_type = 0) noexcept {
        tt_shm_client_kernel_load(device_id, size, kernel_id, kernel_type);
    }

    static void report_kernel_unload(int device_id, uint64_t size, uint64_t kernel_id) noexcept {
        tt_shm_client_kernel_unload(device_id, size, kernel_id);
    }

    static bool is_enabled() noexcept { return tt_shm_client_is_enabled() != 0; }
};

}  // namespace tt::tt_metal

#endif  // TT_SHM_ALLOCATION_CLIENT_HPP
