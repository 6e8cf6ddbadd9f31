/* tt_shm: reports the memory of Tenstorrent devices, and reads what processes report.
 *
 * Written by cbindgen from capi/src: `UPDATE_EXPECTED=1 cargo test -p tt-shm-capi header`. docs/embedding.md has examples.
 *
 * Results. Functions return 0 (TT_SHM_OK) or a positive TT_SHM_ERR_... number; none has two meanings, and none changes.
 * tt_shm_strerror() says what a number means, tt_shm_last_error() what the last failed call of the thread was about.
 * Errors of recording are counted where monitors see them, make no total wrong, and are no reason to stop.
 *
 * Handles are numbers that look like pointers. Null, closed handles and those of another kind are refused.
 *
 * Structs begin with `size`: set it to sizeof. All other fields may be zero. A library that is newer than the caller takes
 * what a shorter struct lacks as zero; one that is older refuses a longer struct unless what it does not know is zero, and
 * fills what it does not know with zeros. In an array all elements have the size of the first.
 *
 * Arrays that are filled: `capacity` says how many elements there is room for, and may be 0 (then the pointer may be null);
 * `total` is set to how many there are.
 *
 * Threads. Every function may be called by any thread at any time, also while another closes the handle, in functions that
 * run at exit, and in a forked child, which gets a segment of its own at its first call of a tracker. None may be called
 * in a signal handler, except with a handle of tt_shm_tracker_without_waiting(). A tracker that was opened with
 * TT_SHM_OPEN_EXCLUSIVE is for one thread, and refuses all others.
 *
 * SPDX-License-Identifier: Apache-2.0 */

#ifndef TT_SHM_H
#define TT_SHM_H

#include <stddef.h>
#include <stdint.h>

// Success.
#define TT_SHM_OK 0

// A free or name of something that is not live. Nothing changed.
#define TT_SHM_ERR_UNMATCHED_FREE 1

// An allocation of something that is live. Nothing changed.
#define TT_SHM_ERR_DOUBLE_ALLOC 2

// A free with a different size than was requested. The allocation is freed.
#define TT_SHM_ERR_SIZE_MISMATCH 3

// The device is not registered with this tracker.
#define TT_SHM_ERR_UNKNOWN_DEVICE 4

// More devices than a segment lists.
#define TT_SHM_ERR_DEVICE_LIST_FULL 5

// No room in /dev/shm for the counters of another device.
#define TT_SHM_ERR_NO_ROOM 6

// More names, or more bytes of names, than a segment holds.
#define TT_SHM_ERR_NAMES_FULL 7

// A size that no device can hold.
#define TT_SHM_ERR_SIZE_OUT_OF_RANGE 8

// A dispatch of a program that has neither kernels nor circular buffers.
#define TT_SHM_ERR_UNKNOWN_PROGRAM 9

// The lane is out of range.
#define TT_SHM_ERR_LANE_OUT_OF_RANGE 10

// This forked process could not create a segment of its own.
#define TT_SHM_ERR_FORKED_WITHOUT_SEGMENT 11

// The call would have had to wait, and was made with a handle that does not. Nothing changed.
#define TT_SHM_ERR_BUSY 12

// The namespace is not valid.
#define TT_SHM_ERR_OPEN_NAMESPACE 32

// A setting is out of range.
#define TT_SHM_ERR_OPEN_SETTING 33

// The process may not create files of the required size.
#define TT_SHM_ERR_OPEN_LIMIT 34

// The segment's file could not be created.
#define TT_SHM_ERR_OPEN_CREATE 35

// The segment's file could not be mapped.
#define TT_SHM_ERR_OPEN_MAP 36

// There is no room in /dev/shm for a segment.
#define TT_SHM_ERR_OPEN_NO_ROOM 37

// The kernel is too old: Linux 5.14 is needed.
#define TT_SHM_ERR_OPEN_OLD_KERNEL 38

// The segment could not be linked under its name.
#define TT_SHM_ERR_OPEN_PUBLISH 39

// The file does not exist: its process may have ended, or no aggregator runs.
#define TT_SHM_ERR_NOT_FOUND 64

// The file may not be read by this user.
#define TT_SHM_ERR_NOT_PERMITTED 65

// The file is not a segment or table, or not an honest one.
#define TT_SHM_ERR_REFUSED 66

// The file has a layout that this version does not know.
#define TT_SHM_ERR_LAYOUT 67

// The process was faster than its reader in every attempt: try again.
#define TT_SHM_ERR_READ_BUSY 68

// The segment has figures that no honest process can have.
#define TT_SHM_ERR_BROKEN 69

// A system call failed.
#define TT_SHM_ERR_IO 70

// A pointer that must not be null is.
#define TT_SHM_ERR_NULL 128

// The handle was closed, is one of another kind, or never was one.
#define TT_SHM_ERR_HANDLE 129

// The `size` at the beginning of a struct is impossible, or the struct is that of a newer header and uses what this
// version does not have.
#define TT_SHM_ERR_SIZE 130

// A text that must be UTF-8 is not.
#define TT_SHM_ERR_UTF8 131

// An error in this library. Nothing more can be said of the call.
#define TT_SHM_ERR_PANIC 132

// An argument has a value that there is not, such as a type that is not defined.
#define TT_SHM_ERR_VALUE 133

// A pointer is not aligned for its type.
#define TT_SHM_ERR_ALIGNMENT 134

// Too many handles are open.
#define TT_SHM_ERR_TOO_MANY 135

// Another thread is using the handle, which is for one at a time.
#define TT_SHM_ERR_IN_USE 136

// The call does not fit what the handle is in the middle of: a span has ended, or has not.
#define TT_SHM_ERR_STATE 137

// The tracker is exclusive, and does not belong to the calling thread.
#define TT_SHM_ERR_THREAD 138

// The memories that peaks are of: DRAM.
#define TT_SHM_MEMORY_DRAM 0

// L1 of Tensix cores.
#define TT_SHM_MEMORY_L1 1

// Holders that are kept with a peak, or with a failure.
#define TT_SHM_HOLDERS 8

// Values that the driver tells, places in `absences` and of the first of them in `numbers`: temperature of the chip, in thousandths of a degree Celsius.
#define TT_SHM_TOLD_TEMPERATURE 0

// Its limit.
#define TT_SHM_TOLD_TEMPERATURE_LIMIT 1

// Voltage of the cores, in millivolts.
#define TT_SHM_TOLD_VOLTAGE 2

// Its limit.
#define TT_SHM_TOLD_VOLTAGE_LIMIT 3

// Current, in milliamperes.
#define TT_SHM_TOLD_CURRENT 4

// Its limit.
#define TT_SHM_TOLD_CURRENT_LIMIT 5

// Power, in microwatts.
#define TT_SHM_TOLD_POWER 6

// Its limit.
#define TT_SHM_TOLD_POWER_LIMIT 7

// Speed of the fan, in rotations per minute.
#define TT_SHM_TOLD_FAN 8

// Its limit.
#define TT_SHM_TOLD_FAN_LIMIT 9

// Clock of the Tensix cores, in MHz.
#define TT_SHM_TOLD_AICLK 10

// Clock of the bus, in MHz.
#define TT_SHM_TOLD_AXICLK 11

// Clock of the management processor, in MHz.
#define TT_SHM_TOLD_ARCCLK 12

// A number that the firmware counts up.
#define TT_SHM_TOLD_HEARTBEAT 13

// How often the chip was switched off because it was too hot.
#define TT_SHM_TOLD_THERMAL_TRIPS 14

// Speed of a lane of the PCIe link now, in millions of transfers per second.
#define TT_SHM_TOLD_LINK_SPEED 15

// Lanes of the PCIe link now.
#define TT_SHM_TOLD_LINK_WIDTH 16

// Speed of a lane as it could be.
#define TT_SHM_TOLD_LINK_SPEED_MAX 17

// Lanes as there could be.
#define TT_SHM_TOLD_LINK_WIDTH_MAX 18

// Memory node of the processor that it is attached to. The last of the numbers.
#define TT_SHM_TOLD_NUMA_NODE 19

// PCI address, in `tt_shm_snapshot_driver_info`.
#define TT_SHM_TOLD_PCI_ADDRESS 20

// Name of the board, likewise.
#define TT_SHM_TOLD_BOARD 21

// `serial`.
#define TT_SHM_TOLD_SERIAL 22

// `asic_id`.
#define TT_SHM_TOLD_ASIC_ID 23

// Version of the firmware as a whole: the first of `firmware`. The other parts follow.
#define TT_SHM_TOLD_BUNDLE 24

// Version of the board's management controller.
#define TT_SHM_TOLD_M3_APP 25

// Version of that controller's loader.
#define TT_SHM_TOLD_M3_BOOTLOADER 26

// Version of the chip's management processor.
#define TT_SHM_TOLD_ARC 27

// Version of the ethernet cores.
#define TT_SHM_TOLD_ETHERNET 28

// Version of the tool that wrote the firmware.
#define TT_SHM_TOLD_TT_FLASH 29

// Room for values; unused ones are zero.
#define TT_SHM_TOLD 32

// Parts of the firmware that have a version.
#define TT_SHM_FIRMWARE_PARTS 6

// Why a value is not known, in `absences`, where 0 says that it is known: there is no such attribute. The driver or the
// firmware does not publish it, or not yet.
#define TT_SHM_ABSENT_MISSING 1

// The device is being reset.
#define TT_SHM_ABSENT_RESETTING 2

// The device was detached.
#define TT_SHM_ABSENT_GONE 3

// The aggregator's user may not read it.
#define TT_SHM_ABSENT_DENIED 4

// The kernel says that it does not know.
#define TT_SHM_ABSENT_UNKNOWN 5

// The board does not have the part, such as a fan.
#define TT_SHM_ABSENT_NOT_FITTED 6

// The text was not understood.
#define TT_SHM_ABSENT_MALFORMED 7

// The read failed in another way.
#define TT_SHM_ABSENT_FAILED 8

// Bits of `tt_shm_driver_stats.flags`: the heartbeat was seen to move.
#define TT_SHM_DRIVER_HEARTBEAT_MOVES (1 << 0)

// The heartbeat stands still. With neither bit it is not known.
#define TT_SHM_DRIVER_HEARTBEAT_STANDS (1 << 1)

// The board is known by its name: `nominal_` figures are set, but for cores that depend on the firmware.
#define TT_SHM_DRIVER_NOMINAL (1 << 2)

// The number of Tensix cores is known, too.
#define TT_SHM_DRIVER_NOMINAL_CORES (1 << 3)

// It is known who holds the device.
#define TT_SHM_DRIVER_HOLDERS (1 << 4)

// Neither chip nor address tell which device of the processes it is: they are joined by their number.
#define TT_SHM_DRIVER_JOINED_BY_LOGICAL_ID (1 << 5)

// Bits of `tt_shm_failure_record.flags`: all holders are listed, and their bytes are exact.
#define TT_SHM_FAILURE_HOLDERS_EXACT (1 << 0)

// The events are the last before the failure, of all processes that were followed.
#define TT_SHM_FAILURE_EVENTS_COMPLETE (1 << 1)

// Free bytes and the largest free block are those of one bank, not of all.
#define TT_SHM_FAILURE_PER_BANK (1 << 2)

// Events that are kept with a failure.
#define TT_SHM_FAILURE_EVENTS 16

// Resolutions: the last minute or, of telemetry, the last eight minutes.
#define TT_SHM_HISTORY_MINUTE 0

// The last hour.
#define TT_SHM_HISTORY_HOUR 1

// The last day.
#define TT_SHM_HISTORY_DAY 2

// The most buckets of a resolution.
#define TT_SHM_HISTORY_BUCKETS 240

// Bits of `tt_shm_bucket.flags`: something was not followed in a part of this time, so figures need not be exact.
#define TT_SHM_BUCKET_INEXACT (1 << 0)

