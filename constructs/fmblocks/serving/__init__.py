"""Serving models: the store of weights, endpoints on Kubernetes, and what fits into their accelerators."""
