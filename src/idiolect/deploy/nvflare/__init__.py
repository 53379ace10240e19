"""NVFlare as the transport: kits, jobs, sessions, and the two roles."""
