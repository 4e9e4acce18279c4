// Type traits. As in MSL, is_floating_point, is_integral, is_signed and is_unsigned look through a
// vector to its elements, while is_scalar tells the two apart.
#pragma once

namespace metal {

template <class T, T V>
using integral_constant = mpskit::core::constant<T, V>;
template <bool V>
using bool_constant = integral_constant<bool, V>;
using true_type = bool_constant<true>;
using false_type = bool_constant<false>;

template <bool Condition, class T = void>
struct enable_if {};
template <class T>
struct enable_if<true, T> : mpskit::core::identity<T> {};
template <bool Condition, class T = void>
using enable_if_t = typename enable_if<Condition, T>::type;

template <bool Condition, class A, class B>
struct conditional : mpskit::core::choose<Condition, A, B> {};
template <bool Condition, class A, class B>
using conditional_t = typename conditional<Condition, A, B>::type;

template <class T>
struct type_identity : mpskit::core::identity<T> {};
template <class T>
using type_identity_t = typename type_identity<T>::type;

using mpskit::core::declval;

// ---- transformations ----

template <class T>
struct remove_const : mpskit::core::identity<T> {};
template <class T>
struct remove_const<const T> : mpskit::core::identity<T> {};
template <class T>
struct remove_volatile : mpskit::core::identity<T> {};
template <class T>
struct remove_volatile<volatile T> : mpskit::core::identity<T> {};
template <class T>
struct remove_cv : mpskit::core::remove_cv<T> {};
template <class T>
struct remove_reference : mpskit::core::remove_reference<T> {};
template <class T>
struct remove_cvref : mpskit::core::identity<mpskit::core::remove_cvref_t<T>> {};
template <class T>
struct add_const : mpskit::core::identity<const T> {};
template <class T>
struct add_volatile : mpskit::core::identity<volatile T> {};
template <class T>
struct add_cv : mpskit::core::identity<const volatile T> {};
template <class T>
struct add_pointer : mpskit::core::identity<mpskit::core::remove_reference_t<T>*> {};
template <class T>
struct add_lvalue_reference : mpskit::core::identity<T&> {};
template <class T>
struct add_rvalue_reference : mpskit::core::identity<T&&> {};

template <class T>
struct remove_pointer : mpskit::core::identity<T> {};
template <class T>
struct remove_pointer<T*> : mpskit::core::identity<T> {};
template <class T>
struct remove_pointer<T* const> : mpskit::core::identity<T> {};

// `constant T` reads `const T` once its address space is erased, so the two go together.
template <class T>
struct remove_addrspace : remove_const<T> {};

template <class T>
struct remove_extent : mpskit::core::identity<T> {};
template <class T>
struct remove_extent<T[]> : mpskit::core::identity<T> {};
template <class T, size_t N>
struct remove_extent<T[N]> : mpskit::core::identity<T> {};

// The element of a vector, the type itself otherwise.
template <class T>
struct make_scalar {
  using type = typename mpskit::types::vector_shape<mpskit::core::remove_cv_t<T>>::element;
};

template <class T>
struct make_signed;
template <class T>
struct make_unsigned;
#define MPSKIT_SIGNEDNESS(Signed, Unsigned)                            \
  template <>                                                          \
  struct make_signed<Signed> : mpskit::core::identity<Signed> {};      \
  template <>                                                          \
  struct make_signed<Unsigned> : mpskit::core::identity<Signed> {};    \
  template <>                                                          \
  struct make_unsigned<Signed> : mpskit::core::identity<Unsigned> {};  \
  template <>                                                          \
  struct make_unsigned<Unsigned> : mpskit::core::identity<Unsigned> {};
MPSKIT_SIGNEDNESS(char, uchar)
MPSKIT_SIGNEDNESS(short, ushort)
MPSKIT_SIGNEDNESS(int, uint)
MPSKIT_SIGNEDNESS(long, ulong)
#undef MPSKIT_SIGNEDNESS
template <class T, int N>
struct make_signed<vec<T, N>> {
  using type = vec<typename make_signed<T>::type, N>;
};
template <class T, int N>
struct make_unsigned<vec<T, N>> {
  using type = vec<typename make_unsigned<T>::type, N>;
};

template <class T>
struct underlying_type : mpskit::core::identity<__underlying_type(T)> {};

template <class T>
struct decay {
 private:
  using U = mpskit::core::remove_reference_t<T>;
  template <class V>
  struct of : mpskit::core::remove_cv<V> {};
  template <class V>
  struct of<V[]> : mpskit::core::identity<V*> {};
  template <class V, size_t N>
  struct of<V[N]> : mpskit::core::identity<V*> {};
  template <class R, class... A>
  struct of<R(A...)> : mpskit::core::identity<R (*)(A...)> {};

