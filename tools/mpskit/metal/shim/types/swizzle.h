// A swizzle that stands in a vector's union: reads as a vector of the components I... of the
// vector's N, and is assignable when no component repeats.
#pragma once

namespace mpskit::types {

template <class T, int N>
struct vec;

// Room for the components ahead of one.
template <class T, int Count>
struct skip {
  T components[Count];
};
template <class T>
struct skip<T, 0> {};

// The vector's components, and the swizzle's own by name, as `auto p = v.zw; p.x` needs.
template <class T, int N, int... I>
struct swizzle_storage;
template <class T, int N, int X, int Y>
struct swizzle_storage<T, N, X, Y> {
  union {
    T components[N];
    struct {
      [[no_unique_address]] skip<T, X> before_x;
      T x;
    };
    struct {
      [[no_unique_address]] skip<T, Y> before_y;
      T y;
    };
  };
};
template <class T, int N, int X, int Y, int Z>
struct swizzle_storage<T, N, X, Y, Z> {
  union {
    T components[N];
    struct {
      [[no_unique_address]] skip<T, X> before_x;
      T x;
    };
    struct {
      [[no_unique_address]] skip<T, Y> before_y;
      T y;
    };
    struct {
      [[no_unique_address]] skip<T, Z> before_z;
      T z;
    };
  };
};
template <class T, int N, int X, int Y, int Z, int W>
struct swizzle_storage<T, N, X, Y, Z, W> {
  union {
    T components[N];
    struct {
      [[no_unique_address]] skip<T, X> before_x;
      T x;
    };
    struct {
      [[no_unique_address]] skip<T, Y> before_y;
      T y;
    };
    struct {
      [[no_unique_address]] skip<T, Z> before_z;
      T z;
    };
    struct {
      [[no_unique_address]] skip<T, W> before_w;
      T w;
    };
  };
};

template <class T, int N, int... I>
struct swizzle : swizzle_storage<T, N, I...> {
  static constexpr int size = sizeof...(I);
  using value_type = vec<T, size>;
  using swizzle_storage<T, N, I...>::components;

  swizzle() = default;
  swizzle(const swizzle&) = default;

  constexpr operator value_type() const { return value_type(components[I]...); }

  // By way of a vector, so that `v.xy = v.yx` reads everything before it writes.
  constexpr swizzle& operator=(const value_type& value) {
    static_assert(distinct(), "a swizzle with a repeated component cannot be assigned to");
    const value_type source = value;
    int next = 0;
    ((components[I] = source[next++]), ...);
    return *this;
  }
  constexpr swizzle& operator=(const swizzle& other) { return *this = value_type(other); }

  constexpr T operator[](int i) const { return value_type(*this)[i]; }
  constexpr T& operator[](int i) {
    constexpr int index[] = {I...};
    return components[index[i]];
  }

#define MPSKIT_OPERATOR(op)                                 \
  template <class U>                                        \
  constexpr swizzle& operator op##=(const U& other) {       \
    return *this = value_type(value_type(*this) op other);  \
  }
  MPSKIT_OPERATOR(+)
  MPSKIT_OPERATOR(-)
  MPSKIT_OPERATOR(*)
  MPSKIT_OPERATOR(/)
  MPSKIT_OPERATOR(%)
  MPSKIT_OPERATOR(&)
  MPSKIT_OPERATOR(|)
  MPSKIT_OPERATOR(^)
  MPSKIT_OPERATOR(<<)
  MPSKIT_OPERATOR(>>)
#undef MPSKIT_OPERATOR

 private:
  static constexpr bool distinct() {
    unsigned seen = 0;
    bool repeated = false;
    ((repeated = repeated || (seen >> I & 1u), seen |= 1u << I), ...);
    return !repeated;
  }
};

} // namespace mpskit::types

#ifndef MPSKIT_SWIZZLES_VEC2
#define MPSKIT_SWIZZLES_VEC2(S2, S3, S4)
#endif
#ifndef MPSKIT_SWIZZLES_VEC3
#define MPSKIT_SWIZZLES_VEC3(S2, S3, S4)
#endif
#ifndef MPSKIT_SWIZZLES_VEC4
#define MPSKIT_SWIZZLES_VEC4(S2, S3, S4)
#endif

// Declares the members of the union; `size` is the number of the vector's components.
#define MPSKIT_SWIZZLES(size)  \
  MPSKIT_SWIZZLES_VEC##size(   \
      MPSKIT_SWIZZLE2_OF_##size, MPSKIT_SWIZZLE3_OF_##size, MPSKIT_SWIZZLE4_OF_##size)
#define MPSKIT_SWIZZLE2_OF_2(name, i, j) swizzle<T, 2, i, j> name;
#define MPSKIT_SWIZZLE3_OF_2(name, i, j, k) swizzle<T, 2, i, j, k> name;
#define MPSKIT_SWIZZLE4_OF_2(name, i, j, k, l) swizzle<T, 2, i, j, k, l> name;
#define MPSKIT_SWIZZLE2_OF_3(name, i, j) swizzle<T, 3, i, j> name;
#define MPSKIT_SWIZZLE3_OF_3(name, i, j, k) swizzle<T, 3, i, j, k> name;
#define MPSKIT_SWIZZLE4_OF_3(name, i, j, k, l) swizzle<T, 3, i, j, k, l> name;
#define MPSKIT_SWIZZLE2_OF_4(name, i, j) swizzle<T, 4, i, j> name;
#define MPSKIT_SWIZZLE3_OF_4(name, i, j, k) swizzle<T, 4, i, j, k> name;
#define MPSKIT_SWIZZLE4_OF_4(name, i, j, k, l) swizzle<T, 4, i, j, k, l> name;
