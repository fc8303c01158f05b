"""Model clients: one provider-neutral request in, one neutral stream out. See `base`."""
