// Chooses the machine. A target header provides:
//   MPSKIT_LIBM(name)           libm's single-precision function of that name
//   target::exp10, rsqrt, sinpi, cospi   functions that libm lacks
//   target::count_ones, leading_zeros, trailing_zeros   of 64 bits
//   target::half_to_float, float_to_half, MPSKIT_HARDWARE_HALF   optional: binary16 conversions
//   target::simd_width, poison
//   target::gather(value)    what the active lanes gave: .active, .lane (the caller's), [lane], and
//                            .once(compute) for what every lane would compute alike
//   target::threadgroup_barrier, simdgroup_barrier
//   target::atomic_load, atomic_store, atomic_exchange_n, atomic_compare_exchange, atomic_fence,
//   atomic_fetch_add/sub/and/or/xor      on one word of memory
#pragma once

#if defined(MPSKIT_TARGET_CPU)
#include "target_cpu.h"
#else
#error "define MPSKIT_TARGET_CPU"
#endif