// Places of `tt_shm_telemetry.trends`, in the units of `TT_SHM_TOLD_...`: temperature.
#define TT_SHM_TREND_TEMPERATURE 0

// Power.
#define TT_SHM_TREND_POWER 1

// Current.
#define TT_SHM_TREND_CURRENT 2

// Voltage.
#define TT_SHM_TREND_VOLTAGE 3

// Clock of the Tensix cores.
#define TT_SHM_TREND_AICLK 4

// Fan.
#define TT_SHM_TREND_FAN 5

// Quantities that are kept over time.
#define TT_SHM_TRENDS 6

// Kinds of notices: it no longer holds, as a file that was refused is read now.
#define TT_SHM_NOTICE_WITHDRAWN 0

// A file was refused; `text` says why.
#define TT_SHM_NOTICE_REFUSED 1

// A process ended and what it held was reclaimed; `bytes` and `counts` say what.
#define TT_SHM_NOTICE_RECLAIMED 2

// A process's events are impossible; `text` says why.
#define TT_SHM_NOTICE_BROKEN 3

// A process is alive, or may be, and cannot be read any more; `text` says why.
#define TT_SHM_NOTICE_UNSEEN 4

// A clock stepped; `text` says in which direction, and what is not known as a result.
#define TT_SHM_NOTICE_CLOCK 5

// A user has usages for which there is no room.
#define TT_SHM_NOTICE_UNCOUNTED 6

// Values of `tt_shm_region_stats.kind`: a region, with the totals that it has.
#define TT_SHM_REGION 1

// A process in a region.
#define TT_SHM_REGION_PROCESS 2

// A region that could not be read; `note` says why.
#define TT_SHM_REGION_UNREAD 3

// Values of `tt_shm_region_stats.state`: the process is alive.
#define TT_SHM_REGION_ALIVE 1

// It has ended, and its bytes stayed behind.
#define TT_SHM_REGION_GHOST 2

// It is not certain whether it is alive; `note` says why.
#define TT_SHM_REGION_UNCERTAIN 3

// Bits of `tt_shm_region_stats.flags`: the process reports by itself, so that what the region says of it is not used.
#define TT_SHM_REGION_REPORTS (1 << 0)

// Another slot has the same pid.
#define TT_SHM_REGION_DUPLICATE (1 << 1)

// The region was written whenever it was read: its figures need not belong together.
#define TT_SHM_REGION_UNSTEADY (1 << 2)

// Bits of `tt_shm_device_stats.flags`: buffers occupy more than there is.
#define TT_SHM_DEVICE_OVER_CAPACITY (1 << 0)

// Processes disagree about the device.
#define TT_SHM_DEVICE_CONFLICT (1 << 1)

// A process that could not be read may hold memory on it: figures are lower bounds.
#define TT_SHM_DEVICE_INCOMPLETE (1 << 2)

// What `tt_shm_snapshot_composition` says of the DRAM peak is all of it.
#define TT_SHM_DEVICE_DRAM_COMPOSITION_EXACT (1 << 3)

// What it says of the L1 peak is all of it.
#define TT_SHM_DEVICE_L1_COMPOSITION_EXACT (1 << 4)

// Fabric and dispatch kernels are lower bounds.
#define TT_SHM_DEVICE_SYSTEM_KERNELS_UNSEEN (1 << 5)

// A process that does not report holds it: figures are lower bounds.
#define TT_SHM_DEVICE_UNREPORTED_HOLDER (1 << 6)

// Values of `tt_shm_process_stats.state`: the process is alive.
#define TT_SHM_STATE_ALIVE 1

// The process ended; its row stays for a while.
#define TT_SHM_STATE_ENDED 2

// Bits of `tt_shm_process_stats.flags`: totals are exact, lists are incomplete.
#define TT_SHM_STATS_DEGRADED (1 << 0)

// Its events are impossible: it is part of no total.
#define TT_SHM_STATS_BROKEN (1 << 1)

// Its file was unlinked while it is alive.
#define TT_SHM_STATS_UNLINKED (1 << 2)

// It closed its segment.
#define TT_SHM_STATS_CLOSED (1 << 3)

// It is alive, or may be, and cannot be read any more.
#define TT_SHM_STATS_UNSEEN (1 << 4)

// It holds memory that it cannot report.
#define TT_SHM_STATS_PARTIAL (1 << 5)

// Kinds of writers: the process that uses the device.
#define TT_SHM_SOURCE_RING 1

// A library in that process that listens to its allocator.
#define TT_SHM_SOURCE_TAP 2

// Another process, on behalf of that process.
#define TT_SHM_SOURCE_BRIDGE 3

// Bits of `tt_shm_process.flags`: the process closed its segment.
#define TT_SHM_PROCESS_CLOSED (1 << 0)

// It had no room for all rows or names: totals are exact, lists incomplete.
#define TT_SHM_PROCESS_DEGRADED (1 << 1)

// It holds memory that it cannot report.
#define TT_SHM_PROCESS_PARTIAL (1 << 2)

// The segment can no longer be read.
#define TT_SHM_PROCESS_LOST (1 << 3)

// Its ticks can be converted to times here.
#define TT_SHM_PROCESS_TIME_KNOWN (1 << 4)

// Its CLOCK_MONOTONIC is that of this process: it is not in another time namespace.
#define TT_SHM_PROCESS_SHARES_CLOCK (1 << 5)

// Bits of `tt_shm_span_report.flags`: the process says of itself that its figures cannot be relied on, so that no peak has an
// upper bound.
#define TT_SHM_SPAN_DOUBTED (1 << 0)

// The process was too fast for its last state to be read, so that no peak has an upper bound.
#define TT_SHM_SPAN_BEHIND (1 << 1)

// The segment can no longer be believed: there are no devices. `tt_shm_span_report.broken` says why.
#define TT_SHM_SPAN_BROKEN (1 << 2)

// A number that is not known.
#define TT_SHM_UNKNOWN UINT64_MAX

// `device` of an event that concerns no single device.
#define TT_SHM_NO_DEVICE UINT8_MAX

// A buffer in DRAM. Buffer types have tt-metal's numbers.
#define TT_SHM_BUFFER_DRAM 0

// A buffer in the L1 of Tensix cores.
#define TT_SHM_BUFFER_L1 1

// A buffer in host memory.
#define TT_SHM_BUFFER_SYSTEM_MEMORY 2

// A buffer in the small-buffer region of L1.
#define TT_SHM_BUFFER_L1_SMALL 3

// A trace buffer, in DRAM.
#define TT_SHM_BUFFER_TRACE 4

// Memory classes, as in counters, events and rows: buffers in DRAM.
#define TT_SHM_CLASS_DRAM 0

// Trace buffers, in DRAM.
#define TT_SHM_CLASS_TRACE 1

// Buffers in L1.
#define TT_SHM_CLASS_L1 2

// Buffers in the small-buffer region of L1.
#define TT_SHM_CLASS_L1_SMALL 3

// Program-local L1: circular buffers and the like.
#define TT_SHM_CLASS_CB 4

// Binaries of application kernels.
#define TT_SHM_CLASS_KERNEL_APPLICATION 5

// Binaries of fabric kernels.
#define TT_SHM_CLASS_KERNEL_FABRIC 6

// Binaries of dispatch kernels.
#define TT_SHM_CLASS_KERNEL_DISPATCH 7

// Host memory.
#define TT_SHM_CLASS_SYSTEM_MEMORY 8

// Room for classes in a struct; unused ones are zero.
#define TT_SHM_CLASSES 16

// Lanes of a device: its sub-devices, each of which runs a program of its own.
#define TT_SHM_LANES 8

// A kernel of a user's program. Kernel types have the numbers of the proof of concept.
#define TT_SHM_KERNEL_APPLICATION 0

// A kernel that routes traffic between devices.
#define TT_SHM_KERNEL_FABRIC 1

// A kernel that serves a command queue.
#define TT_SHM_KERNEL_DISPATCH 2

// Compute cores.
#define TT_SHM_CORES_TENSIX 0

// Ethernet cores.
#define TT_SHM_CORES_ETHERNET 1

// A program's binary is not on the device: launching sends it. The numbers are tt-metal's.
#define TT_SHM_BINARY_NOT_SENT 0

// A program's binary is on its way.
#define TT_SHM_BINARY_IN_FLIGHT 1

// A program's binary is on the device.
#define TT_SHM_BINARY_COMMITTED 2

// A step begins.
#define TT_SHM_MARKER_BEGIN 0

// A step ends.
#define TT_SHM_MARKER_END 1

// A single moment.
#define TT_SHM_MARKER_INSTANT 2

// What has a name: a buffer.
#define TT_SHM_KIND_BUFFER 0

// What has a name: a circular buffer of a program.
#define TT_SHM_KIND_CB 1

// What has a name: a kernel.
#define TT_SHM_KIND_KERNEL 2

// Architectures: Grayskull.
#define TT_SHM_ARCH_GRAYSKULL 1

// Wormhole B0.
#define TT_SHM_ARCH_WORMHOLE 2

// Blackhole.
#define TT_SHM_ARCH_BLACKHOLE 3

// Quasar.
#define TT_SHM_ARCH_QUASAR 4

// Bits of `tt_shm_device_info.known`: `dram_bytes`.
#define TT_SHM_KNOWN_DRAM (1 << 0)

// `dram_channels`.
#define TT_SHM_KNOWN_DRAM_CHANNELS (1 << 1)

// `tensix_cores` and `l1_per_core`.
#define TT_SHM_KNOWN_L1 (1 << 2)

// `eth_cores` and `eth_l1_per_core`.
#define TT_SHM_KNOWN_ETH (1 << 3)

// `pci`.
#define TT_SHM_KNOWN_PCI (1 << 4)

// `logical_id`.
#define TT_SHM_KNOWN_LOGICAL (1 << 5)

// `board`.
#define TT_SHM_KNOWN_BOARD (1 << 6)

// `arch`.
#define TT_SHM_KNOWN_ARCH (1 << 7)

// `sub_device`.
#define TT_SHM_KNOWN_SUB_DEVICE (1 << 8)

// `hybrid`.
#define TT_SHM_KNOWN_HYBRID (1 << 9)

// `pools[TT_SHM_POOL_DRAM]`.
#define TT_SHM_KNOWN_POOL_DRAM (1 << 12)

// `pools[TT_SHM_POOL_TRACE]`.
#define TT_SHM_KNOWN_POOL_TRACE (1 << 13)

// `pools[TT_SHM_POOL_L1]`.
#define TT_SHM_KNOWN_POOL_L1 (1 << 14)

// `pools[TT_SHM_POOL_L1_SMALL]`.
#define TT_SHM_KNOWN_POOL_L1_SMALL (1 << 15)

// `l1_base`.
#define TT_SHM_KNOWN_L1_BASE (1 << 16)

// `grid_columns` and `grid_rows`.
#define TT_SHM_KNOWN_GRID (1 << 17)

// Pools of an allocator: DRAM buffers.
#define TT_SHM_POOL_DRAM 0

// Trace buffers.
#define TT_SHM_POOL_TRACE 1

// L1 buffers.
#define TT_SHM_POOL_L1 2

// Small L1 buffers.
#define TT_SHM_POOL_L1_SMALL 3

// Bits of `tt_shm_buffer.known` and others: `address`.
#define TT_SHM_HAS_ADDRESS (1 << 0)

// `bytes_per_bank`.
#define TT_SHM_HAS_BYTES_PER_BANK (1 << 1)

// `occupied_bytes`.
#define TT_SHM_HAS_OCCUPIED (1 << 2)

// `program` of a kernel: otherwise its program has the kernel's id.
#define TT_SHM_HAS_PROGRAM (1 << 3)

// `free_bytes` and `largest_free_bytes`.
#define TT_SHM_HAS_FREE (1 << 4)

// `needed_per_bank_bytes` and `banks`.
#define TT_SHM_HAS_NEEDED (1 << 5)

