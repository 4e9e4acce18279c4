// The few traits that the types need before namespace metal exists.
#pragma once

namespace mpskit::core {

template <class T, T V>
struct constant {
  static constexpr T value = V;
  using value_type = T;
  using type = constant;
  constexpr operator T() const { return V; }
  constexpr T operator()() const { return V; }
};

template <class T>
struct identity {
  using type = T;
};

// A parameter of this type takes no part in template argument deduction.
template <class T>
using identity_t = typename identity<T>::type;

template <bool Condition, class A, class B>
struct choose : identity<A> {};
template <class A, class B>
struct choose<false, A, B> : identity<B> {};
template <bool Condition, class A, class B>
using choose_t = typename choose<Condition, A, B>::type;

template <class A, class B>
inline constexpr bool same = false;
template <class A>
inline constexpr bool same<A, A> = true;

template <class T, class... Candidates>
inline constexpr bool one_of = (same<T, Candidates> || ...);

// Holds for cv-unqualified types only.
template <class T>
concept signed_integer = one_of<T, char, signed char, short, int, long, long long>;
template <class T>
concept unsigned_integer =
    one_of<T, bool, unsigned char, unsigned short, unsigned, unsigned long, unsigned long long>;
template <class T>
concept integer = signed_integer<T> || unsigned_integer<T>;

template <class T>
struct remove_cv : identity<T> {};
template <class T>
struct remove_cv<const T> : identity<T> {};
template <class T>
struct remove_cv<volatile T> : identity<T> {};
template <class T>
struct remove_cv<const volatile T> : identity<T> {};
template <class T>
using remove_cv_t = typename remove_cv<T>::type;

template <class T>
struct remove_reference : identity<T> {};
template <class T>
struct remove_reference<T&> : identity<T> {};
template <class T>
struct remove_reference<T&&> : identity<T> {};
template <class T>
using remove_reference_t = typename remove_reference<T>::type;
template <class T>
using remove_cvref_t = remove_cv_t<remove_reference_t<T>>;

template <class T>
inline constexpr bool is_lvalue_reference = false;
template <class T>
inline constexpr bool is_lvalue_reference<T&> = true;

template <class T>
T&& declval() noexcept;

// Tells constructors apart.
template <int N>
struct sequence {};

} // namespace mpskit::core
