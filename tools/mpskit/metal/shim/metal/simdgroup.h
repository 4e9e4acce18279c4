// simd_* functions. Only the active lanes take part: those that reached the call. A value that MSL
// leaves undefined, such as one shuffled from an inactive lane, is the poison of thread.h.
//
// Order of a floating-point reduction: a butterfly, lane i with lane i ^ 16, then 8, 4, 2, 1, an
// inactive lane standing for the identity. Prefix operations go from the first lane to the last.
#pragma once

#include "integer.h"
#include "math.h"

namespace mpskit::simdgroup {

template <class T>
concept element = core::one_of<T, char, uchar, short, ushort, int, uint, half, float>;
// bfloat can be moved between lanes, not computed with; 64-bit types can do neither.
template <class T>
concept movable = element<typename types::vector_shape<T>::element> ||
    core::same<typename types::vector_shape<T>::element, bfloat>;
template <class T>
concept reducible = element<typename types::vector_shape<T>::element>;
template <class T>
concept bitwise = reducible<T> && core::integer<typename types::vector_shape<T>::element>;

// The lanes of a simdgroup, or of one of its quads, that take part in an operation.
struct Extent {
  unsigned first;
  unsigned width;

  unsigned mask(unsigned active) const {
    return active & (width >= 32 ? ~0u : ((1u << width) - 1) << first);
  }
};

// The two kinds of group.
struct Simdgroup {
  static constexpr unsigned width = target::simd_width;
  static Extent around(unsigned) { return {0, width}; }
};
struct Quadgroup {
  static constexpr unsigned width = 4;
  static Extent around(unsigned lane) { return {lane & ~3u, width}; }
};

template <class T>
inline T poison() {
  T result;
  target::fill_bytes(&result, target::poison, sizeof result);
  return result;
}

// ---- moving values ----

// The value of the lane that `source(own)` names; both count from the group's first lane.
template <class Group, class T, class F>
inline T shuffle(const T& value, F source) {
  const auto lanes = target::gather(value);
  const Extent extent = Group::around(lanes.lane);
  const unsigned from = source(lanes.lane - extent.first);
  const bool readable = from < extent.width && (lanes.active >> (extent.first + from) & 1u);
  const T moved = lanes[readable ? extent.first + from : lanes.lane];
  return readable ? moved : poison<T>();
}

template <class T>
struct Filled {
  T data, fill;
};

// Each vector of `modulo` lanes is followed (down), or preceded (up), by the lanes' fill.
template <class Group, class T, class F>
inline T shuffle_and_fill(const T& data, const T& fill, uint modulo, F source) {
  const auto lanes = target::gather(Filled<T>{data, fill});
  const Extent extent = Group::around(lanes.lane);
  const unsigned own = lanes.lane - extent.first;
  const unsigned vector = own / modulo * modulo;
  const int from = source(int(own - vector));
  const bool filled = from < 0 || from >= int(modulo);
  const unsigned lane = extent.first + vector + unsigned(from + int(modulo)) % modulo;
  const Filled<T> pair = lanes[lane];
  if (!(lanes.active >> lane & 1u)) return poison<T>();
  return filled ? pair.fill : pair.data;
}

template <class Group, class T>
inline T broadcast_first(const T& value) {
  const auto lanes = target::gather(value);
  const unsigned mask = Group::around(lanes.lane).mask(lanes.active);
  return lanes[unsigned(target::trailing_zeros(mask))];
}

// ---- combining values ----

struct Sum {
  template <class T>
  static constexpr T identity = T(0);
  template <class T>
  static T combine(T a, T b) {
    return T(a + b);
  }
};
struct Product {
  template <class T>
  static constexpr T identity = T(1);
  template <class T>
  static T combine(T a, T b) {
    return T(a * b);
  }
};
struct Minimum {
  template <class T>
  static constexpr T identity = core::integer<T> ? metal::numeric_limits<T>::max()
                                                 : metal::numeric_limits<T>::infinity();
  template <class T>
  static T combine(T a, T b) {
    return metal::min(a, b);
  }
};
struct Maximum {
  template <class T>
  static constexpr T identity = core::integer<T> ? metal::numeric_limits<T>::lowest()
                                                 : -metal::numeric_limits<T>::infinity();
  template <class T>
  static T combine(T a, T b) {
    return metal::max(a, b);
  }
};
struct And {
  template <class T>
  static constexpr T identity = T(~T(0));
  template <class T>
  static T combine(T a, T b) {
    return T(a & b);
  }
};
struct Or {
  template <class T>
  static constexpr T identity = T(0);
  template <class T>
  static T combine(T a, T b) {
    return T(a | b);
  }
};
struct Xor {
  template <class T>
  static constexpr T identity = T(0);
  template <class T>
  static T combine(T a, T b) {
    return T(a ^ b);
  }
};

template <class Op, class T>
inline T identity_of() {
  return T(Op::template identity<typename types::vector_shape<T>::element>);
}

template <class Group, class Op, class T>
inline T reduce(const T& value) {
  const auto lanes = target::gather(value);
  return lanes.template butterfly<Group::width>(
      Group::around(lanes.lane).mask(lanes.active),
      identity_of<Op, T>(),
      [](const T& a, const T& b) { return Op::combine(a, b); });
}

// Over the active lanes below the caller's, and the caller's own when inclusive.
template <class Group, class Op, class T>
inline T scan(const T& value, bool inclusive) {
  const auto lanes = target::gather(value);
  const Extent extent = Group::around(lanes.lane);
  const unsigned below = (1u << lanes.lane) - 1 + (inclusive ? 1u << lanes.lane : 0u);
  const unsigned members = extent.mask(lanes.active) & below;
  T result = identity_of<Op, T>();
  for (unsigned i = 0; i < Group::width; ++i) {
    const T other = lanes[extent.first + i];
    if (members >> (extent.first + i) & 1u) result = Op::combine(result, other);
  }
  return result;
}

// ---- votes ----

struct Vote {
  unsigned ayes; // bit i: the group's lane i is active and voted true
  unsigned active;
  unsigned own;
};

template <class Group>
inline Vote vote(bool aye) {
  const target::Ballot ballot = target::ballot(aye);
  const Extent extent = Group::around(ballot.lane);
  return {
      extent.mask(ballot.ayes) >> extent.first,
      extent.mask(ballot.active) >> extent.first,
      ballot.lane - extent.first};
}

template <class Group>
inline bool is_first() {
  const Vote present = vote<Group>(true);
  return unsigned(target::trailing_zeros(present.active)) == present.own;
}

} // namespace mpskit::simdgroup

