// A host without Python: calls tt-metal's buffers directly, from any number of threads.
//
//   host threads T N   T threads allocate and free N times each, and rest twice: with buffers, and with none. At each rest
//                      it says what the allocator itself says, and waits for a line.
//   host pairs ROUNDS N   the time of an allocation and its free, the fastest of so many rounds of N pairs
//   host begun WHAT WHEN   a thread is held (by hold.c) in the middle of a call, WHAT: allocate or free, WHEN: before or
//                      after it is done; the tap comes, and the call ends. It rests as above: with the call on its way, at
//                      its end, with what it made freed (if FREES_CAUGHT is set), after a second and another, and with
//                      no buffers.
//
//   host installs T ROUNDS   the tap is put in place while T threads allocate and free. They rest as above, and the tap is
//                      taken away, in each round; at the end after some seconds.
//
// The wheel has no headers. What is declared here is what the names of ttnn 0.81.1 say.
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <memory>
#include <optional>
#include <random>
#include <span>
#include <string_view>
#include <thread>
#include <vector>

#include <dlfcn.h>

namespace ttsl {
template <class Value, class Tag>
struct StrongType {
    Value value;
};
}  // namespace ttsl

namespace tt::tt_metal {
enum class BufferType { DRAM, L1, SYSTEM_MEMORY, L1_SMALL, TRACE };
struct SubDeviceIdTag;
struct IDevice;
struct Buffer;

struct BufferShardingArgs {
    BufferShardingArgs(std::nullopt_t);
    // Larger than it is in any version.
    alignas(16) char content[2048];
};

struct DispatchCoreConfig {
    int type = 0;
    std::optional<int> axis;
};

struct BufferImpl {
    using SubDevice = ttsl::StrongType<unsigned char, SubDeviceIdTag>;
    static std::shared_ptr<Buffer> create(
        IDevice*, uint64_t bytes, uint64_t page, BufferType, const BufferShardingArgs&, std::optional<bool>,
        std::optional<SubDevice>);
};

struct Statistics {
    uint64_t total, allocated, free, largest_free;
    uint64_t more[28];
};

struct AllocatorImpl {
    Statistics get_statistics(const BufferType&) const;
    uint32_t get_num_banks(const BufferType&) const;
};

namespace distributed {
struct MeshDevice {
    static std::shared_ptr<MeshDevice> create_unit_mesh(
        int chip, uint64_t l1_small, uint64_t trace_region, uint64_t queues, const DispatchCoreConfig&,
        std::span<const uint32_t>, uint64_t);
    const std::unique_ptr<AllocatorImpl>& allocator_impl() const;
    bool close();
};
}  // namespace distributed
}  // namespace tt::tt_metal

using namespace tt::tt_metal;

struct Host {
    BufferShardingArgs& interleaved = *new BufferShardingArgs(std::nullopt);
    std::shared_ptr<distributed::MeshDevice> mesh =
        distributed::MeshDevice::create_unit_mesh(0, 32768, 1 << 20, 1, DispatchCoreConfig{}, {}, 0);

    std::shared_ptr<Buffer> allocate(uint64_t bytes, uint64_t page, BufferType type) {
        auto* device = reinterpret_cast<IDevice*>(mesh.get());
        return BufferImpl::create(device, bytes, page, type, interleaved, std::nullopt, std::nullopt);
    }

    void rest() {
        const auto& allocator = *mesh->allocator_impl();
        const auto bytes = [&](BufferType type) {
            return static_cast<unsigned long>(allocator.get_statistics(type).allocated * allocator.get_num_banks(type));
        };
        std::printf(
            "rests %lu %lu %lu\n", bytes(BufferType::DRAM), bytes(BufferType::L1), bytes(BufferType::TRACE));
        std::fflush(stdout);
        std::getchar();
    }
};

static void work(Host& host, unsigned seed, int steps, std::vector<std::shared_ptr<Buffer>>& held) {
    std::mt19937 choose(seed);
    for (int step = 0; step < steps; step++) {
        if (held.size() > 40 || (!held.empty() && choose() % 3 == 0)) {
            std::swap(held[choose() % held.size()], held.back());
            held.pop_back();
            continue;
        }
        const unsigned kind = choose() % 10;
        const auto type = kind < 6 ? BufferType::DRAM : kind < 9 ? BufferType::L1 : BufferType::TRACE;
        const uint64_t page = (choose() % 64 + 1) * 4;
        const uint64_t pages = choose() % (type == BufferType::TRACE ? 4 : 400) + 1;
        try {
            held.push_back(host.allocate(page * pages, page, type));
        } catch (const std::exception&) {
            // Out of memory: that happens.
        }
    }
}

template <class Function>
static Function* symbol(void* library, const char* name) {
    auto* found = reinterpret_cast<Function*>(dlsym(library, name));
    if (found == nullptr) {
        std::fprintf(stderr, "there is no %s\n", name);
        std::exit(2);
    }
    return found;
}