// Bits of `tt_shm_options.flags`: tracking is on, whatever the environment says.
#define TT_SHM_OPEN_ENABLED (1 << 0)

// Tracking is off, whatever the environment says.
#define TT_SHM_OPEN_DISABLED (1 << 1)

// Allocations without a call site get the backtrace of the caller. Slow.
#define TT_SHM_OPEN_BACKTRACE (1 << 2)

// What this tracker reports is no memory of tt-metal's allocators: a tap in this process goes on reporting those.
// Without this bit it stands back, so that nothing counts twice.
#define TT_SHM_OPEN_BESIDE_TAP (1 << 3)

// The tracker belongs to the thread that opens it, and its calls take no lock: calls of other threads are refused. See
// `tt_shm_tracker_release`.
#define TT_SHM_OPEN_EXCLUSIVE (1 << 4)

// Kinds of events: a buffer was allocated.
#define TT_SHM_EVENT_ALLOC 1

// A buffer was freed.
#define TT_SHM_EVENT_FREE 2

// A circular buffer was allocated.
#define TT_SHM_EVENT_CB_ALLOC 8

// A circular buffer was freed.
#define TT_SHM_EVENT_CB_FREE 9

// A kernel was loaded.
#define TT_SHM_EVENT_KERNEL_LOAD 10

// A kernel was unloaded.
#define TT_SHM_EVENT_KERNEL_UNLOAD 11

// A program was dispatched.
#define TT_SHM_EVENT_KERNEL_DISPATCH 16

// An allocation failed.
#define TT_SHM_EVENT_ALLOC_FAILED 17

// A marker.
#define TT_SHM_EVENT_MARKER 18

// Peaks were reset.
#define TT_SHM_EVENT_PEAK_RESET 19

// The device was opened.
#define TT_SHM_EVENT_DEVICE_OPEN 20

// The device was closed.
#define TT_SHM_EVENT_DEVICE_CLOSE 21

// How full the kernel ring buffer is.
#define TT_SHM_EVENT_GAUGE 22

// Nothing of a program is left.
#define TT_SHM_EVENT_PROGRAM_END 23

// Something live got a name.
#define TT_SHM_EVENT_NAME 24

// Flags of events: on ethernet cores.
#define TT_SHM_FLAG_ETHERNET (1 << 0)

// Resident.
#define TT_SHM_FLAG_RESIDENT (1 << 1)

// A dispatch that found the binary cached.
#define TT_SHM_FLAG_CACHED (1 << 2)

// Tracking began after the real load.
#define TT_SHM_FLAG_LATE (1 << 3)

// A circular buffer inside an L1 buffer, with no bytes of its own.
#define TT_SHM_FLAG_GLOBAL (1 << 4)

// Of a failure: free bytes are those of one bank.
#define TT_SHM_FLAG_PER_BANK (1 << 5)

// The occupied size is not known: `bytes` is the requested size.
#define TT_SHM_FLAG_REQUESTED (1 << 6)

// Freed because its device was closed.
#define TT_SHM_FLAG_DROPPED (1 << 7)

// The version of this interface: the major number in the high 16 bits, which changes when a caller would have to be
// compiled again, and the minor in the low ones, which grows when something is added.
#define TT_SHM_ABI_VERSION (1 << 16)

// A process's segment.
typedef struct tt_shm_segment tt_shm_segment;

// A copy of all rows of a table.
typedef struct tt_shm_snapshot tt_shm_snapshot;

// Figures of all processes, from a table or by an aggregation in this process.
typedef struct tt_shm_source tt_shm_source;

// A span of time in a process.
typedef struct tt_shm_span tt_shm_span;

// An aggregator's table.
typedef struct tt_shm_table tt_shm_table;

// A tracker.
typedef struct tt_shm_tracker tt_shm_tracker;

// A peak. It is exact if `low` = `high`, otherwise it lies between them.
typedef struct tt_shm_peak {
  // The largest value that is certain.
  uint64_t low;
  // The largest value that is possible; `TT_SHM_UNKNOWN` if it has no bound.
  uint64_t high;
  // When `low` was first reached, CLOCK_MONOTONIC; 0 if not known.
  uint64_t time_ns;
  // Number of buffers at that time.
  uint64_t count;
} tt_shm_peak;

// A process's share of a peak.
typedef struct tt_shm_holder {
  // Identity of its segment; 0 in an unused entry.
  uint64_t identity;
  // Its pid, as it sees it.
  uint64_t pid;
  // Bytes that it held.
  uint64_t bytes;
} tt_shm_holder;

// What a peak was made of.
typedef struct tt_shm_composition {
  // `sizeof(tt_shm_composition)`.
  uint32_t size;
  // 1 if this is all of it. If not, `peak.low` is made of this, as far as it is known.
  uint32_t exact;
  // The peak.
  struct tt_shm_peak peak;
  // Bytes by `TT_SHM_CLASS_...`; circular buffers as resident, kernels 0.
  uint64_t classes[TT_SHM_CLASSES];
  // The largest holders, largest first.
  struct tt_shm_holder holders[TT_SHM_HOLDERS];
  // Bytes of all other holders.
  uint64_t others;
} tt_shm_composition;

// A device as the driver describes it, which is read without opening it.
typedef struct tt_shm_driver_stats {
  // `sizeof(tt_shm_driver_stats)`.
  uint32_t size;
  // Its row, for telemetry and `tt_shm_snapshot_driver_info`.
  uint32_t row;
  // `TT_SHM_DRIVER_...` bits.
  uint64_t flags;
  // N of `/dev/tenstorrent/N`.
  uint64_t number;
  // Row of its device; `TT_SHM_UNKNOWN` if there was no room for one.
  uint64_t device;
  // When it was read, CLOCK_MONOTONIC.
  uint64_t time_ns;
  // The id that the chip goes by as long as no process names it; `TT_SHM_UNKNOWN` if there is none.
  uint64_t chip_id;
  // Id of the chip.
  uint64_t asic_id;
  // Serial number of the board.
  uint64_t serial;
  // Another id by which processes may name the chip; 0 if there is none.
  uint64_t serial_chip_id;
  // Processes that hold the device.
  uint64_t holders;
  // Those of them that report to nobody: what they use is unknown.
  uint64_t unreported_holders;
  // Open descriptors of processes that have no pid where the aggregator runs.
  uint64_t invisible_holders;
  // DRAM by the name of the board.
  uint64_t nominal_dram_bytes;
  // Tensix cores by the name of the board.
  uint64_t nominal_tensix_cores;
  // L1 of each Tensix core by the name of the board.
  uint64_t nominal_l1_per_core;
  // Ethernet cores by the name of the board.
  uint64_t nominal_eth_cores;
  // L1 of each ethernet core by the name of the board.
  uint64_t nominal_eth_l1_per_core;
  // Chips of the board.
  uint64_t nominal_chips;
  // By `TT_SHM_TOLD_...`. A number whose entry in `absences` is not 0 means nothing.
  int64_t numbers[TT_SHM_TOLD];
  // By `TT_SHM_TOLD_...`: why the value is not known, `TT_SHM_ABSENT_...`, or 0 if it is known.
  uint8_t absences[TT_SHM_TOLD];
  // Version of the driver; empty if not known. Texts here are not trusted.
  char driver_version[40];
  // Versions of the firmware, from `TT_SHM_TOLD_BUNDLE` on.
  char firmware[TT_SHM_FIRMWARE_PARTS][40];
  // The first text that was not understood, or the first read that failed.
  char note[288];
} tt_shm_driver_stats;

// A pool of an allocator: every buffer in it occupies its bytes per bank in each of its banks.
typedef struct tt_shm_pool {
  // Number of banks.
  uint64_t banks;
  // Bytes of each bank that can be allocated.
  uint64_t bank_bytes;
  // Alignment of allocations; 0 if unknown.
  uint64_t alignment;
} tt_shm_pool;

// A device, that is, one allocator on one chip: what a host knows of it, and what a segment says.
typedef struct tt_shm_device_info {
  // `sizeof(tt_shm_device_info)`.
  uint32_t size;
  // Architecture, `TT_SHM_ARCH_...`.
  uint32_t arch;
  // `TT_SHM_KNOWN_...` bits of the fields that are known. A field whose bit is not set is ignored.
  uint64_t known;
  // Stable id of the chip, the same in every process. Always known.
  uint64_t chip_id;
  // Distinguishes several allocators on one chip; 0 for the only one. Always known.
  uint64_t allocator;
  // The host's own number for it.
  uint64_t logical_id;
  // Sub-device that the allocator belongs to.
  uint64_t sub_device;
  // 1 if the allocator works in hybrid mode, in which not every buffer occupies every bank.
  uint64_t hybrid;
  // DRAM of the chip in bytes.
  uint64_t dram_bytes;
  // DRAM channels.
  uint64_t dram_channels;
  // Tensix cores.
  uint64_t tensix_cores;
  // L1 bytes of each Tensix core.
  uint64_t l1_per_core;
  // Ethernet cores.
  uint64_t eth_cores;
  // L1 bytes of each ethernet core.
  uint64_t eth_l1_per_core;
  // Lowest address in the L1 of a core that the L1 pool provides.
  uint64_t l1_base;
  // Columns of the grid of cores.
  uint64_t grid_columns;
  // Rows of that grid.
  uint64_t grid_rows;
  // PCI address: domain << 16 | bus << 8 | device << 3 | function.
  uint64_t pci;
  // Pools of the allocator, by `TT_SHM_POOL_...`.
  struct tt_shm_pool pools[4];
  // Board name such as `n300`, at most 32 bytes, with a zero after it.
  char board[40];
} tt_shm_device_info;

// A process's bytes on the device when an allocation failed.
typedef struct tt_shm_failure_holder {
  // Identity of its segment; 0 in an unused entry.
  uint64_t identity;
  // Its pid, as it sees it.
  uint64_t pid;
  // Inode of its PID namespace; 0 if unknown.
  uint64_t pid_namespace;
  // Bytes by `TT_SHM_CLASS_...`; circular buffers as resident, kernels 0.
  uint64_t classes[TT_SHM_CLASSES];
  // Its name. Not trusted.
  char name[72];
} tt_shm_failure_holder;

// An event before a failure, on the same device.
typedef struct tt_shm_past_event {
  // When, CLOCK_MONOTONIC.
  uint64_t time_ns;
  // Identity of the segment.
  uint64_t identity;
  // Pid of the process, as it sees it.
  uint64_t pid;
  // `TT_SHM_EVENT_...`.
  uint32_t kind;
  // `TT_SHM_CLASS_...`.
  uint32_t class_;
  // Buffer, circular buffer, kernel or program id.
  uint64_t id;
  // Bytes.
  uint64_t bytes;
} tt_shm_past_event;

// An allocation that failed.
typedef struct tt_shm_failure_record {
  // `sizeof(tt_shm_failure_record)`.
  uint32_t size;
  // `TT_SHM_CLASS_...`.
  uint32_t class_;
  // `TT_SHM_FAILURE_...` bits.
  uint64_t flags;
  // When, CLOCK_MONOTONIC.
  uint64_t time_ns;
  // The chip.
  uint64_t chip_id;
  // Identity of the segment of the process that made the request.
  uint64_t identity;
  // Position of the event in its ring.
  uint64_t position;
  // Pid of the process, as it sees it.
  uint64_t pid;
  // Inode of its PID namespace; 0 if unknown.
  uint64_t pid_namespace;
  // Its owner.
  uint64_t uid;
  // Bytes requested.
  uint64_t request_bytes;
  // Bytes free then; `TT_SHM_UNKNOWN` if the process did not know.
  uint64_t free_bytes;
  // Largest free block then; `TT_SHM_UNKNOWN` if the process did not know.
  uint64_t largest_free_bytes;
  // Bytes needed in each bank; `TT_SHM_UNKNOWN` if the process did not know.
  uint64_t needed_per_bank_bytes;
  // Banks; 0 if the process did not know.
  uint64_t banks;
  // Bytes on the device then by `TT_SHM_CLASS_...`, all holders together.
  uint64_t classes[TT_SHM_CLASSES];
  // Bytes of the holders that are not listed.
  uint64_t others[TT_SHM_CLASSES];
  // Processes that held memory on the device.
  uint64_t holder_count;
  // Elements of `events` in use.
  uint64_t event_count;
  // Name of the process. Not trusted.
  char name[72];
  // The largest holders, by what they held of the requested memory.
  struct tt_shm_failure_holder holders[TT_SHM_HOLDERS];
  // The events before it on the device, of all processes, oldest first.
  struct tt_shm_past_event events[TT_SHM_FAILURE_EVENTS];
} tt_shm_failure_record;

