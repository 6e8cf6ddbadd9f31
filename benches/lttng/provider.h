/* The tracepoint: the fields of our event that its callers give. */
#undef LTTNG_UST_TRACEPOINT_PROVIDER
#define LTTNG_UST_TRACEPOINT_PROVIDER tt_shm_bench

#undef LTTNG_UST_TRACEPOINT_INCLUDE
#define LTTNG_UST_TRACEPOINT_INCLUDE "provider.h"

#if !defined(PROVIDER_H) || defined(LTTNG_UST_TRACEPOINT_HEADER_MULTI_READ)
#define PROVIDER_H

#include <lttng/tracepoint.h>
#include <stdint.h>

LTTNG_UST_TRACEPOINT_EVENT(
    tt_shm_bench, allocation,
    LTTNG_UST_TP_ARGS(uint8_t, kind, uint8_t, device, uint64_t, id, uint64_t, size, uint64_t, address, uint32_t, cores),
    LTTNG_UST_TP_FIELDS(
        lttng_ust_field_integer(uint8_t, kind, kind)
        lttng_ust_field_integer(uint8_t, device, device)
        lttng_ust_field_integer(uint64_t, id, id)
        lttng_ust_field_integer(uint64_t, size, size)
        lttng_ust_field_integer(uint64_t, address, address)
        lttng_ust_field_integer(uint32_t, cores, cores)))

#endif

#include <lttng/tracepoint-event.h>
