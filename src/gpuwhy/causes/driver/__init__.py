"""Driver, device and fabric: the driver's version, its libraries, and which of its devices a process can use."""
