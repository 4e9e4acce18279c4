// The part of os_log that the ATen/mps headers use.
#pragma once

#include <os/object.h>

OS_OBJECT_DECL(os_log);

extern "C" os_log_t os_log_create(const char* subsystem, const char* category);
