"""What the sanitizer of the cpu backend finds: reports as objects, and as text."""

from mpskit.metal.sanitizer.reports import Absence, Access, Check, Report, SanitizerError

__all__ = ["Absence", "Access", "Check", "Report", "SanitizerError"]
