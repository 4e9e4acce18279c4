"""The speed of the toolkit itself: the cpu backend and its sanitizer, beside Oclgrind."""
