// Chooses the machine. A target header provides, in namespace target:
//   MPSKIT_LIBM(name)           libm's single-precision function of that name
//   exp10, rsqrt, sinpi, cospi  functions that libm lacks
//   fmin, fmax                  where a NaN gives way to the other argument
//   fast::exp, exp2, log, log2, log10, sin, cos
//   count_ones, leading_zeros, trailing_zeros   of 64 bits
//   copy_bytes, fill_bytes      memcpy and memset
//   MPSKIT_HARDWARE_HALF, half_to_float, float_to_half     optional: binary16 conversions
//   MPSKIT_HARDWARE_BFLOAT, bfloat_to_float, float_to_bfloat     optional: bfloat's
//   simd_width, poison, lane()
//   gather(value)    what the active lanes gave: .active, .lane (the caller's), [lane] for another
//                    lane's, .butterfly<Width>(members, identity, combine) over the members of each
//                    Width lanes. All active lanes must make these calls together.
//   ballot(aye)      .ayes, .active, .lane
//   threadgroup_barrier, simdgroup_barrier
//   atomic_load, atomic_store, atomic_exchange_n, atomic_compare_exchange, atomic_fence,
//   atomic_fetch_add/sub/and/or/xor      on one word of memory
#pragma once

#if defined(MPSKIT_TARGET_CPU)
#include "target_cpu.h"
#elif defined(MPSKIT_TARGET_CUDA)
#include "target_cuda.h"
#else
#error "define MPSKIT_TARGET_CPU or MPSKIT_TARGET_CUDA"
#endif
