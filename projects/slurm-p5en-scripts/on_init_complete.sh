#!/usr/bin/env bash
# Runs on every node once HyperPod has set up Slurm and mounted Lustre. A non-zero exit fails the node.
set -euo pipefail

# FSx mounts the linked directories with the access rights of root; researchers write checkpoints as themselves.
if mountpoint --quiet /fsx; then
    mkdir --parents /fsx/scratch
    chmod 1777 /fsx/scratch
fi