// What was used of a device in a short time. A bucket that is missing between others is a time that no aggregator saw.
typedef struct tt_shm_bucket {
  // `sizeof(tt_shm_bucket)`.
  uint32_t size;
  // `TT_SHM_BUCKET_...` bits.
  uint32_t flags;
  // Its beginning, CLOCK_MONOTONIC.
  uint64_t start_ns;
  // Its length.
  uint64_t length_ns;
  // Smallest DRAM used.
  uint64_t dram_min_bytes;
  // Largest DRAM used.
  uint64_t dram_max_bytes;
  // Last DRAM used.
  uint64_t dram_last_bytes;
  // Smallest L1 used.
  uint64_t l1_min_bytes;
  // Largest L1 used.
  uint64_t l1_max_bytes;
  // Last L1 used.
  uint64_t l1_last_bytes;
  // Last trace buffers: a part of `dram_last_bytes`, the rest of which are DRAM buffers.
  uint64_t trace_last_bytes;
  // Last buffers in the small-buffer region: a part of `l1_last_bytes`.
  uint64_t l1_small_last_bytes;
  // Last resident circular buffers: a part of `l1_last_bytes`, the rest of which are L1 buffers.
  uint64_t cb_last_bytes;
  // Steps that processes on the device ended.
  uint64_t steps;
} tt_shm_bucket;

// A quantity in a bucket.
typedef struct tt_shm_trend {
  // The least.
  int64_t min;
  // The most.
  int64_t max;
  // The last.
  int64_t last;
} tt_shm_trend;

// What the driver measured in a short time. A bucket that is missing is a time in which nothing was read.
typedef struct tt_shm_telemetry {
  // `sizeof(tt_shm_telemetry)`.
  uint32_t size;
  // Bit n: `trends[n]` is known.
  uint32_t known;
  // Its beginning, CLOCK_MONOTONIC.
  uint64_t start_ns;
  // Its length.
  uint64_t length_ns;
  // By `TT_SHM_TREND_...`.
  struct tt_shm_trend trends[TT_SHM_TRENDS];
} tt_shm_telemetry;

// A notice.
typedef struct tt_shm_notice {
  // `sizeof(tt_shm_notice)`.
  uint32_t size;
  // `TT_SHM_NOTICE_...`.
  uint32_t kind;
  // When it was noticed, CLOCK_MONOTONIC.
  uint64_t time_ns;
  // The process; 0 if unknown.
  uint64_t pid;
  // Owner of the file.
  uint64_t uid;
  // Bytes that were reclaimed by `TT_SHM_CLASS_...`, all devices together.
  uint64_t bytes[TT_SHM_CLASSES];
  // Allocations by `TT_SHM_CLASS_...`.
  uint64_t counts[TT_SHM_CLASSES];
  // Name of the file. Not trusted.
  char file[104];
  // The reason. Not trusted.
  char text[168];
} tt_shm_notice;

// A region of tt-metal, or a process in it. Bytes are those that were requested, and never exact.
typedef struct tt_shm_region_stats {
  // `sizeof(tt_shm_region_stats)`.
  uint32_t size;
  // Its row.
  uint32_t row;
  // `TT_SHM_REGION...`.
  uint32_t kind;
  // Of a process, `TT_SHM_REGION_ALIVE` and so on.
  uint32_t state;
  // Bits of `TT_SHM_REGION_REPORTS` and so on.
  uint64_t flags;
  // Row of the device; `TT_SHM_UNKNOWN` if there is none.
  uint64_t device;
  // The chip.
  uint64_t chip_id;
  // Version of the region's layout.
  uint64_t version;
  // Place of the process in the region.
  uint64_t slot;
  // Pid of the process, as it sees it.
  uint64_t pid;
  // Its pid as the aggregator sees it; 0 if unknown.
  uint64_t pid_here;
  // Owner of the file.
  uint64_t uid;
  // When it was written last, CLOCK_REALTIME.
  uint64_t updated_realtime_ns;
  // DRAM.
  uint64_t dram_bytes;
  // L1.
  uint64_t l1_bytes;
  // L1_SMALL.
  uint64_t l1_small_bytes;
  // Trace.
  uint64_t trace_bytes;
  // Circular buffers.
  uint64_t cb_bytes;
  // Name of the process. Not trusted.
  char name[72];
  // What is wrong with it. Not trusted.
  char note[192];
} tt_shm_region_stats;

// One class on a device, all processes together.
typedef struct tt_shm_class_stats {
  // Bytes occupied now.
  uint64_t live_bytes;
  // Allocations live now.
  uint64_t live_count;
  // Bytes ever allocated by the processes alive now.
  uint64_t alloc_bytes;
  // Allocations ever made by the processes alive now.
  uint64_t alloc_count;
  // Largest `live_bytes`.
  struct tt_shm_peak peak;
  // Bytes requested for what is live now.
  uint64_t requested_bytes;
  // The part of `live_bytes` for which only the requested size is known.
  uint64_t requested_basis_bytes;
} tt_shm_class_stats;

// The last allocation that failed on a device. All zero if there was none. `tt_shm_snapshot_failures` has more.
typedef struct tt_shm_last_failure {
  // When, CLOCK_MONOTONIC.
  uint64_t time_ns;
  // Pid of the process, as it sees it.
  uint64_t pid;
  // `TT_SHM_CLASS_...`.
  uint64_t class_;
  // Bytes requested.
  uint64_t request_bytes;
  // Bytes free then; `TT_SHM_UNKNOWN` if the process did not know.
  uint64_t free_bytes;
  // Largest free block then; `TT_SHM_UNKNOWN` if the process did not know.
  uint64_t largest_free_bytes;
  // Bytes needed in each bank; `TT_SHM_UNKNOWN` if the process did not know.
  uint64_t needed_per_bank_bytes;
  // Banks; 0 if the process did not know.
  uint64_t banks;
  // 1 if free bytes and the largest free block are those of one bank, 0 if of all.
  uint64_t per_bank;
} tt_shm_last_failure;

// A device, all processes together.
typedef struct tt_shm_device_stats {
  // `sizeof(tt_shm_device_stats)`.
  uint32_t size;
  // Its row, which usages name.
  uint32_t row;
  // `TT_SHM_DEVICE_...` bits.
  uint64_t flags;
  // Stable id of the chip. `tt_shm_snapshot_device_info` has more.
  uint64_t chip_id;
  // Processes that use it.
  uint64_t processes;
  // DRAM that the allocators can provide; `TT_SHM_UNKNOWN` if not known.
  uint64_t dram_total_bytes;
  // DRAM used.
  uint64_t dram_used_bytes;
  // L1 that the allocators can provide; `TT_SHM_UNKNOWN` if not known.
  uint64_t l1_total_bytes;
  // L1 of Tensix cores used.
  uint64_t l1_used_bytes;
  // L1 of ethernet cores used.
  uint64_t eth_used_bytes;
  // Circular buffer bytes of resident programs.
  uint64_t cb_resident_bytes;
  // Application kernel bytes of resident programs on Tensix cores.
  uint64_t kernel_resident_bytes;
  // Application kernel bytes of resident programs on ethernet cores.
  uint64_t kernel_resident_eth_bytes;
  // Fabric and dispatch kernels on Tensix cores.
  uint64_t system_kernel_bytes;
  // Fabric and dispatch kernels on ethernet cores.
  uint64_t system_kernel_eth_bytes;
  // Dispatches of the processes alive now.
  uint64_t dispatches;
  // Of those, the ones that found the binary cached.
  uint64_t cached_dispatches;
  // Allocations that failed, of the processes alive now.
  uint64_t failed_allocs;
  // Kernel ring buffer: size, 0 if never reported.
  uint64_t kernel_ring_total_bytes;
  // Kernel ring buffer: bytes used.
  uint64_t kernel_ring_used_bytes;
  // Kernel ring buffer: programs in it.
  uint64_t kernel_ring_programs;
  // Largest DRAM used.
  struct tt_shm_peak dram_peak;
  // Largest L1 used.
  struct tt_shm_peak l1_peak;
  // Largest ethernet L1 used.
  struct tt_shm_peak eth_peak;
  // Largest `cb_resident_bytes`; has no count.
  struct tt_shm_peak cb_resident_peak;
  // Largest sum of resident and system kernels on Tensix cores; has no count.
  struct tt_shm_peak kernel_resident_peak;
  // By `TT_SHM_CLASS_...`.
  struct tt_shm_class_stats classes[TT_SHM_CLASSES];
  // The last failure.
  struct tt_shm_last_failure last_failure;
  // Events folded since the aggregator attached.
  uint64_t events;
  // Events of the last second, in thousandths per second.
  uint64_t events_per_1000s;
  // Dispatches of the last second, in thousandths per second.
  uint64_t dispatches_per_1000s;
} tt_shm_device_stats;

// A process, as the aggregator sees it. Times are CLOCK_MONOTONIC.
typedef struct tt_shm_process_stats {
  // `sizeof(tt_shm_process_stats)`.
  uint32_t size;
  // Its row, which usages name.
  uint32_t row;
  // `TT_SHM_STATE_...`.
  uint32_t state;
  // `TT_SHM_SOURCE_...`.
  uint32_t source;
  // `TT_SHM_STATS_...` bits.
  uint64_t flags;
  // Identity of its segment.
  uint64_t identity;
  // Process id as the process sees it.
  uint64_t pid;
  // Owner of the segment.
  uint64_t uid;
  // Pid of the process that it is written on behalf of; 0 if that is the writer.
  uint64_t on_behalf_of;
  // When the segment was created.
  uint64_t started_ns;
  // When its end was noticed; 0 while it is alive.
  uint64_t ended_ns;
  // Time of its last event, 0 if there was none.
  uint64_t last_event_ns;
  // Position of that event.
  uint64_t position;
  // Events missed because they were overwritten.
  uint64_t missed;
  // Live allocations without a row.
  uint64_t unlisted;
  // Number of devices that it registered.
  uint64_t devices;
  // Its name. Not trusted.
  char name[72];
  // Inode of its PID namespace; 0 if unknown.
  uint64_t pid_namespace;
  // When the process was started, in clock ticks since boot; 0 if unknown.
  uint64_t start_time;
  // Events that came too late to be merged by time.
  uint64_t late;
  // Events of the last second, in thousandths per second.
  uint64_t events_per_1000s;
  // How often it compared its sums with those of the device's allocator.
  uint64_t self_checks;
  // How often such a comparison found a difference.
  uint64_t self_checks_different;
  // Number of misuses, as in `tt_shm_process`.
  uint64_t anomalies[16];
} tt_shm_process_stats;

// The program dispatched last in a lane. All zero in a lane that has none.
typedef struct tt_shm_lane {
  // Its id.
  uint64_t program;
  // Bytes of its circular buffers.
  uint64_t cb_bytes;
  // Bytes of its kernels on Tensix cores.
  uint64_t kernel_bytes;
  // Bytes of its kernels on ethernet cores.
  uint64_t kernel_eth_bytes;
} tt_shm_lane;

