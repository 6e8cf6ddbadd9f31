#include <cstdio>
#include <tt_shm.hpp>
#include <tt_shm_allocation_client.hpp>

int main() {
    using tt::tt_metal::AllocationClient;
    AllocationClient::report_allocation(0, 4096, 0, 1);
    const tt_shm::Segment segment(tt_shm::Segment::list().at(0));
    return segment.counters().at(0).dram_used_bytes == 4096 ? std::puts(tt_shm_version()) < 0 : 1;
}
