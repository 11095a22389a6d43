#!/bin/bash
# As a prolog it writes down which job has which GPU, as an epilog it takes that away again: a file for each GPU, named
# after its index, with a job id on each line, as dcgm-exporter reads them (DCGM_HPC_JOB_MAPPING_DIR). Slurm gives no
# PATH, holds a job whose prolog fails and drains a node whose epilog fails: this never does.
PATH=/usr/sbin:/usr/bin:/sbin:/bin
folder=${FMBLOCKS_GPU_JOBS:-/run/slurm/dcgm-job-mapping}

gpus() { # 0,2-4 → 0 2 3 4
  local part
  for part in ${1//,/ }; do
    if [[ $part =~ ^[0-9]+-[0-9]+$ ]]; then
      seq "${part%-*}" "${part#*-}"
    elif [[ $part =~ ^[0-9]+$ ]]; then
      echo "$part"
    fi
  done
}

[[ -n ${SLURM_JOB_ID:-} && -n ${SLURM_JOB_GPUS:-} ]] || exit 0
mkdir -p "$folder" || exit 0
exec 9>"$folder/.lock" && flock -w 10 9
for gpu in $(gpus "$SLURM_JOB_GPUS"); do
  file=$folder/$gpu
  left=$(grep -vxs "$SLURM_JOB_ID" "$file")
  case ${0##*/} in
    *prolog*) printf '%s\n' ${left:+"$left"} "$SLURM_JOB_ID" >"$file" ;;
    *) if [[ -n $left ]]; then printf '%s\n' "$left" >"$file"; else rm -f "$file"; fi ;;
  esac
done
exit 0
