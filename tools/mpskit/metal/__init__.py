"""Metal Shading Language on any machine."""
