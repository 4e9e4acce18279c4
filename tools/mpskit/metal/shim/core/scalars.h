// MSL's names for scalar types. `char` is signed and `long` has 64 bits on every target.
#pragma once

using uchar = unsigned char;
using ushort = unsigned short;
using uint = unsigned int;
using ulong = unsigned long;

using int8_t = char;
using uint8_t = unsigned char;
using int16_t = short;
using uint16_t = unsigned short;
using int32_t = int;
using uint32_t = unsigned int;
using int64_t = long;
using uint64_t = unsigned long;

using size_t = unsigned long;
using ptrdiff_t = long;
using intptr_t = long;
using uintptr_t = unsigned long;

static_assert(sizeof(short) == 2 && sizeof(int) == 4 && sizeof(long) == 8);
static_assert(static_cast<char>(-1) < 0, "MSL's char is signed: compile with -fsigned-char");

// Not by using-declarations of ::name: on the cuda backend, all of this stands in a namespace.
namespace metal {
using int8_t = int8_t;
using uint8_t = uint8_t;
using int16_t = int16_t;
using uint16_t = uint16_t;
using int32_t = int32_t;
using uint32_t = uint32_t;
using int64_t = int64_t;
using uint64_t = uint64_t;
using size_t = size_t;
using ptrdiff_t = ptrdiff_t;
using uchar = uchar;
using ushort = ushort;
using uint = uint;
using ulong = ulong;
} // namespace metal