 public:
  using type = typename of<U>::type;
};

template <class... T>
struct common_type {};
template <class T>
struct common_type<T> : decay<T> {};
template <class A, class B, class... Rest>
struct common_type<A, B, Rest...>
    : common_type<decltype(declval<bool>() ? declval<A>() : declval<B>()), Rest...> {};

#define MPSKIT_TRANSFORMATION(name)  \
  template <class T>                 \
  using name##_t = typename name<T>::type;
MPSKIT_TRANSFORMATION(remove_const)
MPSKIT_TRANSFORMATION(remove_volatile)
MPSKIT_TRANSFORMATION(remove_cv)
MPSKIT_TRANSFORMATION(remove_reference)
MPSKIT_TRANSFORMATION(remove_cvref)
MPSKIT_TRANSFORMATION(add_const)
MPSKIT_TRANSFORMATION(add_volatile)
MPSKIT_TRANSFORMATION(add_cv)
MPSKIT_TRANSFORMATION(add_pointer)
MPSKIT_TRANSFORMATION(add_lvalue_reference)
MPSKIT_TRANSFORMATION(add_rvalue_reference)
MPSKIT_TRANSFORMATION(remove_pointer)
MPSKIT_TRANSFORMATION(remove_addrspace)
MPSKIT_TRANSFORMATION(remove_extent)
MPSKIT_TRANSFORMATION(make_scalar)
MPSKIT_TRANSFORMATION(make_signed)
MPSKIT_TRANSFORMATION(make_unsigned)
MPSKIT_TRANSFORMATION(underlying_type)
MPSKIT_TRANSFORMATION(decay)
#undef MPSKIT_TRANSFORMATION
template <class... T>
using common_type_t = typename common_type<T...>::type;

// ---- questions: name<T>::value and name_v<T> ----

#define MPSKIT_QUESTION(name, answer)       \
  template <class T>                        \
  inline constexpr bool name##_v = answer;  \
  template <class T>                        \
  struct name : bool_constant<name##_v<T>> {};

#define MPSKIT_RELATION(name, answer)       \
  template <class A, class B>               \
  inline constexpr bool name##_v = answer;  \
  template <class A, class B>               \
  struct name : bool_constant<name##_v<A, B>> {};

namespace traits {
template <class T>
inline constexpr bool is_const = false;
template <class T>
inline constexpr bool is_const<const T> = true;
template <class T>
inline constexpr bool is_volatile = false;
template <class T>
inline constexpr bool is_volatile<volatile T> = true;
template <class T>
inline constexpr bool is_pointer = false;
template <class T>
inline constexpr bool is_pointer<T*> = true;
template <class T>
inline constexpr bool is_lvalue_reference = false;
template <class T>
inline constexpr bool is_lvalue_reference<T&> = true;
template <class T>
inline constexpr bool is_rvalue_reference = false;
template <class T>
inline constexpr bool is_rvalue_reference<T&&> = true;
template <class T>
inline constexpr bool is_array = false;
template <class T>
inline constexpr bool is_array<T[]> = true;
template <class T, size_t N>
inline constexpr bool is_array<T[N]> = true;
template <class T>
inline constexpr bool is_function = false;
template <class R, class... A>
inline constexpr bool is_function<R(A...)> = true;

template <class T>
using bare = mpskit::core::remove_cv_t<T>;
template <class T>
using element = typename make_scalar<T>::type;
} // namespace traits

MPSKIT_RELATION(is_same, (mpskit::core::same<A, B>))
MPSKIT_RELATION(is_base_of, (__is_base_of(A, B)))
MPSKIT_RELATION(is_convertible, (requires(void (&take)(B), A (&give)()) { take(give()); }))
MPSKIT_RELATION(is_assignable, (requires { declval<A>() = declval<B>(); }))

MPSKIT_QUESTION(is_const, traits::is_const<T>)
MPSKIT_QUESTION(is_volatile, traits::is_volatile<T>)
MPSKIT_QUESTION(is_pointer, traits::is_pointer<traits::bare<T>>)
MPSKIT_QUESTION(is_lvalue_reference, traits::is_lvalue_reference<T>)
MPSKIT_QUESTION(is_rvalue_reference, traits::is_rvalue_reference<T>)
MPSKIT_QUESTION(is_reference, (traits::is_lvalue_reference<T> || traits::is_rvalue_reference<T>))
MPSKIT_QUESTION(is_array, traits::is_array<T>)
MPSKIT_QUESTION(is_function, traits::is_function<T>)
MPSKIT_QUESTION(is_void, (mpskit::core::same<traits::bare<T>, void>))
MPSKIT_QUESTION(is_null_pointer, (mpskit::core::same<traits::bare<T>, decltype(nullptr)>))
MPSKIT_QUESTION(is_enum, __is_enum(T))
MPSKIT_QUESTION(is_union, __is_union(T))
MPSKIT_QUESTION(is_floating_point, mpskit::types::floating<traits::element<T>>)
MPSKIT_QUESTION(is_integral, mpskit::core::integer<traits::element<T>>)
MPSKIT_QUESTION(is_arithmetic, (is_floating_point_v<T> || is_integral_v<T>))
MPSKIT_QUESTION(
    is_signed,
    (mpskit::core::signed_integer<traits::element<T>> || is_floating_point_v<T>))
MPSKIT_QUESTION(is_unsigned, mpskit::core::unsigned_integer<traits::element<T>>)
MPSKIT_QUESTION(is_vector, mpskit::types::vector_like<traits::bare<T>>)
MPSKIT_QUESTION(
    is_scalar,
    (mpskit::types::scalar<traits::bare<T>> || is_pointer_v<T> || is_enum_v<T> ||
     is_null_pointer_v<T>))
MPSKIT_QUESTION(is_fundamental, (is_arithmetic_v<T> || is_void_v<T> || is_null_pointer_v<T>))
MPSKIT_QUESTION(is_class, (__is_class(T) && !is_arithmetic_v<T>))
MPSKIT_QUESTION(is_object, (!is_function_v<T> && !is_reference_v<T> && !is_void_v<T>))
MPSKIT_QUESTION(is_compound, !is_fundamental_v<T>)
MPSKIT_QUESTION(is_trivially_copyable, (is_vector_v<T> || __is_trivially_copyable(T)))
MPSKIT_QUESTION(is_trivial, (is_vector_v<T> || __is_trivial(T)))
MPSKIT_QUESTION(is_standard_layout, __is_standard_layout(T))
MPSKIT_QUESTION(is_default_constructible, (requires { T(); }))
MPSKIT_QUESTION(is_copy_constructible, (requires(const T& other) { T(other); }))
#undef MPSKIT_QUESTION
#undef MPSKIT_RELATION

template <class T, class... A>
inline constexpr bool is_constructible_v = __is_constructible(T, A...);
template <class T, class... A>
struct is_constructible : bool_constant<is_constructible_v<T, A...>> {};

template <class... T>
struct conjunction : bool_constant<(bool(T::value) && ...)> {};
template <class... T>
struct disjunction : bool_constant<(bool(T::value) || ...)> {};
template <class T>
struct negation : bool_constant<!bool(T::value)> {};
template <class... T>
inline constexpr bool conjunction_v = conjunction<T...>::value;
template <class... T>
inline constexpr bool disjunction_v = disjunction<T...>::value;
template <class T>
inline constexpr bool negation_v = negation<T>::value;

template <class T>
inline constexpr size_t rank_v = 0;
template <class T>
inline constexpr size_t rank_v<T[]> = rank_v<T> + 1;
template <class T, size_t N>
inline constexpr size_t rank_v<T[N]> = rank_v<T> + 1;
template <class T>
inline constexpr size_t extent_v = 0;
template <class T, size_t N>
inline constexpr size_t extent_v<T[N]> = N;

// The number of components: 1 for a scalar.
template <class T>
inline constexpr size_t vec_elements_v = mpskit::types::vector_shape<traits::bare<T>>::size;
template <class T>
struct vec_elements : integral_constant<size_t, vec_elements_v<T>> {};

template <class T>
constexpr remove_reference_t<T>&& move(T&& value) {
  return static_cast<remove_reference_t<T>&&>(value);
}

} // namespace metal
