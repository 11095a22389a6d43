"""Amazon Managed Service for Prometheus."""
