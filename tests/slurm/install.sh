#!/bin/bash
# Slurm, munge and a database for the tests, where they are missing and may be installed: in CI, from the distribution's packages.
# No daemon of theirs is left running: the tests start their own, in a folder of their own.
set -euo pipefail
here() { # whether every command is there
  local command
  for command in "$@"; do command -v "$command" >/dev/null || return 1; done
}
if here slurmctld slurmd munged slurmdbd mariadbd; then
  exit 0
fi
if [[ ${CI:-} != true ]] || [[ $(id -u) != 0 ]] || ! command -v apt-get >/dev/null; then
  echo "no Slurm here: its tests are skipped (packages slurm-wlm, munge, slurmdbd, mariadb-server-core; CI installs them)"
  exit 0
fi
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
apt-get install -y -qq --no-install-recommends slurm-wlm munge \
  slurmdbd slurm-wlm-mysql-plugin mariadb-server-core mariadb-client-core </dev/null >/dev/null
