# NVIDIA's own diagnostics of every GPU, level 2, on every node: minutes, and nothing else may run there.
set -euo pipefail
# shellcheck disable=SC2016  # expanded on the node
srun --ntasks-per-node=1 bash -c '
  if ! command -v dcgmi >/dev/null; then
    echo "FMBLOCKS missing dcgmi on ${SLURMD_NODENAME:-$HOSTNAME}"
    exit 3
  fi
  # One line per node, so that those of several nodes do not mix.
  printf "FMBLOCKS dcgm %s %s\n" "${SLURMD_NODENAME:-$HOSTNAME}" "$(dcgmi diag -r 2 -j | tr -d "\n")"
'
