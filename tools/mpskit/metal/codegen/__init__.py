"""What the backends that compile Metal themselves share: from source text to a C++ program."""
