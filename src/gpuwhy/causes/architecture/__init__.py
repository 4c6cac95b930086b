"""Binary and architecture limits: which GPU code exists, was built, or can be built."""
