// vec<T, N> for N = 2, 3, 4, and its operators. A 3-vector has a 4-vector's size and alignment.
#pragma once

namespace mpskit::types {

template <class T, int N>
struct packed_vec;

// What a type counts as in an expression on vectors: its number of components, 0 when it has no
// place in one, and their type.
template <class T>
struct vector_shape {
  static constexpr int size = scalar<T> ? 1 : 0;
  using element = T;
};
template <class T, int N>
struct vector_shape<vec<T, N>> {
  static constexpr int size = N;
  using element = T;
};
template <class T, int N>
struct vector_shape<packed_vec<T, N>> : vector_shape<vec<T, N>> {};
template <class T, int N, int... I>
struct vector_shape<swizzle<T, N, I...>> : vector_shape<vec<T, int(sizeof...(I))>> {};

// vec, or what reads as one.
template <class T>
concept vector_like = (vector_shape<T>::size > 1);
template <class T>
concept vector_operand = (vector_shape<T>::size > 0);
template <class T>
using vector_of = vec<typename vector_shape<T>::element, vector_shape<T>::size>;

template <class... A>
struct first_vector : core::identity<void> {};
template <class A, class... Rest>
struct first_vector<A, Rest...>
    : core::choose_t<vector_like<A>, core::identity<vector_of<A>>, first_vector<Rest...>> {};

// Operands of one expression: vectors of one shape, and scalars to be broadcast to it.
template <class... A>
using common_vector = typename first_vector<A...>::type;
template <class... A>
concept vector_operands = (vector_like<A> || ...) &&
    ((scalar<A> || (vector_like<A> && core::same<vector_of<A>, common_vector<A...>>)) && ...);

// Scalars and vectors that together have N components, for vec's constructor.
template <int N, class... A>
concept parts_of = (sizeof...(A) >= 2) && (vector_operand<A> && ...) &&
    ((vector_shape<A>::size + ... + 0) == N);

// A scalar as a vector's component. A NaN becomes the integer 0, which C++ leaves open.
template <class T, scalar S>
constexpr T component(S value) {
  if constexpr (core::integer<T> && !core::same<T, bool> && floating<S>) {
    const float wide = value;
    return wide == wide ? static_cast<T>(wide) : T(0);
  } else {
    return static_cast<T>(value);
  }
}

// Component I of the parts laid end to end.
template <class T, int I, class A, class... Rest>
constexpr T component_of(const A& first, const Rest&... rest) {
  constexpr int size = vector_shape<A>::size;
  if constexpr (I >= size)
    return component_of<T, I - size>(rest...);
  else if constexpr (size == 1)
    return component<T>(first);
  else
    return component<T>(vector_of<A>(first)[I]);
}

// An assignment of the whole union at once; memberwise it would go through the swizzles.
template <class T, int N>
struct components {
  T at[N];
};

// clang checks the alignment of what a reference is bound to, not that of what it copies.
#if defined(MPSKIT_CHECK_COPIES)
#define MPSKIT_VEC_COPY(...) \
  [[gnu::always_inline]] constexpr vec(const vec& other) : __VA_ARGS__ {}
#else
#define MPSKIT_VEC_COPY(...) vec(const vec&) = default;
#endif

#define MPSKIT_VEC_COMMON(N)                                                                   \
  vec() = default;                                                                             \
  template <class... A>                                                                        \
    requires parts_of<N, A...>                                                                 \
  constexpr vec(A... parts) : vec(core::sequence<N>{}, parts...) {}                            \
  template <class A>                                                                           \
    requires(vector_shape<A>::size == N && !core::same<typename vector_shape<A>::element, T>)  \
  explicit constexpr vec(const A& other) : vec(core::sequence<N>{}, other) {}                  \
  constexpr vec& operator=(const vec& other) {                                                 \
    if (__builtin_is_constant_evaluated()) {                                                   \
      for (int i = 0; i < N; ++i) (*this)[i] = other[i];                                       \
    } else {                                                                                   \
      all = other.all;                                                                         \
    }                                                                                          \
    return *this;                                                                              \
  }

template <class T>
struct alignas(2 * sizeof(T)) vec<T, 2> {
  union {
    struct {
      T x, y;
    };
    struct {
      T r, g;
    };
    components<T, 2> all;
    MPSKIT_SWIZZLES(2)
  };

  MPSKIT_VEC_COMMON(2)
  MPSKIT_VEC_COPY(x(other.x), y(other.y))
  template <scalar S>
  constexpr vec(S s) : x(component<T>(s)), y(x) {}

  template <class I>
  constexpr T& operator[](I i) {
    if (__builtin_is_constant_evaluated()) return i == 0 ? x : y;
    return all.at[i];
  }
  template <class I>
  constexpr const T& operator[](I i) const {
    if (__builtin_is_constant_evaluated()) return i == 0 ? x : y;
    return all.at[i];
  }

