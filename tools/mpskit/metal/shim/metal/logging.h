// os_log. Messages go nowhere, as they do on a Mac until the host attaches a log to the command buffer.
#pragma once

namespace metal {

enum os_log_type {
  os_log_type_default = 0,
  os_log_type_info = 1,
  os_log_type_debug = 2,
  os_log_type_error = 16,
  os_log_type_fault = 17
};

struct os_log {
  constexpr os_log(const char*, const char*) {}

  template <class... T>
  void log(const char*, T...) const {}
  template <class... T>
  void log_info(const char*, T...) const {}
  template <class... T>
  void log_debug(const char*, T...) const {}
  template <class... T>
  void log_error(const char*, T...) const {}
  template <class... T>
  void log_fault(const char*, T...) const {}
  template <class... T>
  void log_with_type(os_log_type, const char*, T...) const {}
};

inline constexpr os_log os_log_default("", "");

} // namespace metal
