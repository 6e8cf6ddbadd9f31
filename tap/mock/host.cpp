// A host without Python: calls tt-metal's buffers directly, from any number of threads.
//
//   host threads T N   T threads allocate and free N times each, and rest twice: with buffers, and with none. At each rest
//                      it says what the allocator itself says, and waits for a line.
//   host pairs ROUNDS N   the time of an allocation and its free, the fastest of so many rounds of N pairs
//
// The wheel has no headers. What is declared here is what the names of ttnn 0.81.1 say.
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

int main(int count, char** arguments) {
    if (count != 4) {
        std::fprintf(stderr, "usage: host threads T N | host pairs ROUNDS N\n");
        return 2;
    }
    const int first = std::atoi(arguments[2]), second = std::atoi(arguments[3]);
    Host host;
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
