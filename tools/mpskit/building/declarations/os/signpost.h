// The part of os_signpost that the ATen/mps headers use.
#pragma once

#include <os/log.h>
#include <cstdint>

typedef uint64_t os_signpost_id_t;
typedef uint8_t os_signpost_type_t;

extern "C" os_signpost_id_t os_signpost_id_generate(os_log_t log);
extern "C" os_signpost_id_t os_signpost_id_make_with_pointer(os_log_t log, const void* ptr);
extern "C" bool os_signpost_enabled(os_log_t log);
