# All-reduce over every GPU of the job, with NCCL's own words about the network it took.
# ALL_REDUCE: path of nccl-tests' all_reduce_perf, built with MPI. MPI: how srun starts ranks (srun --mpi=list).
set -euo pipefail
all_reduce=${ALL_REDUCE:-$(find /usr/local/cuda*/efa /opt/nccl-tests -name all_reduce_perf 2>/dev/null | head -n 1 || true)}
if [[ -z $all_reduce ]]; then
  echo "FMBLOCKS missing all_reduce_perf: set ALL_REDUCE to its path"
  exit 3
fi
if [[ -r /etc/fmblocks/launch-profile.sh ]]; then
  # shellcheck source=/dev/null
  . /etc/fmblocks/launch-profile.sh
fi
export NCCL_DEBUG=INFO NCCL_DEBUG_SUBSYS=INIT,NET
srun --mpi="${MPI:-pmix}" "$all_reduce" -b 1M -e "${LARGEST:-16G}" -f 2 -g 1 -c 1
