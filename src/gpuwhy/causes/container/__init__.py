"""Container: what the container engine and NVIDIA's hook bring into a container, and what stays outside."""