static void* install() {
    auto* tap = dlopen(std::getenv("TAP"), RTLD_NOW);
    if (tap == nullptr || symbol<int()>(tap, "tt_shm_tap_install")() < 1) {
        std::fprintf(stderr, "the tap is not installed\n");
        std::exit(2);
    }
    return tap;
}

// The tap comes while threads are in the middle of whatever they do.
static void installs(Host& host, int count, int rounds) {
    std::vector<std::vector<std::shared_ptr<Buffer>>> held(count);
    for (int round = 0; round < rounds; round++) {
        std::vector<std::thread> threads;
        std::atomic<bool> ends = false;
        for (int thread = 0; thread < count; thread++) {
            threads.emplace_back([&, thread] {
                for (int turn = 0; !ends; turn++) {
                    work(host, turn * count + thread, 20, held[thread]);
                }
            });
        }
        std::this_thread::sleep_for(std::chrono::milliseconds(3));
        auto* tap = install();
        std::this_thread::sleep_for(std::chrono::milliseconds(round % 8 * 5));
        ends = true;
        for (auto& thread : threads) {
            thread.join();
        }
        for (int last = round + 1 == rounds; last >= 0; last--) {
            for (const auto type : {BufferType::DRAM, BufferType::L1, BufferType::TRACE}) {
                host.allocate(2048, 2048, type);
            }
            host.rest();
            std::this_thread::sleep_for(std::chrono::milliseconds(1100 * last));
        }
        symbol<int()>(tap, "tt_shm_tap_detach")();
    }
}

// The tap comes while a thread is in the middle of a call, which it can therefore not see.
static void begun(Host& host, std::string_view what, std::string_view when) {
    const bool frees = what == "free";
    const char* function = frees ? "_ZN2tt8tt_metal13AllocatorImpl17deallocate_bufferEPNS0_6BufferE"
                                 : "_ZN2tt8tt_metal13AllocatorImpl15allocate_bufferEPNS0_6BufferE";
    auto* hold = symbol<void(const char*)>(RTLD_DEFAULT, when == "before" ? "hold_before_lock" : "hold_after_unlock");
    std::vector<std::shared_ptr<Buffer>> held;
    for (int number = 1; number < 5; number++) {
        held.push_back(host.allocate(2048 * number, 2048, number % 2 ? BufferType::DRAM : BufferType::L1));
    }
    std::shared_ptr<Buffer> caught = frees ? host.allocate(2048 * 50, 2048, BufferType::DRAM) : nullptr;
    std::thread thread([&] {
        hold(function);
        caught = frees ? nullptr : host.allocate(2048 * 50, 2048, BufferType::DRAM);
    });
    while (!symbol<int()>(RTLD_DEFAULT, "hold_is_held")()) {
        std::this_thread::yield();
    }
    install();
    held.push_back(host.allocate(2048 * 7, 2048, BufferType::DRAM));
    host.rest();
    symbol<void()>(RTLD_DEFAULT, "hold_release")();
    thread.join();
    held.push_back(host.allocate(2048 * 9, 2048, BufferType::L1));
    host.rest();
    caught = std::getenv("FREES_CAUGHT") ? nullptr : caught;
    host.rest();
    for (int second = 1; second < 3; second++) {
        std::this_thread::sleep_for(std::chrono::milliseconds(1100));
        held.push_back(host.allocate(2048 * 11 * second, 2048, BufferType::DRAM));
        host.rest();
    }
    held.clear();
    caught = nullptr;
    host.rest();
}

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: host threads T N | host pairs ROUNDS N | host begun WHAT WHEN | host installs T ROUNDS\n");
        return 2;
    }
    if (std::string_view(arguments[1]) == "begun") {
        Host host;
        begun(host, arguments[2], arguments[3]);
        host.mesh->close();
        return 0;
    }
    const int first = std::atoi(arguments[2]), second = std::atoi(arguments[3]);
    Host host;
    if (std::string_view(arguments[1]) == "installs") {
        installs(host, first, second);
        host.mesh->close();
        return 0;
    }
    if (std::string_view(arguments[1]) == "pairs") {
        double fastest = 1e99;
        for (int round = 0; round < first; round++) {
            const auto begin = std::chrono::steady_clock::now();
            for (int pair = 0; pair < second; pair++) {
                host.allocate(65536, 2048, BufferType::DRAM);
            }
            const std::chrono::duration<double, std::nano> took = std::chrono::steady_clock::now() - begin;
            fastest = std::min(fastest, took.count() / second);
        }
        std::printf("%.1f\n", fastest);
    } else {
        std::vector<std::vector<std::shared_ptr<Buffer>>> held(first);
        std::vector<std::thread> threads;
        for (int thread = 0; thread < first; thread++) {
            threads.emplace_back([&, thread] { work(host, thread, second, held[thread]); });
        }
        for (auto& thread : threads) {
            thread.join();
        }
        host.rest();
        held.clear();
        host.rest();
    }
    host.mesh->close();
}
