// packed_float3 and the like: a vector's components with their own alignment only.
#pragma once

namespace mpskit::types {

#define MPSKIT_PACKED_COMMON(N)                                                              \
  packed_vec() = default;                                                                    \
  packed_vec(const packed_vec&) = default;                                                   \
  template <class A>                                                                         \
    requires core::same<vector_of<A>, vec<T, N>>                                             \
  constexpr packed_vec(const A& value) : packed_vec(core::sequence<N>{}, value) {}           \
  template <class... A>                                                                      \
    requires parts_of<N, A...>                                                               \
  constexpr packed_vec(A... parts) : packed_vec(core::sequence<N>{}, parts...) {}            \
  template <scalar S>                                                                        \
  constexpr packed_vec(S s) : packed_vec(vec<T, N>(s)) {}                                    \
  template <class A>                                                                         \
    requires(vector_shape<A>::size == N && !core::same<vector_of<A>, vec<T, N>>)             \
  explicit constexpr packed_vec(const A& other) : packed_vec(core::sequence<N>{}, other) {}  \
  constexpr packed_vec& operator=(const packed_vec& other) {                                 \
    all = other.all;                                                                         \
    return *this;                                                                            \
  }                                                                                          \
  constexpr operator vec<T, N>() const {                                                     \
    return generate<T, N>([this](int i) { return (*this)[i]; });                             \
  }                                                                                          \
  template <class I>                                                                         \
  constexpr T& operator[](I i) {                                                             \
    return all.at[i];                                                                        \
  }                                                                                          \
  template <class I>                                                                         \
  constexpr const T& operator[](I i) const {                                                 \
    return all.at[i];                                                                        \
  }                                                                                          \
                                                                                             \
 private:

template <class T>
struct packed_vec<T, 2> {
  union {
    components<T, 2> all;
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    MPSKIT_SWIZZLES(2)
  };
  MPSKIT_PACKED_COMMON(2)
  template <class... A>
  constexpr packed_vec(core::sequence<2>, const A&... parts)
      : all{component_of<T, 0>(parts...), component_of<T, 1>(parts...)} {}
};

template <class T>
struct packed_vec<T, 3> {
  union {
    components<T, 3> all;
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    MPSKIT_SWIZZLES(3)
  };
  MPSKIT_PACKED_COMMON(3)
  template <class... A>
  constexpr packed_vec(core::sequence<3>, const A&... parts)
      : all{
            component_of<T, 0>(parts...),
            component_of<T, 1>(parts...),
            component_of<T, 2>(parts...)} {}
};

template <class T>
struct packed_vec<T, 4> {
  union {
    components<T, 4> all;
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    MPSKIT_SWIZZLES(4)
  };
  MPSKIT_PACKED_COMMON(4)
  template <class... A>
  constexpr packed_vec(core::sequence<4>, const A&... parts)
      : all{
            component_of<T, 0>(parts...),
            component_of<T, 1>(parts...),
            component_of<T, 2>(parts...),
            component_of<T, 3>(parts...)} {}
};
#undef MPSKIT_PACKED_COMMON

} // namespace mpskit::types

#define MPSKIT_PACKED(T)                                  \
  using packed_##T##2 = mpskit::types::packed_vec<T, 2>;  \
  using packed_##T##3 = mpskit::types::packed_vec<T, 3>;  \
  using packed_##T##4 = mpskit::types::packed_vec<T, 4>;
#define MPSKIT_PACKED_ALL  \
  MPSKIT_PACKED(char)      \
  MPSKIT_PACKED(uchar)     \
  MPSKIT_PACKED(short)     \
  MPSKIT_PACKED(ushort)    \
  MPSKIT_PACKED(int)       \
  MPSKIT_PACKED(uint)      \
  MPSKIT_PACKED(long)      \
  MPSKIT_PACKED(ulong)     \
  MPSKIT_PACKED(half)      \
  MPSKIT_PACKED(bfloat)    \
  MPSKIT_PACKED(float)
MPSKIT_PACKED_ALL
namespace metal {
MPSKIT_PACKED_ALL
template <class T, int N>
using packed_vec = mpskit::types::packed_vec<T, N>;
} // namespace metal
#undef MPSKIT_PACKED_ALL
#undef MPSKIT_PACKED

static_assert(sizeof(packed_float3) == 12 && alignof(packed_float3) == 4);