// The functions of one kind of group: prefix is simd or quad.
#define MPSKIT_GROUP_MOVES(prefix, Group)                                                      \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle(T data, ushort lane) {                                             \
    return mpskit::simdgroup::shuffle<Group>(data, [=](uint) { return uint(lane); });          \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_broadcast(T data, ushort lane) {                                           \
    return prefix##_shuffle(data, lane);                                                       \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_broadcast_first(T data) {                                                  \
    return mpskit::simdgroup::broadcast_first<Group>(data);                                    \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_up(T data, ushort delta) {                                         \
    return mpskit::simdgroup::shuffle<Group>(                                                  \
        data, [=](uint own) { return own < delta ? own : own - delta; });                      \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_down(T data, ushort delta) {                                       \
    return mpskit::simdgroup::shuffle<Group>(                                                  \
        data, [=](uint own) { return own + delta < Group::width ? own + delta : own; });       \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_xor(T data, ushort mask) {                                         \
    return mpskit::simdgroup::shuffle<Group>(data, [=](uint own) { return own ^ mask; });      \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_rotate_up(T data, ushort delta) {                                  \
    return mpskit::simdgroup::shuffle<Group>(                                                  \
        data, [=](uint own) { return (own - delta) % Group::width; });                         \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_rotate_down(T data, ushort delta) {                                \
    return mpskit::simdgroup::shuffle<Group>(                                                  \
        data, [=](uint own) { return (own + delta) % Group::width; });                         \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_and_fill_up(                                                       \
      T data, mpskit::core::identity_t<T> fill, ushort delta, ushort modulo = Group::width) {  \
    return mpskit::simdgroup::shuffle_and_fill<Group>(                                         \
        data, fill, modulo, [=](int own) { return own - delta; });                             \
  }                                                                                            \
  template <mpskit::simdgroup::movable T>                                                      \
  inline T prefix##_shuffle_and_fill_down(                                                     \
      T data, mpskit::core::identity_t<T> fill, ushort delta, ushort modulo = Group::width) {  \
    return mpskit::simdgroup::shuffle_and_fill<Group>(                                         \
        data, fill, modulo, [=](int own) { return own + delta; });                             \
  }

#define MPSKIT_GROUP_REDUCTION(prefix, Group, name, Op, allowed)           \
  template <mpskit::simdgroup::allowed T>                                  \
  inline T prefix##_##name(T data) {                                       \
    return mpskit::simdgroup::reduce<Group, mpskit::simdgroup::Op>(data);  \
  }
#define MPSKIT_GROUP_SCAN(prefix, Group, name, Op)                              \
  template <mpskit::simdgroup::reducible T>                                     \
  inline T prefix##_prefix_inclusive_##name(T data) {                           \
    return mpskit::simdgroup::scan<Group, mpskit::simdgroup::Op>(data, true);   \
  }                                                                             \
  template <mpskit::simdgroup::reducible T>                                     \
  inline T prefix##_prefix_exclusive_##name(T data) {                           \
    return mpskit::simdgroup::scan<Group, mpskit::simdgroup::Op>(data, false);  \
  }

// The result of a ballot. `full` has a bit for every lane of the group.
#define MPSKIT_GROUP_VOTES(prefix, Group, full)                                                 \
  class prefix##_vote {                                                                         \
   public:                                                                                      \
    using vote_t = ulong;                                                                       \
    explicit constexpr prefix##_vote(vote_t votes = 0) : votes_(votes) {}                       \
    explicit constexpr operator vote_t() const { return votes_; }                               \
    constexpr bool all() const { return votes_ == (full); }                                     \
    constexpr bool any() const { return votes_ != 0; }                                          \
                                                                                                \
   private:                                                                                     \
    vote_t votes_;                                                                              \
  };                                                                                            \
  inline prefix##_vote prefix##_ballot(bool aye) {                                              \
    return prefix##_vote(mpskit::simdgroup::vote<Group>(aye).ayes);                             \
  }                                                                                             \
  inline bool prefix##_any(bool aye) { return mpskit::simdgroup::vote<Group>(aye).ayes != 0; }  \
  inline bool prefix##_all(bool aye) {                                                          \
    const mpskit::simdgroup::Vote vote = mpskit::simdgroup::vote<Group>(aye);                   \
    return vote.ayes == vote.active;                                                            \
  }                                                                                             \
  inline bool prefix##_is_first() { return mpskit::simdgroup::is_first<Group>(); }