// One class on one device.
typedef struct tt_shm_class_counters {
  // Bytes occupied now.
  uint64_t live_bytes;
  // Allocations live now.
  uint64_t live_count;
  // Bytes ever occupied.
  uint64_t alloc_bytes;
  // Allocations ever made.
  uint64_t alloc_count;
  // Largest `live_bytes` since the last reset.
  uint64_t peak_bytes;
  // When that was first reached, in ticks.
  uint64_t peak_time;
  // `live_count` at that time.
  uint64_t peak_count;
  // Bytes requested for what is live now.
  uint64_t requested_bytes;
  // The part of `live_bytes` for which only the requested size is known.
  uint64_t requested_basis_bytes;
} tt_shm_class_counters;

// All counters of one process on one device. Times are ticks of the segment's clock, in a snapshot of a table
// CLOCK_MONOTONIC nanoseconds.
typedef struct tt_shm_counters {
  // `sizeof(tt_shm_counters)`.
  uint32_t size;
  // 1 while the process reports the device as open.
  uint32_t open;
  // Position of the last event counted.
  uint64_t position;
  // Its time.
  uint64_t time;
  // DRAM used: DRAM and trace buffers.
  uint64_t dram_used_bytes;
  // L1 used: L1 and L1_SMALL buffers and resident circular buffers.
  uint64_t l1_used_bytes;
  // Ethernet L1 used.
  uint64_t eth_used_bytes;
  // Largest DRAM used since the last reset.
  uint64_t dram_peak_bytes;
  // When that was first reached.
  uint64_t dram_peak_time;
  // Largest L1 used since the last reset.
  uint64_t l1_peak_bytes;
  // When that was first reached.
  uint64_t l1_peak_time;
  // Largest ethernet L1 used since the last reset.
  uint64_t eth_peak_bytes;
  // When that was first reached.
  uint64_t eth_peak_time;
  // Time of the last reset of peaks, 0 if there was none.
  uint64_t peak_reset_time;
  // Dispatches.
  uint64_t dispatches;
  // Dispatches that found the binary cached.
  uint64_t cached_dispatches;
  // Time of the last dispatch, 0 if there was none.
  uint64_t last_dispatch_time;
  // Circular buffer bytes of resident programs.
  uint64_t cb_resident_bytes;
  // Kernel bytes of resident programs on Tensix cores.
  uint64_t kernel_resident_bytes;
  // Kernel bytes of resident programs on ethernet cores.
  uint64_t kernel_resident_eth_bytes;
  // Fabric and dispatch kernels on Tensix cores.
  uint64_t system_kernel_bytes;
  // Fabric and dispatch kernels on ethernet cores.
  uint64_t system_kernel_eth_bytes;
  // Bytes of all loaded kernels, of all types and on all cores.
  uint64_t kernel_loaded_bytes;
  // Allocations that failed.
  uint64_t failed_allocs;
  // Time of the last failure, 0 if there was none.
  uint64_t last_failed_time;
  // Kernel ring buffer: size, 0 if never reported.
  uint64_t kernel_ring_total_bytes;
  // Kernel ring buffer: bytes used.
  uint64_t kernel_ring_used_bytes;
  // Kernel ring buffer: programs in it.
  uint64_t kernel_ring_programs;
  // Bits of the lanes that have a resident program.
  uint64_t resident_lanes;
  // The resident program of each lane.
  struct tt_shm_lane lanes[TT_SHM_LANES];
  // By `TT_SHM_CLASS_...`.
  struct tt_shm_class_counters classes[TT_SHM_CLASSES];
} tt_shm_counters;

// One process's use of one device.
typedef struct tt_shm_usage {
  // `sizeof(tt_shm_usage)`.
  uint32_t size;
  // 1 if what the process claims about the device contradicts what is taken as true.
  uint32_t conflict;
  // Row of the process.
  uint64_t process;
  // Row of the device.
  uint64_t device;
  // The process's own number for the device; `TT_SHM_UNKNOWN` if it has none.
  uint64_t logical_id;
  // The allocator of the device that it uses.
  uint64_t allocator;
  // Its counters, with times in CLOCK_MONOTONIC nanoseconds.
  struct tt_shm_counters counters;
  // Its row, for `tt_shm_snapshot_usage_info`.
  uint64_t row;
} tt_shm_usage;

// A path, with a zero at its end.
typedef struct tt_shm_path {
  // The text.
  char text[256];
} tt_shm_path;

// A process, as its segment describes it.
typedef struct tt_shm_process {
  // `sizeof(tt_shm_process)`.
  uint32_t size;
  // `TT_SHM_SOURCE_...`.
  uint32_t source;
  // Identity of the segment, which no other one has.
  uint64_t identity;
  // Process id as the process sees it. For display: pids are reused.
  uint32_t pid;
  // Process id as seen from here, if it is alive and the system confirms it; otherwise 0.
  uint32_t pid_here;
  // Owner of the file.
  uint32_t uid;
  // `TT_SHM_PROCESS_...` bits.
  uint32_t flags;
  // Pid of the process that it is written on behalf of; 0 if that is the writer.
  uint64_t on_behalf_of;
  // When the process was started, in clock ticks since boot; 0 if unknown.
  uint64_t start_time;
  // When the segment was created, CLOCK_MONOTONIC of the process.
  uint64_t created_ns;
  // When it was closed, in ticks; 0 if it was not, or if that is not known.
  uint64_t closed_at;
  // Slots of its ring.
  uint64_t ring_slots;
  // Position of its last event.
  uint64_t head;
  // Number of its devices.
  uint64_t devices;
  // Live allocations that are not listed because there was no room.
  uint64_t unlisted;
  // How often it compared its sums with those of the device's allocator.
  uint64_t self_checks;
  // How often such a comparison found a difference.
  uint64_t self_checks_different;
  // Number of misuses: unmatched free, double alloc, size mismatch, unlisted, unknown device, device list full, names
  // full, size out of range, unknown program, device conflict, no room, lane out of range.
  uint64_t anomalies[16];
  // Its name. Not trusted: escape control characters before displaying it.
  char name[72];
  // The name of the file.
  char file_name[256];
  // Inode of its PID namespace; 0 if unknown.
  uint64_t pid_namespace;
} tt_shm_process;

// One event, as it is in shared memory. `docs/layout.md` says which kinds there are and what the fields mean for each.
typedef struct tt_shm_event {
  // Position of the event in its ring, from 1.
  uint64_t stamp;
  // Ticks of the segment's clock.
  uint64_t time;
  // `TT_SHM_EVENT_...`.
  uint8_t kind;
  // `TT_SHM_CLASS_...`; of a marker `TT_SHM_MARKER_...`.
  uint8_t class_;
  // `TT_SHM_FLAG_...` bits.
  uint8_t flags;
  // Index of the device, or `TT_SHM_NO_DEVICE`.
  uint8_t device;
  // Name, 0 for none.
  uint16_t name;
  // Call site, 0 for none.
  uint16_t site;
  // Buffer, circular buffer, kernel, program or step id.
  uint64_t id;
  // Bytes occupied on that device.
  uint64_t bytes;
  // Device address or `TT_SHM_UNKNOWN`; hash of a kernel's binary.
  uint64_t address;
  // Requested bytes of a buffer; program of a circular buffer or kernel.
  uint64_t aux;
  // Row of the live list that it writes or clears, or 2^32 - 1.
  uint32_t row;
  // Number of cores; 0 if unknown.
  uint16_t cores;
  // Name of the core ranges, 0 for none.
  uint16_t place;
} tt_shm_event;

// Something live in a process: the event by which it was allocated. `kind` is ALLOC, CB_ALLOC or KERNEL_LOAD.
typedef struct tt_shm_event tt_shm_allocation;

// How a list of live allocations was read.
typedef struct tt_shm_listing {
  // `sizeof(tt_shm_listing)`.
  uint32_t size;
  // 1 if the list is exactly that of `position`; 0 if the process was too fast to be read.
  uint32_t exact;
  // Position of the last event included.
  uint64_t position;
  // Events missed in the last attempt.
  uint64_t missed;
  // Live allocations that are not listed because the process had no room.
  uint64_t unlisted;
} tt_shm_listing;

// A program on one device.
typedef struct tt_shm_program {
  // `sizeof(tt_shm_program)`.
  uint32_t size;
  // Index of the device.
  uint32_t device;
  // The process's id for it.
  uint64_t program;
  // Kernels loaded.
  uint64_t kernel_count;
  // Their bytes.
  uint64_t kernel_bytes;
  // Circular buffers.
  uint64_t cb_count;
  // Their bytes.
  uint64_t cb_bytes;
  // Dispatches.
  uint64_t dispatches;
  // Dispatches that found the binary on the device.
  uint64_t cache_hits;
  // Dispatches that did not.
  uint64_t cache_misses;
  // Ticks of the last dispatch; 0 if there was none.
  uint64_t last_dispatch;
  // A bit `1 << TT_SHM_KERNEL_...` for each type of its kernels.
  uint32_t kernel_types;
  // 1 if tracking began after some of it was loaded.
  uint32_t late;
  // Its name, or that of one of its kernels; cut if it is longer. Not trusted.
  char name[128];
} tt_shm_program;

// Kernel bytes on a device by whether the binary is also loaded elsewhere. `loaded_bytes` is the sum of the others.
typedef struct tt_shm_kernel_sharing {
  // `sizeof(tt_shm_kernel_sharing)`.
  uint32_t size;
  // Index of the device.
  uint32_t device;
  // Bytes of all loaded kernels.
  uint64_t loaded_bytes;
  // Bytes if every binary were loaded once, on the most cores that one of its kernels has.
  uint64_t unique_bytes;
  // Bytes of further copies of those binaries.
  uint64_t shared_bytes;
  // Bytes of kernels without a hash: whether they are copies is not known.
  uint64_t unhashed_bytes;
} tt_shm_kernel_sharing;

// An interned name; 0 for none.
typedef uint16_t tt_shm_name;

// One moment, on three clocks.
typedef struct tt_shm_anchor {
  // The segment's clock.
  uint64_t ticks;
  // CLOCK_MONOTONIC, in nanoseconds.
  uint64_t monotonic_ns;
  // CLOCK_REALTIME, in nanoseconds.
  uint64_t realtime_ns;
  // How long the machine had been suspended by then.
  uint64_t suspended_ns;
} tt_shm_anchor;

// The conversion of a segment's ticks to times: the line through two moments.
typedef struct tt_shm_calibration {
  // `sizeof(tt_shm_calibration)`.
  uint32_t size;
  // The clock: 1 TSC, 2 virtual counter, 3 CLOCK_MONOTONIC.
  uint32_t clock;
  // When the segment was created.
  struct tt_shm_anchor first;
  // When the conversion was made.
  struct tt_shm_anchor second;
} tt_shm_calibration;

// Where a snapshot comes from.
typedef struct tt_shm_origin {
  // `sizeof(tt_shm_origin)`.
  uint32_t size;
  // 1 if this process has aggregated it, 0 if it is an aggregator's table.
  uint32_t embedded;
  // The process id of the aggregator, as it sees it; 0 if this process has aggregated it.
  uint64_t pid;
  // How old the figures are.
  uint64_t age_ns;
  // 1 if rates are known, which takes a second of aggregation.
  uint32_t rates_known;
  // 1 if every segment is read, as only root's aggregator may.
  uint32_t sees_all;
} tt_shm_origin;

// What happened in a span.
typedef struct tt_shm_span_report {
  // `sizeof(tt_shm_span_report)`.
  uint32_t size;
  // `TT_SHM_SPAN_...` bits.
  uint32_t flags;
  // When it began, CLOCK_MONOTONIC.
  uint64_t begin_ns;
  // When it ended.
  uint64_t end_ns;
  // The position that it began with: its first event is the one after that.
  uint64_t begin_position;
  // The position of its last event.
  uint64_t end_position;
  // Events that were taken in.
  uint64_t events;
  // Events that were not: they were overwritten, or passed when the state was read anew.
  uint64_t missed;
  // Devices.
  uint64_t devices;
  // `TT_SHM_ERR_...` of `TT_SHM_SPAN_BROKEN`; otherwise 0.
  uint64_t broken;
} tt_shm_span_report;

