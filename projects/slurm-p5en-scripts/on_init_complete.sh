#!/usr/bin/env bash
# Runs on every node once HyperPod has set up Slurm and mounted Lustre. A non-zero exit fails the node.
set -euo pipefail

# Data sets are read by everybody and written by whoever fetches them for all, as root.
if mountpoint --quiet /fsx; then
    mkdir --parents --mode 0755 /fsx/datasets
fi