 private:
  template <class... A>
  constexpr vec(core::sequence<2>, const A&... parts)
      : x(component_of<T, 0>(parts...)), y(component_of<T, 1>(parts...)) {}
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 3> {
  union {
    struct {
      T x, y, z;
    };
    struct {
      T r, g, b;
    };
    components<T, 3> all;
    MPSKIT_SWIZZLES(3)
  };

  MPSKIT_VEC_COMMON(3)
  MPSKIT_VEC_COPY(x(other.x), y(other.y), z(other.z))
  template <scalar S>
  constexpr vec(S s) : x(component<T>(s)), y(x), z(x) {}

  template <class I>
  constexpr T& operator[](I i) {
    if (__builtin_is_constant_evaluated()) return i == 0 ? x : i == 1 ? y : z;
    return all.at[i];
  }
  template <class I>
  constexpr const T& operator[](I i) const {
    if (__builtin_is_constant_evaluated()) return i == 0 ? x : i == 1 ? y : z;
    return all.at[i];
  }

 private:
  template <class... A>
  constexpr vec(core::sequence<3>, const A&... parts)
      : x(component_of<T, 0>(parts...)),
        y(component_of<T, 1>(parts...)),
        z(component_of<T, 2>(parts...)) {}
};

template <class T>
struct alignas(4 * sizeof(T)) vec<T, 4> {
  union {
    struct {
      T x, y, z, w;
    };
    struct {
      T r, g, b, a;
    };
    components<T, 4> all;
    MPSKIT_SWIZZLES(4)
  };

  MPSKIT_VEC_COMMON(4)
  MPSKIT_VEC_COPY(x(other.x), y(other.y), z(other.z), w(other.w))
  template <scalar S>
  constexpr vec(S s) : x(component<T>(s)), y(x), z(x), w(x) {}

  template <class I>
  constexpr T& operator[](I i) {
    if (__builtin_is_constant_evaluated()) return i == 0 ? x : i == 1 ? y : i == 2 ? z : w;
    return all.at[i];
  }
  template <class I>
  constexpr const T& operator[](I i) const {
    if (__builtin_is_constant_evaluated()) return i == 0 ? x : i == 1 ? y : i == 2 ? z : w;
    return all.at[i];
  }

