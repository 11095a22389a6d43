"""Clusters: SageMaker HyperPod with Slurm."""