#define MPSKIT_GROUP_FUNCTIONS(prefix, Group, full)                   \
  MPSKIT_GROUP_MOVES(prefix, Group)                                   \
  MPSKIT_GROUP_REDUCTION(prefix, Group, sum, Sum, reducible)          \
  MPSKIT_GROUP_REDUCTION(prefix, Group, product, Product, reducible)  \
  MPSKIT_GROUP_REDUCTION(prefix, Group, min, Minimum, reducible)      \
  MPSKIT_GROUP_REDUCTION(prefix, Group, max, Maximum, reducible)      \
  MPSKIT_GROUP_REDUCTION(prefix, Group, and, And, bitwise)            \
  MPSKIT_GROUP_REDUCTION(prefix, Group, or, Or, bitwise)              \
  MPSKIT_GROUP_REDUCTION(prefix, Group, xor, Xor, bitwise)            \
  MPSKIT_GROUP_SCAN(prefix, Group, sum, Sum)                          \
  MPSKIT_GROUP_SCAN(prefix, Group, product, Product)                  \
  MPSKIT_GROUP_VOTES(prefix, Group, full)

namespace metal {

MPSKIT_GROUP_FUNCTIONS(simd, mpskit::simdgroup::Simdgroup, 0xFFFFFFFFul)

inline simd_vote simd_active_threads_mask() {
  return simd_vote(mpskit::simdgroup::vote<mpskit::simdgroup::Simdgroup>(true).active);
}
// Helper threads belong to fragment functions.
constexpr bool simd_is_helper_thread() { return false; }

} // namespace metal
