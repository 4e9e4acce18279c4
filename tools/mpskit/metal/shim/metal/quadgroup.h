// quad_* functions: a quadgroup is four adjacent lanes of a simdgroup.
#pragma once

#include "simdgroup.h"

namespace metal {

MPSKIT_GROUP_FUNCTIONS(quad, mpskit::simdgroup::Quadgroup, 0xFul)

inline quad_vote quad_active_threads_mask() {
  return quad_vote(mpskit::simdgroup::vote<mpskit::simdgroup::Quadgroup>(true).active);
}
constexpr bool quad_is_helper_thread() { return false; }

} // namespace metal
#undef MPSKIT_GROUP_FUNCTIONS
#undef MPSKIT_GROUP_VOTES
#undef MPSKIT_GROUP_SCAN
#undef MPSKIT_GROUP_REDUCTION
#undef MPSKIT_GROUP_MOVES
