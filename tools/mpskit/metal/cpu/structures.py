"""The structures of abi.h, for calls into the runtime."""

from __future__ import annotations

import ctypes
from enum import IntEnum

from mpskit.metal.launching import Pointee
from mpskit.metal.sanitizer.reading import RawReport, Uint3


class ParameterKind(IntEnum):
    """abi::ParameterKind."""

    BUFFER = 0
    THREADGROUP = 1


class Parameter(ctypes.Structure):
    """abi::Parameter."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("kind", ctypes.c_uint),
        ("index", ctypes.c_uint),
        ("pointee", Pointee),
    )


class KernelRecord(ctypes.Structure):
    """abi::Kernel."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("entry", ctypes.c_void_p),
        ("parameters", ctypes.POINTER(Parameter)),
        ("parameter_count", ctypes.c_uint),
        ("max_threads", ctypes.c_uint),
    )


class Buffer(ctypes.Structure):
    """abi::Buffer."""

    _fields_ = (
        ("address", ctypes.c_void_p),
        ("bytes", ctypes.c_ulong),
        ("element_bytes", ctypes.c_uint),
        ("scalar_bytes", ctypes.c_uint),
        ("writable", ctypes.c_bool),
        ("may_hold_addresses", ctypes.c_bool),
        ("name", ctypes.c_char_p),
    )


class DispatchRecord(ctypes.Structure):
    """abi::Dispatch."""

    _fields_ = (
        ("kernel", ctypes.POINTER(KernelRecord)),
        ("buffers", ctypes.POINTER(ctypes.c_void_p)),
        ("threadgroup_lengths", ctypes.POINTER(ctypes.c_ulong)),
        ("threadgroup_length_count", ctypes.c_uint),
        ("threads", Uint3),
        ("group_size", Uint3),
        ("workers", ctypes.c_uint),
        ("timeout", ctypes.c_double),
        ("interruptible", ctypes.c_bool),
        ("sanitized", ctypes.POINTER(Buffer)),
        ("buffer_count", ctypes.c_uint),
    )


class Interpreter(ctypes.Structure):
    """abi::Interpreter."""

    _fields_ = (
        ("check_signals", ctypes.c_void_p),
        ("release_lock", ctypes.c_void_p),
        ("take_lock", ctypes.c_void_p),
    )


_MESSAGE_BYTES = 1024


class Outcome(ctypes.Structure):
    """abi::Outcome."""

    _fields_ = (
        ("failure", ctypes.c_uint),
        ("message", ctypes.c_char * _MESSAGE_BYTES),
        ("pc", ctypes.c_void_p),
        ("image", ctypes.c_void_p),
        ("reports", ctypes.POINTER(RawReport)),
        ("report_count", ctypes.c_uint),
        ("capped", ctypes.c_bool),
    )


class Failure(IntEnum):
    """abi::Failure."""

    NONE = 0
    REFUSED = 1
    FAULT = 2
    TIMEOUT = 3
    INTERRUPTED = 4