// What a span did to one memory of a device.
typedef struct tt_shm_span_memory {
  // Bytes used when it began.
  uint64_t begin_bytes;
  // Bytes used when it ended; `TT_SHM_UNKNOWN` if the process was too fast to be read then.
  uint64_t end_bytes;
  // The most that the process reported at one moment. Exact if it equals `peak_high`.
  uint64_t peak_low;
  // The most that is possible; `TT_SHM_UNKNOWN` if nothing bounds it.
  uint64_t peak_high;
  // When `peak_low` was reached, CLOCK_MONOTONIC; 0 if before the span, or if that is not known.
  uint64_t peak_time_ns;
  // Parts of the peak, for `tt_shm_span_parts`; `TT_SHM_UNKNOWN` if it is not known what it was made of.
  uint64_t parts;
} tt_shm_span_memory;

// What a span did to a device.
typedef struct tt_shm_span_device {
  // `sizeof(tt_shm_span_device)`.
  uint32_t size;
  // Index of the device.
  uint32_t device;
  // The chip; `TT_SHM_UNKNOWN` if its entry can no longer be read.
  uint64_t chip_id;
  // DRAM used: buffers and traces.
  struct tt_shm_span_memory dram;
  // L1 used: buffers and circular buffers of resident programs.
  struct tt_shm_span_memory l1;
} tt_shm_span_device;

// A part of a peak: buffers with one name, or circular buffers of programs with one name.
typedef struct tt_shm_span_part {
  // `sizeof(tt_shm_span_part)`.
  uint32_t size;
  // `TT_SHM_CLASS_...`.
  uint32_t class_;
  // Bytes that they occupy.
  uint64_t bytes;
  // Buffers; of circular buffers, programs.
  uint64_t count;
  // Number of the name, for `tt_shm_segment_name`; 0 for none.
  uint64_t name_number;
  // The name, cut if it is longer; empty if there is none. Not trusted.
  char name[128];
} tt_shm_span_part;

// A table and the aggregator that writes it.
typedef struct tt_shm_table_info {
  // `sizeof(tt_shm_table_info)`.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Identity of the table, which no other one has.
  uint64_t identity;
  // Process id of the aggregator, as it sees it.
  uint64_t pid;
  // When the aggregator was started, CLOCK_MONOTONIC.
  uint64_t started_ns;
  // The same, CLOCK_REALTIME.
  uint64_t started_realtime_ns;
  // The file.
  char path[256];
} tt_shm_table_info;

// How old a table is.
typedef struct tt_shm_freshness {
  // `sizeof(tt_shm_freshness)`.
  uint32_t size;
  // 1 if the aggregator counts as running.
  uint32_t fresh;
  // 1 if the aggregator has closed the table.
  uint32_t closed;
  // 1 if the path names another table by now: open it again.
  uint32_t replaced;
  // The last heartbeat of the aggregator, CLOCK_MONOTONIC.
  uint64_t heartbeat_ns;
  // How long ago that was; `TT_SHM_UNKNOWN` if it is from another boot.
  uint64_t age_ns;
  // The longest that the aggregator sleeps at present.
  uint64_t interval_ns;
} tt_shm_freshness;

// What a snapshot is of.
typedef struct tt_shm_snapshot_info {
  // `sizeof(tt_shm_snapshot_info)`.
  uint32_t size;
  // 1 if all rows are of one generation.
  uint32_t consistent;
  // The last generation included.
  uint64_t generation;
  // Everything that processes had reported by this time is included, CLOCK_MONOTONIC.
  uint64_t as_of_ns;
  // Devices.
  uint64_t devices;
  // Processes.
  uint64_t processes;
  // Usages.
  uint64_t usages;
  // Events folded.
  uint64_t events;
  // Events missed because they were overwritten.
  uint64_t missed;
  // Files refused at this moment.
  uint64_t refused;
  // Processes that are alive, or may be, and cannot be read.
  uint64_t unseen;
  // The start of the window that peaks refer to, CLOCK_MONOTONIC.
  uint64_t window_since_ns;
  // Windows opened.
  uint64_t windows;
  // Events that came too late to be merged by time.
  uint64_t late;
  // Processes whose file was gone before it could be opened.
  uint64_t lost;
  // Notices.
  uint64_t notices;
  // Failed allocations that are kept.
  uint64_t failures;
  // Devices that the driver tells of.
  uint64_t driver;
  // Devices of the driver that there is no row for.
  uint64_t driver_left_out;
  // Regions of tt-metal and their processes.
  uint64_t regions;
  // Rows of regions that there is no room for.
  uint64_t regions_left_out;
  // Usages that there is no row for.
  uint64_t overflow;
  // Generations for which /dev/shm had no room.
  uint64_t publish_errors;
  // Since when rows are missing because /dev/shm has no room for them, CLOCK_MONOTONIC; 0 if none are.
  uint64_t incomplete_since_ns;
  // How often a clock stepped. Times and order of events around a step are not known.
  uint64_t clock_steps;
  // Since when the machine is known not to have been suspended, CLOCK_MONOTONIC; 0 if it never was.
  uint64_t awake_since_ns;
  // If history was adopted from an earlier table: the beginning of the time that neither saw, CLOCK_MONOTONIC; else 0.
  uint64_t gap_start_ns;
  // The end of that time.
  uint64_t gap_end_ns;
} tt_shm_snapshot_info;

// How a tracker is opened. What is zero or null comes from the environment, or else is the default.
typedef struct tt_shm_options {
  // `sizeof(tt_shm_options)`.
  uint32_t size;
  // `TT_SHM_OPEN_...` bits.
  uint32_t flags;
  // The namespace, instead of `TT_SHM_NAMESPACE`.
  const char *name_space;
  // The name that monitors show, at most 64 bytes, instead of that of this process.
  const char *process_name;
  // Slots of the event ring, a power of two.
  uint64_t ring_slots;
  // Most rows of the live list.
  uint64_t live_capacity;
  // Most bytes of interned names.
  uint64_t name_bytes;
} tt_shm_options;

// A device that was registered with a tracker, and the index of a device in a segment.
typedef uint8_t tt_shm_device;

// A buffer that was allocated.
typedef struct tt_shm_buffer {
  // `sizeof(tt_shm_buffer)`.
  uint32_t size;
  // `TT_SHM_BUFFER_...`.
  uint32_t type_;
  // The host's id: identifies one live buffer per device.
  uint64_t id;
  // `TT_SHM_HAS_...` bits of `address`, `bytes_per_bank` and `occupied_bytes`.
  uint64_t known;
  // Requested bytes on each device.
  uint64_t bytes;
  // Its address on the device.
  uint64_t address;
  // Aligned bytes in each bank: it occupies that in every bank of its pool.
  uint64_t bytes_per_bank;
  // Bytes that it occupies on each device, whatever its pool.
  uint64_t occupied_bytes;
  // Number of cores that it is spread over; 0 if unknown.
  uint32_t cores;
  // What it is for.
  tt_shm_name name;
  // Where in the host's code it was allocated.
  tt_shm_name site;
  // Core ranges that it lies on.
  tt_shm_name core_ranges;
  // Zero.
  uint16_t reserved[3];
} tt_shm_buffer;

// A circular buffer. It occupies L1 from the dispatch of its program on.
typedef struct tt_shm_cb {
  // `sizeof(tt_shm_cb)`.
  uint32_t size;
  // Number of cores.
  uint32_t cores;
  // Its program.
  uint64_t program;
  // Its id, which identifies it within its program.
  uint64_t id;
  // Bytes on each core.
  uint64_t bytes_per_core;
  // `TT_SHM_HAS_ADDRESS`, or 0.
  uint64_t known;
  // Its address in L1.
  uint64_t address;
  // 1 if it lies inside an L1 buffer that is reported by itself, so that it has no bytes of its own.
  uint32_t globally_allocated;
  // What it is for.
  tt_shm_name name;
  // Core ranges that it lies on: rectangles `x,y-x,y` with spaces between them.
  tt_shm_name core_ranges;
} tt_shm_cb;

// A kernel binary, as loaded to a number of cores.
typedef struct tt_shm_kernel {
  // `sizeof(tt_shm_kernel)`.
  uint32_t size;
  // `TT_SHM_KERNEL_...`.
  uint32_t type_;
  // Its id.
  uint64_t id;
  // `TT_SHM_HAS_PROGRAM`, or 0.
  uint64_t known;
  // The program that runs it.
  uint64_t program;
  // Bytes of the binary on each core.
  uint64_t binary_bytes;
  // A hash of the binary; 0 for none.
  uint64_t hash;
  // Number of cores.
  uint32_t cores;
  // `TT_SHM_CORES_...`.
  uint32_t core_type;
  // What it is for.
  tt_shm_name name;
  // Core ranges that it lies on.
  tt_shm_name core_ranges;
  // Zero.
  uint32_t reserved;
} tt_shm_kernel;

// A dispatch of a program.
typedef struct tt_shm_dispatch_info {
  // `sizeof(tt_shm_dispatch_info)`.
  uint32_t size;
  // How often it is dispatched in a row, as when a trace is replayed; 0 is taken as once.
  uint32_t times;
  // Its program.
  uint64_t program;
  // The sub-device that runs it, below `TT_SHM_LANES`.
  uint8_t lane;
  // The command queue that it came by.
  uint8_t queue;
  // What the program does.
  tt_shm_name name;
  // Zero.
  uint32_t reserved;
} tt_shm_dispatch_info;

// An allocation that failed, with the state of the allocator at that time.
typedef struct tt_shm_failure {
  // `sizeof(tt_shm_failure)`.
  uint32_t size;
  // `TT_SHM_CLASS_...`.
  uint32_t class_;
  // Bytes requested.
  uint64_t request_bytes;
  // `TT_SHM_HAS_FREE` and `TT_SHM_HAS_NEEDED` bits.
  uint64_t known;
  // Bytes that were free.
  uint64_t free_bytes;
  // Largest free block.
  uint64_t largest_free_bytes;
  // Bytes needed in each bank.
  uint64_t needed_per_bank_bytes;
  // Banks.
  uint32_t banks;
  // 1 if free bytes and the largest free block are those of one bank, 0 if of all.
  uint32_t per_bank;
} tt_shm_failure;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// `AllocationClient::is_enabled`: 1 if `TT_ALLOC_TRACKING_ENABLED` is `1` and this process has a tracker.
int32_t tt_shm_client_is_enabled(void);

// `AllocationClient::report_allocation`. A repetition adds a reference; the first size and type stay, and a repetition that
// differs from them counts as a misuse.
int32_t tt_shm_client_allocation(int32_t device_id,
                                 uint64_t bytes,
                                 uint8_t buffer,
                                 uint64_t id);

// `AllocationClient::report_deallocation`: takes a reference back, and the last one frees.
int32_t tt_shm_client_deallocation(int32_t device_id, uint64_t id);

// `AllocationClient::report_cb_allocation`. A repetition replaces the size, and counts as a misuse.
int32_t tt_shm_client_cb_allocation(int32_t device_id, uint64_t bytes, uint64_t id);

// `AllocationClient::report_cb_deallocation`. The size is checked unless it is 0.
int32_t tt_shm_client_cb_deallocation(int32_t device_id, uint64_t bytes, uint64_t id);

// `AllocationClient::report_kernel_load`: the bytes on all cores. A repetition is a cached dispatch. Fabric kernels are on
// ethernet cores, all others on Tensix cores.
int32_t tt_shm_client_kernel_load(int32_t device_id,
                                  uint64_t bytes,
                                  uint64_t id,
                                  uint8_t kernel_type);

// `AllocationClient::report_kernel_unload`. The size is checked unless it is 0.
int32_t tt_shm_client_kernel_unload(int32_t device_id, uint64_t bytes, uint64_t id);

// What a code means: a text that stays. Every number has one.
const char *tt_shm_strerror(int32_t code);

