# Every node writes a file of its own to Lustre and reads it back, all at once.
# LUSTRE: where it is mounted. GIB: size of a node's file.
set -euo pipefail
export LUSTRE=${LUSTRE:-/fsx} GIB=${GIB:-16}
# shellcheck disable=SC2016  # expanded on the node
srun --ntasks-per-node=1 bash -c '
  if ! mountpoint -q "$LUSTRE"; then
    echo "FMBLOCKS missing Lustre at $LUSTRE on ${SLURMD_NODENAME:-$HOSTNAME}"
    exit 3
  fi
  folder=$LUSTRE/fmblocks/acceptance
  file=$folder/${SLURMD_NODENAME:-$HOSTNAME}
  mkdir -p "$folder"
  # Wide stripes, so that one file uses every server.
  if command -v lfs >/dev/null; then rm -f "$file"; lfs setstripe -c -1 -S 16M "$file"; fi
  tell() { # tell WHAT COMMAND…
    local what=$1 begin end
    shift
    begin=$(date +%s.%N)
    "$@" || { echo "FMBLOCKS failed $what on ${SLURMD_NODENAME:-$HOSTNAME}"; exit 4; }
    end=$(date +%s.%N)
    echo "FMBLOCKS lustre $what ${SLURMD_NODENAME:-$HOSTNAME} bytes=$((GIB * 1024 * 1024 * 1024)) begin=$begin end=$end"
  }
  tell write dd if=/dev/zero of="$file" bs=16M count=$((GIB * 64)) oflag=direct status=none
  tell read dd if="$file" of=/dev/null bs=16M iflag=direct status=none
  rm -f "$file"
'
