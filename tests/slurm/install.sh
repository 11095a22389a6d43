#!/bin/bash
# Slurm and munge for the tests, where they are missing and may be installed: in CI, from the distribution's packages.
# No daemon of theirs is left running: the tests start their own, in a folder of their own.
set -euo pipefail
if command -v slurmctld >/dev/null && command -v slurmd >/dev/null && command -v munged >/dev/null; then
  exit 0
fi
if [[ ${CI:-} != true ]] || [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "no Slurm here: its tests are skipped (packages slurm-wlm and munge; CI installs them)"
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends slurm-wlm munge </dev/null >/dev/null