// What the last call of this thread that failed was about, with its operands: which device, id, file. Empty if none
// failed. Valid until the next call of this thread that fails; calls that succeed leave it.
const char *tt_shm_last_error(void);

// The `errno` of the last call of this thread that failed; 0 if no system call failed.
int32_t tt_shm_last_errno(void);

// What the peak of a memory (`TT_SHM_MEMORY_...`) of the device in a row was made of. `TT_SHM_ERR_NOT_FOUND` if there is no
// such row.
int32_t tt_shm_snapshot_composition(struct tt_shm_snapshot *snapshot,
                                    uint32_t device_row,
                                    uint32_t memory,
                                    struct tt_shm_composition *composition);

// What the driver tells of its devices.
int32_t tt_shm_snapshot_driver(struct tt_shm_snapshot *snapshot,
                               struct tt_shm_driver_stats *devices,
                               size_t capacity,
                               size_t *total);

// What the driver says of the device in one of its rows that processes say, too: architecture, board, PCI address.
// `TT_SHM_ERR_NOT_FOUND` if there is no such row.
int32_t tt_shm_snapshot_driver_info(struct tt_shm_snapshot *snapshot,
                                    uint32_t row,
                                    struct tt_shm_device_info *info);

// Lets go of an exclusive tracker, which belongs to the calling thread: from now on every call with it is refused, until a thread
// takes it by `tt_shm_tracker_acquire`. `TT_SHM_ERR_VALUE` for a tracker that is not exclusive.
int32_t tt_shm_tracker_release(struct tt_shm_tracker *tracker);

// Makes an exclusive tracker that no thread has belong to the calling thread. `TT_SHM_ERR_THREAD` if another one has it. Let go of
// it before a thread ends: what that thread had stays with it.
int32_t tt_shm_tracker_acquire(struct tt_shm_tracker *tracker);

// The last failed allocations of all devices, newest first.
int32_t tt_shm_snapshot_failures(struct tt_shm_snapshot *snapshot,
                                 struct tt_shm_failure_record *failures,
                                 size_t capacity,
                                 size_t *total);

// What was used of the device in a row of a table, at a resolution (`TT_SHM_HISTORY_...`), oldest first, up to now. Time goes on
// between two calls: `TT_SHM_HISTORY_BUCKETS` is always room enough.
int32_t tt_shm_table_history(struct tt_shm_table *table,
                             uint32_t device_row,
                             uint32_t resolution,
                             struct tt_shm_bucket *buckets,
                             size_t capacity,
                             size_t *total);

// The same of a source, which also knows the chip's history from before it changed between a table and an aggregation of its own.
// Row and chip are those of a `tt_shm_device_stats` that was read from it.
int32_t tt_shm_source_history(struct tt_shm_source *source,
                              uint32_t device_row,
                              uint64_t chip_id,
                              uint32_t resolution,
                              struct tt_shm_bucket *buckets,
                              size_t capacity,
                              size_t *total);

// What the driver measured of the device in one of its rows (`tt_shm_driver_stats.row`), at a resolution, oldest first, up to now.
int32_t tt_shm_table_telemetry(struct tt_shm_table *table,
                               uint32_t driver_row,
                               uint32_t resolution,
                               struct tt_shm_telemetry *buckets,
                               size_t capacity,
                               size_t *total);

// The same of a source.
int32_t tt_shm_source_telemetry(struct tt_shm_source *source,
                                uint32_t driver_row,
                                uint32_t resolution,
                                struct tt_shm_telemetry *buckets,
                                size_t capacity,
                                size_t *total);

// The notices, newest first.
int32_t tt_shm_snapshot_notices(struct tt_shm_snapshot *snapshot,
                                struct tt_shm_notice *notices,
                                size_t capacity,
                                size_t *total);

// The regions of tt-metal and their processes.
int32_t tt_shm_snapshot_regions(struct tt_shm_snapshot *snapshot,
                                struct tt_shm_region_stats *regions,
                                size_t capacity,
                                size_t *total);

// The devices.
int32_t tt_shm_snapshot_devices(struct tt_shm_snapshot *snapshot,
                                struct tt_shm_device_stats *devices,
                                size_t capacity,
                                size_t *total);

// What is taken as true of the device in a row. `TT_SHM_ERR_NOT_FOUND` if there is none.
int32_t tt_shm_snapshot_device_info(struct tt_shm_snapshot *snapshot,
                                    uint32_t row,
                                    struct tt_shm_device_info *info);

// One device of a table, without a copy of all rows. `TT_SHM_ERR_NOT_FOUND` if the row is not in use, or if the
// aggregator wrote it in every attempt to read it.
int32_t tt_shm_table_device(struct tt_shm_table *table,
                            uint32_t row,
                            struct tt_shm_device_stats *device);

// The processes; those that ended stay for a while.
int32_t tt_shm_snapshot_processes(struct tt_shm_snapshot *snapshot,
                                  struct tt_shm_process_stats *processes,
                                  size_t capacity,
                                  size_t *total);

// The usage of each device by each process.
int32_t tt_shm_snapshot_usages(struct tt_shm_snapshot *snapshot,
                               struct tt_shm_usage *usages,
                               size_t capacity,
                               size_t *total);

// What the process of a usage claims about the device. `TT_SHM_ERR_NOT_FOUND` if there is no such row.
int32_t tt_shm_snapshot_usage_info(struct tt_shm_snapshot *snapshot,
                                   uint64_t row,
                                   struct tt_shm_device_info *info);

// The files in /dev/shm that are named as segments of a namespace (null: that of the environment), sorted. Nothing is
// opened: by the time it is, a file may be gone or unreadable.
int32_t tt_shm_segment_list(const char *name_space,
                            struct tt_shm_path *paths,
                            size_t capacity,
                            size_t *total);

// Opens a segment. A file that is not one, or not an honest one, is refused.
int32_t tt_shm_segment_open(const char *path, struct tt_shm_segment **segment);

// Opens a segment by a descriptor, with the same checks. The caller keeps the descriptor.
int32_t tt_shm_segment_open_fd(int32_t descriptor, struct tt_shm_segment **segment);

// Closes a segment.
int32_t tt_shm_segment_close(struct tt_shm_segment *segment);

// The process, as its segment describes it.
int32_t tt_shm_segment_process(struct tt_shm_segment *segment, struct tt_shm_process *process);

// Whether the process is alive, running or stopped: `alive` becomes 1 or 0. The kernel tells, not a pid.
int32_t tt_shm_segment_is_alive(struct tt_shm_segment *segment, uint32_t *alive);

// The devices that the process registered, by the index that events and allocations carry.
int32_t tt_shm_segment_devices(struct tt_shm_segment *segment,
                               struct tt_shm_device_info *devices,
                               size_t capacity,
                               size_t *total);

// The exact counters of all devices at one position, by their index. `position` may be null.
int32_t tt_shm_segment_counters(struct tt_shm_segment *segment,
                                struct tt_shm_counters *counters,
                                size_t capacity,
                                size_t *total,
                                uint64_t *position);

// Everything that is live in the process, oldest first. `listing` (may be null) says how exact that is. What is live may
// change between two calls: where `total` is more than there was room for, call again with more.
int32_t tt_shm_segment_allocations(struct tt_shm_segment *segment,
                                   tt_shm_allocation *allocations,
                                   size_t capacity,
                                   size_t *total,
                                   struct tt_shm_listing *listing);

// The programs that have something loaded, allocated or dispatched: one element for each of its devices.
int32_t tt_shm_segment_programs(struct tt_shm_segment *segment,
                                struct tt_shm_program *programs,
                                size_t capacity,
                                size_t *total);

// How many bytes of loaded kernels are copies of a binary that is also loaded elsewhere: one element for each device that has
// kernels.
int32_t tt_shm_segment_kernel_sharing(struct tt_shm_segment *segment,
                                      struct tt_shm_kernel_sharing *devices,
                                      size_t capacity,
                                      size_t *total);

// The position of the process's last event. Reading from there is reading what happens from now on.
int32_t tt_shm_segment_head(struct tt_shm_segment *segment, uint64_t *position);

// Copies the events after `position` (0: from the oldest that is kept). `read` is how many there were, `missed` (may be
// null) how many were overwritten before the first of them, `next` where to read from next. Never waits.
int32_t tt_shm_segment_read_from(struct tt_shm_segment *segment,
                                 uint64_t position,
                                 struct tt_shm_event *events,
                                 size_t capacity,
                                 size_t *read,
                                 uint64_t *missed,
                                 uint64_t *next);

// The name with this number, as bytes with a zero after them, cut to `capacity`. `needed` (may be null) is what the whole of
// it needs. `TT_SHM_ERR_NOT_FOUND` if there is none. Not trusted: escape control characters before displaying it.
int32_t tt_shm_segment_name(struct tt_shm_segment *segment,
                            tt_shm_name number,
                            char *text,
                            size_t capacity,
                            size_t *needed);

// The conversion of the segment's ticks to times, of this moment: the later it is made, the more precise it is.
int32_t tt_shm_segment_calibration(struct tt_shm_segment *segment,
                                   struct tt_shm_calibration *calibration);

// Converts ticks to CLOCK_MONOTONIC nanoseconds.
int32_t tt_shm_to_monotonic_ns(const struct tt_shm_calibration *calibration,
                               const uint64_t *ticks,
                               uint64_t *times,
                               size_t count);

// Converts ticks to nanoseconds since 1970; `TT_SHM_UNKNOWN` for what cannot be converted, because the machine was suspended
// meanwhile.
int32_t tt_shm_to_realtime_ns(const struct tt_shm_calibration *calibration,
                              const uint64_t *ticks,
                              uint64_t *times,
                              size_t count);

// Opens a source of figures of a namespace (null: that of the environment): the table of a running aggregator, or else an
// aggregation in this process, which takes some milliseconds.
int32_t tt_shm_source_open(const char *name_space,
                           struct tt_shm_source **source);

// Closes a source.
int32_t tt_shm_source_close(struct tt_shm_source *source);

// Copies all rows as they are now. Changes between a table and an aggregation in this process when an aggregator starts, ends or
// is replaced; `origin` (may be null) says which it was. Close the copy. A source is for one thread at a time.
int32_t tt_shm_source_read(struct tt_shm_source *source,
                           struct tt_shm_snapshot **snapshot,
                           struct tt_shm_origin *origin);

// Keeps an aggregation in this process going: who reads more than once calls this in between, so that no ring wraps around
// unseen and peaks stay exact. `wait_ns` (may be null) is how long may pass until the next call.
int32_t tt_shm_source_poll(struct tt_shm_source *source,
                           uint64_t *wait_ns);

// Begins a span of time in a process, which changes nothing there: spans may overlap, and several observers may measure at the
// same time. Takes time in proportion to what is live. `TT_SHM_ERR_READ_BUSY` if the process was too fast: try again. Close the
// span; it does not need the segment's handle.
int32_t tt_shm_span_begin(struct tt_shm_segment *segment,
                          struct tt_shm_span **span);

// Closes a span, whether or not it has ended.
int32_t tt_shm_span_close(struct tt_shm_span *span);

// Takes in what has happened since the last call. A span that is longer than a quarter of the ring (4096 events with the
// default) needs this once per quarter, or peaks may become ranges. `events` (may be null) is how many there were, with those missed.
int32_t tt_shm_span_poll(struct tt_shm_span *span,
                         uint64_t *events);

// Ends a span; `report` may be null. `TT_SHM_ERR_STATE` if it has ended before.
int32_t tt_shm_span_end(struct tt_shm_span *span, struct tt_shm_span_report *report);

// What an ended span did to the devices of the process, by their index. `TT_SHM_ERR_STATE` if it has not ended.
int32_t tt_shm_span_devices(struct tt_shm_span *span,
                            struct tt_shm_span_device *devices,
                            size_t capacity,
                            size_t *total);