 private:
  template <class... A>
  constexpr vec(core::sequence<4>, const A&... parts)
      : x(component_of<T, 0>(parts...)),
        y(component_of<T, 1>(parts...)),
        z(component_of<T, 2>(parts...)),
        w(component_of<T, 3>(parts...)) {}
};
#undef MPSKIT_VEC_COMMON
#undef MPSKIT_VEC_COPY

// The vector of f(0), f(1), ...
template <class R, int N, class F>
constexpr vec<R, N> generate(F f) {
  if constexpr (N == 2)
    return vec<R, 2>(f(0), f(1));
  else if constexpr (N == 3)
    return vec<R, 3>(f(0), f(1), f(2));
  else
    return vec<R, 4>(f(0), f(1), f(2), f(3));
}

// An operator's element type, given its operands'.
template <class T>
using same_element = T;
template <class T>
using bool_element = bool;

#define MPSKIT_BINARY(op, Result)                                     \
  template <class A, class B>                                         \
    requires vector_operands<A, B>                                    \
  constexpr auto operator op(const A& a, const B& b) {                \
    using V = common_vector<A, B>;                                    \
    using R = Result<typename vector_shape<V>::element>;              \
    const V left(a), right(b);                                        \
    return generate<R, vector_shape<V>::size>(                        \
        [&](int i) { return static_cast<R>(left[i] op right[i]); });  \
  }
MPSKIT_BINARY(+, same_element)
MPSKIT_BINARY(-, same_element)
MPSKIT_BINARY(*, same_element)
MPSKIT_BINARY(/, same_element)
MPSKIT_BINARY(%, same_element)
MPSKIT_BINARY(&, same_element)
MPSKIT_BINARY(|, same_element)
MPSKIT_BINARY(^, same_element)
MPSKIT_BINARY(==, bool_element)
MPSKIT_BINARY(!=, bool_element)
MPSKIT_BINARY(<, bool_element)
MPSKIT_BINARY(<=, bool_element)
MPSKIT_BINARY(>, bool_element)
MPSKIT_BINARY(>=, bool_element)
MPSKIT_BINARY(&&, bool_element)
MPSKIT_BINARY(||, bool_element)
#undef MPSKIT_BINARY

// A shift counts by the lowest bits of its right operand: modulo the element's width.
#define MPSKIT_SHIFT(op)                                                                       \
  template <class A, class B>                                                                  \
    requires vector_operands<A, B>                                                             \
  constexpr auto operator op(const A& a, const B& b) {                                         \
    using V = common_vector<A, B>;                                                             \
    using T = typename vector_shape<V>::element;                                               \
    constexpr T mask = T(8 * sizeof(T) - 1);                                                   \
    const V left(a), right(b);                                                                 \
    return generate<T, vector_shape<V>::size>(                                                 \
        [&](int i) { return static_cast<T>(left[i] op (right[i] & mask)); });                  \
  }                                                                                            \
  /* By a vector of another integer type: the left operand's counts. */                        \
  template <vector_like A, vector_like B>                                                      \
    requires(                                                                                  \
        vector_shape<A>::size == vector_shape<B>::size &&                                      \
        core::integer<typename vector_shape<B>::element> &&                                    \
        !core::same<typename vector_shape<A>::element, typename vector_shape<B>::element>)     \
  constexpr auto operator op(const A& a, const B& b) {                                         \
    return a op vector_of<A>(vector_of<B>(b));                                                 \
  }
MPSKIT_SHIFT(<<)
MPSKIT_SHIFT(>>)
#undef MPSKIT_SHIFT

#define MPSKIT_UNARY(op, Result)                              \
  template <vector_like A>                                    \
  constexpr auto operator op(const A& a) {                    \
    using V = vector_of<A>;                                   \
    using R = Result<typename vector_shape<V>::element>;      \
    const V value(a);                                         \
    return generate<R, vector_shape<V>::size>(                \
        [&](int i) { return static_cast<R>(op value[i]); });  \
  }
MPSKIT_UNARY(+, same_element)
MPSKIT_UNARY(-, same_element)
MPSKIT_UNARY(~, same_element)
MPSKIT_UNARY(!, bool_element)
#undef MPSKIT_UNARY

template <class T>
concept vector_object = core::same<T, vector_of<T>> ||
    core::same<T, packed_vec<typename vector_shape<T>::element, vector_shape<T>::size>>;

#define MPSKIT_COMPOUND(op)                         \
  template <vector_object A, class B>               \
    requires vector_operands<A, B>                  \
  constexpr A& operator op##=(A & a, const B& b) {  \
    return a = a op b;                              \
  }
MPSKIT_COMPOUND(+)
MPSKIT_COMPOUND(-)
MPSKIT_COMPOUND(*)
MPSKIT_COMPOUND(/)
MPSKIT_COMPOUND(%)
MPSKIT_COMPOUND(&)
MPSKIT_COMPOUND(|)
MPSKIT_COMPOUND(^)
MPSKIT_COMPOUND(<<)
MPSKIT_COMPOUND(>>)
#undef MPSKIT_COMPOUND

#define MPSKIT_STEP(step, op)              \
  template <vector_object A>               \
  constexpr A& operator step(A & a) {      \
    return a = a op 1;                     \
  }                                        \
  template <vector_object A>               \
  constexpr A operator step(A & a, int) {  \
    const A before = a;                    \
    step a;                                \
    return before;                         \
  }
MPSKIT_STEP(++, +)
MPSKIT_STEP(--, -)
#undef MPSKIT_STEP

// float2, uchar4, ...
#define MPSKIT_NAMES(T)    \
  using T##2 = vec<T, 2>;  \
  using T##3 = vec<T, 3>;  \
  using T##4 = vec<T, 4>;
MPSKIT_NAMES(bool)
MPSKIT_NAMES(char)
MPSKIT_NAMES(uchar)
MPSKIT_NAMES(short)
MPSKIT_NAMES(ushort)
MPSKIT_NAMES(int)
MPSKIT_NAMES(uint)
MPSKIT_NAMES(long)
MPSKIT_NAMES(ulong)
MPSKIT_NAMES(half)
MPSKIT_NAMES(bfloat)
MPSKIT_NAMES(float)
#undef MPSKIT_NAMES

} // namespace mpskit::types

#define MPSKIT_EXPORT(T)      \
  using mpskit::types::T##2;  \
  using mpskit::types::T##3;  \
  using mpskit::types::T##4;
#define MPSKIT_EXPORT_ALL    \
  MPSKIT_EXPORT(bool)        \
  MPSKIT_EXPORT(char)        \
  MPSKIT_EXPORT(uchar)       \
  MPSKIT_EXPORT(short)       \
  MPSKIT_EXPORT(ushort)      \
  MPSKIT_EXPORT(int)         \
  MPSKIT_EXPORT(uint)        \
  MPSKIT_EXPORT(long)        \
  MPSKIT_EXPORT(ulong)       \
  MPSKIT_EXPORT(half)        \
  MPSKIT_EXPORT(bfloat)      \
  MPSKIT_EXPORT(float)
MPSKIT_EXPORT_ALL
namespace metal {
using mpskit::types::vec;
MPSKIT_EXPORT_ALL
} // namespace metal
#undef MPSKIT_EXPORT_ALL
#undef MPSKIT_EXPORT

static_assert(sizeof(float3) == 16 && alignof(float3) == 16 && sizeof(half2) == 4);
