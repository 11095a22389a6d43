# The NVLinks of every GPU, on every node.
set -euo pipefail
# shellcheck disable=SC2016  # expanded on the node
srun --ntasks-per-node=1 bash -c '
  if ! command -v nvidia-smi >/dev/null; then
    echo "FMBLOCKS missing nvidia-smi on ${SLURMD_NODENAME:-$HOSTNAME}"
    exit 3
  fi
  gpus=$(nvidia-smi -L | grep -c "^GPU ")
  links=$(nvidia-smi nvlink -s)
  up=$(grep -c "Link .*GB/s" <<<"$links" || true)
  down=$(grep -ci "inactive" <<<"$links" || true)
  echo "FMBLOCKS nvlink ${SLURMD_NODENAME:-$HOSTNAME} gpus=$gpus up=$up down=$down"
'