// What the peak of a memory (`TT_SHM_MEMORY_...`) of a device, by its index, was made of, most bytes first.
// `TT_SHM_ERR_NOT_FOUND` if there is no such device, or if that is not known; `TT_SHM_ERR_STATE` if the span has not ended.
int32_t tt_shm_span_parts(struct tt_shm_span *span,
                          uint32_t device,
                          uint32_t memory,
                          struct tt_shm_span_part *parts,
                          size_t capacity,
                          size_t *total);

// Opens root's table of a namespace (null: that of the environment), or else the caller's own. `TT_SHM_ERR_NOT_FOUND` if no
// aggregator has published one.
int32_t tt_shm_table_open(const char *name_space,
                          struct tt_shm_table **table);

// Opens a table by a descriptor, with the same checks. The caller keeps the descriptor.
int32_t tt_shm_table_open_fd(int32_t descriptor, struct tt_shm_table **table);

// Closes a table.
int32_t tt_shm_table_close(struct tt_shm_table *table);

// The table, and the aggregator that writes it.
int32_t tt_shm_table_describe(struct tt_shm_table *table, struct tt_shm_table_info *info);

// Whether the aggregator is running, and since when not. An aggregator that was stopped or killed leaves its table as it
// was: only this tells.
int32_t tt_shm_table_freshness(struct tt_shm_table *table,
                               struct tt_shm_freshness *freshness);

// Copies all rows, of one generation if that succeeds. Close the copy.
int32_t tt_shm_table_snapshot(struct tt_shm_table *table, struct tt_shm_snapshot **snapshot);

// Closes a copy.
int32_t tt_shm_snapshot_close(struct tt_shm_snapshot *snapshot);

// What the copy is of.
int32_t tt_shm_snapshot_describe(struct tt_shm_snapshot *snapshot, struct tt_shm_snapshot_info *info);

// Whether this process reports by itself: 1 if an enabled tracker is open that was not opened with
// `TT_SHM_OPEN_BESIDE_TAP`. The tap asks this.
int32_t tt_shm_is_reporting(void);

// The version of this library's interface, `TT_SHM_ABI_VERSION` of the header that it was built with. A host may compare
// the high 16 bits with those of its own header.
uint32_t tt_shm_abi_version(void);

// The version of this library, such as `0.1.0`.
const char *tt_shm_version(void);

// Opens a tracker, which makes a segment of its own if tracking is enabled: monitors add up all trackers of a process.
// Most hosts want `tt_shm_tracker_for_process`. `options` may be null. If tracking is disabled (see
// `TT_ALLOC_TRACKING_ENABLED`), the tracker's calls do nothing and succeed.
int32_t tt_shm_tracker_open(const struct tt_shm_options *options,
                            struct tt_shm_tracker **tracker);

// The one tracker of this process, opened by the environment at the first call; later calls give the same handle. For
// all libraries and threads of the process. If it was closed, it stays closed.
int32_t tt_shm_tracker_for_process(struct tt_shm_tracker **tracker);

// Ends the tracker's reports: the segment is closed and removed. From then on the handle is refused, also while other
// threads are in calls with it. An exclusive one is closed by the thread that it belongs to.
int32_t tt_shm_tracker_close(struct tt_shm_tracker *tracker);

// Another handle of the tracker, whose calls never wait for other threads: they fail with `TT_SHM_ERR_BUSY` instead. For
// crash handlers. It is closed with the tracker.
//
// In a signal handler only markers, failures, states and gauges of devices, resets of peaks and counters are safe, with
// devices and names from before: they use no heap.
int32_t tt_shm_tracker_without_waiting(struct tt_shm_tracker *tracker,
                                       struct tt_shm_tracker **without_waiting);

// Whether the tracker's calls record anything; 0 also for what is no open tracker.
int32_t tt_shm_tracker_is_enabled(struct tt_shm_tracker *tracker);

// The file that this process writes, as a text with a zero at its end, cut to `capacity` bytes. `needed` (may be null) is
// what the whole of it needs; 0 if tracking is disabled.
int32_t tt_shm_tracker_path(struct tt_shm_tracker *tracker,
                            char *text,
                            size_t capacity,
                            size_t *needed);

// Registers a device. One that is known already, by chip and allocator, keeps its number, and new facts are added.
int32_t tt_shm_register_device(struct tt_shm_tracker *tracker,
                               const struct tt_shm_device_info *info,
                               tt_shm_device *device);

// Gives a name, of `length` bytes, a number for use in later calls. Longer ones than 1024 bytes are cut; an empty one has
// number 0.
int32_t tt_shm_intern(struct tt_shm_tracker *tracker,
                      const char *name,
                      size_t length,
                      tt_shm_name *number);

// Records that a buffer of this many requested bytes was allocated on a device. What it occupies is not known then: a host
// that knows calls `tt_shm_alloc_on`.
int32_t tt_shm_alloc(struct tt_shm_tracker *tracker,
                     tt_shm_device device,
                     uint32_t buffer,
                     uint64_t id,
                     uint64_t bytes);

// Records that a buffer was allocated on devices, with everything that the host knows of it.
int32_t tt_shm_alloc_on(struct tt_shm_tracker *tracker,
                        const tt_shm_device *devices,
                        size_t device_count,
                        const struct tt_shm_buffer *buffer);

// Records that buffers were allocated, with the lock taken once. The first that is refused ends it: `recorded` (may be
// null) says how many were recorded before, and those after it are not tried.
int32_t tt_shm_alloc_many(struct tt_shm_tracker *tracker,
                          const tt_shm_device *devices,
                          size_t device_count,
                          const struct tt_shm_buffer *buffers,
                          size_t buffer_count,
                          size_t *recorded);

// Records that a buffer was freed on a device.
int32_t tt_shm_free(struct tt_shm_tracker *tracker, tt_shm_device device, uint64_t id);

// Records that a buffer was freed on devices.
int32_t tt_shm_free_on(struct tt_shm_tracker *tracker,
                       const tt_shm_device *devices,
                       size_t device_count,
                       uint64_t id);

// Records that a buffer was freed, and checks the size that was requested for it.
int32_t tt_shm_free_sized(struct tt_shm_tracker *tracker,
                          const tt_shm_device *devices,
                          size_t device_count,
                          uint64_t id,
                          uint64_t bytes);

// Records that a buffer was freed because its device was closed, not by the program.
int32_t tt_shm_free_dropped(struct tt_shm_tracker *tracker,
                            const tt_shm_device *devices,
                            size_t device_count,
                            uint64_t id);

// Records that buffers were freed, as `tt_shm_alloc_many` does that they were allocated.
int32_t tt_shm_free_many(struct tt_shm_tracker *tracker,
                         const tt_shm_device *devices,
                         size_t device_count,
                         const uint64_t *ids,
                         size_t id_count,
                         size_t *recorded);

// Gives something live (`TT_SHM_KIND_...`) a name after it was reported, and a site unless that is 0. `program` is that of
// a circular buffer.
int32_t tt_shm_name_live(struct tt_shm_tracker *tracker,
                         const tt_shm_device *devices,
                         size_t device_count,
                         uint32_t kind,
                         uint64_t program,
                         uint64_t id,
                         tt_shm_name name,
                         tt_shm_name site);

// The same for something that another thread may have freed meanwhile: then nothing is done.
int32_t tt_shm_name_if_live(struct tt_shm_tracker *tracker,
                            const tt_shm_device *devices,
                            size_t device_count,
                            uint32_t kind,
                            uint64_t program,
                            uint64_t id,
                            tt_shm_name name);

// Records that a circular buffer was allocated. It is resident from the next dispatch of its program on.
int32_t tt_shm_cb_alloc(struct tt_shm_tracker *tracker,
                        const tt_shm_device *devices,
                        size_t device_count,
                        const struct tt_shm_cb *cb);

// Records that a circular buffer was freed. `bytes` is checked unless it is `TT_SHM_UNKNOWN`.
int32_t tt_shm_cb_free(struct tt_shm_tracker *tracker,
                       const tt_shm_device *devices,
                       size_t device_count,
                       uint64_t program,
                       uint64_t id,
                       uint64_t bytes);

// Records that a kernel was loaded. If it was loaded already, this is a cached dispatch of a program, and `cached` (may be
// null) becomes 1, otherwise 0.
int32_t tt_shm_kernel_load(struct tt_shm_tracker *tracker,
                           const tt_shm_device *devices,
                           size_t device_count,
                           const struct tt_shm_kernel *kernel,
                           uint32_t *cached);

// Records that a kernel was unloaded, whichever programs ran it. `bytes`, on all cores, is checked unless it is
// `TT_SHM_UNKNOWN`.
int32_t tt_shm_kernel_unload(struct tt_shm_tracker *tracker,
                             const tt_shm_device *devices,
                             size_t device_count,
                             uint64_t id,
                             uint64_t bytes);

// Records that a program was launched: those of its kernels that were not sent before are loaded, and it is dispatched.
// `binary_status` is `TT_SHM_BINARY_...`.
int32_t tt_shm_launch(struct tt_shm_tracker *tracker,
                      const tt_shm_device *devices,
                      size_t device_count,
                      const struct tt_shm_dispatch_info *dispatch,
                      const struct tt_shm_kernel *kernels,
                      size_t kernel_count,
                      uint32_t binary_status);

// Records that a program whose binary is on the device was dispatched again, in lane 0 and by command queue 0.
int32_t tt_shm_dispatch(struct tt_shm_tracker *tracker,
                        tt_shm_device device,
                        uint64_t program);

// The same on devices, with everything that the host knows of it.
int32_t tt_shm_dispatch_on(struct tt_shm_tracker *tracker,
                           const tt_shm_device *devices,
                           size_t device_count,
                           const struct tt_shm_dispatch_info *dispatch);

// Records that a program was destroyed: its circular buffers are freed and the kernels that it loaded are unloaded.
int32_t tt_shm_program_end(struct tt_shm_tracker *tracker,
                           const tt_shm_device *devices,
                           size_t device_count,
                           uint64_t program);

// Records that an allocation failed.
int32_t tt_shm_alloc_failed(struct tt_shm_tracker *tracker,
                            const tt_shm_device *devices,
                            size_t device_count,
                            const struct tt_shm_failure *failure);

// Records the beginning or end of a step, or a moment (`TT_SHM_MARKER_...`).
int32_t tt_shm_marker(struct tt_shm_tracker *tracker, uint32_t phase, uint64_t id, tt_shm_name name);

// Resets the peaks to what is used now.
int32_t tt_shm_reset_peaks(struct tt_shm_tracker *tracker, const tt_shm_device *devices, size_t device_count);

// Records that the devices were opened.
int32_t tt_shm_device_open(struct tt_shm_tracker *tracker, const tt_shm_device *devices, size_t device_count);

// Records that the devices were closed. What was not freed stays reported as live.
int32_t tt_shm_device_close(struct tt_shm_tracker *tracker, const tt_shm_device *devices, size_t device_count);

// Records how full the kernel ring buffer is.
int32_t tt_shm_kernel_ring(struct tt_shm_tracker *tracker,
                           const tt_shm_device *devices,
                           size_t device_count,
                           uint64_t total_bytes,
                           uint64_t used_bytes,
                           uint64_t programs);

// Records that the sums were compared with those of the device's allocator `made` times, of which `different` found a
// difference.
int32_t tt_shm_self_checks(struct tt_shm_tracker *tracker,
                           uint64_t made,
                           uint64_t different);

// Records that this process holds memory that it cannot report (`partial` not 0), so that none of its figures is exact, or
// that it does no longer.
int32_t tt_shm_partial(struct tt_shm_tracker *tracker,
                       uint32_t partial);

// This process's own counters of a device, exact as of the last call. `TT_SHM_ERR_UNKNOWN_DEVICE` if tracking is disabled
// or the device is not registered.
int32_t tt_shm_own_counters(struct tt_shm_tracker *tracker,
                            tt_shm_device device,
                            struct tt_shm_counters *counters);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* TT_SHM_H */
