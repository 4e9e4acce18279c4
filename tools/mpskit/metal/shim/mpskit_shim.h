// A portable, header-only metal_stdlib: what an erased .metal translation unit is compiled against.
//
//   target.h    the machine underneath: chosen by MPSKIT_TARGET_*, everything else is neutral
//   core/       names of the scalar types, type traits
//   types/      half, bfloat, vec, swizzles, packed vectors, matrices: MSL's built-in types
//   metal/      the library proper, namespace metal
//
// MSL's built-in types live in mpskit::types together with their operators and nothing else, so
// that an unqualified call on them finds, as in MSL, only what the caller's own scope names.
// The functions of namespace metal are overload sets of plain functions on scalars, as Apple's
// are; user templates of the same name lose to them, and mixed arguments are resolved, or refused
// as ambiguous, in the same way.
//
// The includer may define MPSKIT_SWIZZLES_VEC2/3/4(S2, S3, S4), lists of the swizzles that the
// program names: S2(name, i, j), S3(name, i, j, k), S4(name, i, j, k, l).
#pragma once

#include "target.h"

#include "core/scalars.h"
#include "core/traits.h"

#include "types/small_float.h"
#include "types/swizzle.h"
#include "types/vec.h"
#include "types/packed.h"
#include "types/matrix.h"
#include "types/conditional.h"
#include "types/extensions.h"

#include "metal/type_traits.h"
#include "metal/as_type.h"
#include "metal/limits.h"
#include "metal/constants.h"
#include "metal/array.h"
#include "metal/uniform.h"
#include "metal/relational.h"
#include "metal/integer.h"
#include "metal/math.h"
#include "metal/geometric.h"
#include "metal/matrix.h"
#include "metal/pack.h"
#include "metal/synchronization.h"
#include "metal/atomic.h"
#include "metal/simdgroup.h"
#include "metal/quadgroup.h"
#include "metal/simdgroup_matrix.h"
#include "metal/logging.h"
#include "metal/internals.h"

#define METAL_FUNC inline
#undef assert
#define assert(condition) ((void)0)
