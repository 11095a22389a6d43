#!/usr/bin/env bash
# What a node of HyperPod with Slurm gets beyond its image: users, accounts, room for containers, the map of GPUs to
# jobs, launch profiles, and the project's own script. Every step can be repeated. Without users or the project's own
# script a node does not join; anything else that fails is told and does not keep it from working.
# What is printed goes to CloudWatch, /aws/sagemaker/Clusters/<name>/<id>, stream LifecycleConfig/<group>/<instance>.
set -uo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
role=$1
root=${FMBLOCKS_ROOT:-}
slurm=$root/opt/slurm
export FMBLOCKS_ROOT=$root FMBLOCKS_LOCAL=
# shellcheck source=/dev/null
source "$here/settings.sh"
# shellcheck source=/dev/null
source "$here/parts.sh"

log() { # not on standard output: what functions answer is read from there
  printf '%s fmblocks %s\n' "$(date -u +%FT%TZ)" "$*" | tee -a "$root/var/log/fmblocks-lifecycle.log" >&2
}

mounted() { # HyperPod mounts file systems while scripts run already
  retry 24 5 mountpoint -q "$root$1"
}

home_of_homes() { # where home directories are, and whether all nodes see them
  if [[ -n ${FMBLOCKS_HOME:-} ]]; then
    mounted "$FMBLOCKS_HOME" && echo "$FMBLOCKS_HOME"
  elif [[ -n ${FMBLOCKS_LUSTRE:-} ]]; then
    mounted "$FMBLOCKS_LUSTRE" && echo "$FMBLOCKS_LUSTRE/home"
  else
    echo /home
  fi
}

add_users() {
  local name uid account homes failed=0
  [[ -s $here/users ]] || return 0
  homes=$(home_of_homes) || {
    log "the file system of home directories is not mounted"
    return 1
  }
  mkdir -p "$root$homes"
  # The last field is read, and used by the accounts.
  # shellcheck disable=SC2034
  while IFS=$'\t' read -r name uid account; do
    add_user "$name" "$uid" "$homes/$name" || failed=1
  done <"$here/users"
  return "$failed"
}

add_user() { # the same number on every node, for ever: files belong to numbers
  local name=$1 uid=$2 home=$3 other there
  other=$(getent passwd "$uid" | cut -d: -f1)
  there=$(id -u "$name" 2>/dev/null) || there=
  if [[ -n $there && $there != "$uid" ]]; then
    log "$name has the number $there here, not $uid: the files of one would belong to another"
    return 1
  fi
  if [[ -n $other && $other != "$name" ]]; then
    log "the number $uid of $name is that of $other here"
    return 1
  fi
  if [[ -z $there ]]; then
    there=$(getent group "$name" | cut -d: -f3)
    if [[ -n $there && $there != "$uid" ]]; then
      log "$name is a group of the image, with the number $there: give the user another name"
      return 1
    fi
    [[ -n $there ]] || retry 3 5 groupadd --gid "$uid" "$name" || return 1
    retry 3 5 useradd --uid "$uid" --gid "$uid" --home-dir "$home" --no-create-home --shell /bin/bash "$name" || return 1
  fi
  # Of all nodes that see the directory one makes it; one that went in the middle leaves it to the next.
  mkdir -m 0750 "$root$home" 2>/dev/null || true
  if [[ $(stat -c %u "$root$home") != "$uid" ]]; then
    cp -rn "$root/etc/skel/." "$root$home" 2>/dev/null || true
    chown -R "$uid:$uid" "$root$home" || return 1
  fi
  # One node alone makes the key that opens the others: two would overwrite each other's.
  if [[ $role == controller && ! -e $root$home/.ssh/id_ed25519 ]]; then
    add_key "$name" "$uid" "$root$home/.ssh" || log "$name has no key for the other nodes"
  fi
}

add_key() {
  local name=$1 uid=$2 folder=$3
  mkdir -p "$folder" && chmod 0700 "$folder" || return 1
  ssh-keygen -q -t ed25519 -N '' -C "$name" -f "$folder/id_ed25519" || return 1
  cat "$folder/id_ed25519.pub" >>"$folder/authorized_keys" || return 1
  chmod 0600 "$folder/authorized_keys" && chown -R "$uid:$uid" "$folder"
}

open_directories() { # FSx gives what it links to root; people write checkpoints as themselves
  local path
  [[ -s $here/open ]] || return 0
  mounted "$FMBLOCKS_LUSTRE" || return 1
  while IFS= read -r path; do
    # Like /tmp: nobody takes away what is somebody else's.
    mkdir -p "$root$FMBLOCKS_LUSTRE$path" && chmod 1777 "$root$FMBLOCKS_LUSTRE$path" || return 1
  done <"$here/open"
}

cluster_is_known() { # before the controller has registered the daemon answers, with nothing
  [[ -n $("$slurm/bin/sacctmgr" -nP show cluster format=cluster) ]]
}

accounts() { # who works for which team, in Slurm's database; the daemon may come up after this script began
  local name weight uid account old failed=0
  local sacctmgr=$slurm/bin/sacctmgr
  [[ -s $here/accounts || -s $here/users ]] || return 0
  retry 30 10 cluster_is_known || return 1
  while IFS=$'\t' read -r name weight; do
    if [[ -z $("$sacctmgr" -nP show account "$name" format=account) ]]; then
      "$sacctmgr" -i add account "$name" Description="$name" Organization="$name" ${weight:+Fairshare="$weight"} || failed=1
    elif [[ -n $weight ]]; then
      # It answers 1 where nothing changes.
      "$sacctmgr" -i modify account where name="$name" set Fairshare="$weight" || true
    fi
  done <"$here/accounts"
  while IFS=$'\t' read -r name uid account; do
    [[ -n $account ]] || continue
    if [[ -z $("$sacctmgr" -nP show association where user="$name" account="$account" format=user) ]]; then
      "$sacctmgr" -i add user "$name" Account="$account" DefaultAccount="$account" || failed=1
      "$sacctmgr" -i modify user where name="$name" set DefaultAccount="$account" || true
    fi
    # Somebody who went to another team works for that one alone; accounts that others made stay.
    for old in $("$sacctmgr" -nP show association where user="$name" format=account); do
      if [[ $old != "$account" ]] && cut -f1 "$here/accounts" | grep -qx "$old"; then
        "$sacctmgr" -i delete user where name="$name" account="$old" || failed=1
      fi
    done
  done <"$here/users"
  return "$failed"
}

room_for_containers() { # images of tens of GB fill the root volume
  command -v docker >/dev/null || return 0
  if grep -qs '"data-root"' "$root/etc/docker/daemon.json"; then
    log "docker has a place for its data already"
    return 0
  fi
  if [[ -n $(docker ps -q 2>/dev/null) ]]; then
    log "containers run: docker's data stays where it is"
    return 0
  fi
  if systemctl cat dlami-nvme.service >/dev/null 2>&1; then # the image makes the volume while it boots
    retry 24 5 systemctl is-active -q dlami-nvme.service || true
  fi
  for FMBLOCKS_LOCAL in /opt/dlami/nvme /opt/sagemaker; do
    if mountpoint -q "$root$FMBLOCKS_LOCAL"; then
      containers && stays_after_reboot
      return
    fi
  done
  log "neither NVMe nor a second volume: containers stay on the root volume"
}

stays_after_reboot() { # scripts do not run then
  local line="$FMBLOCKS_LOCAL/containerd /var/lib/containerd none bind,nofail,x-systemd.requires-mounts-for=$FMBLOCKS_LOCAL 0 0"
  grep -qxF "$line" "$root/etc/fstab" || echo "$line" >>"$root/etc/fstab"
  mkdir -p "$root/etc/systemd/system/docker.service.d" || return 1
  printf '[Unit]\nRequiresMountsFor=%s\n' "$FMBLOCKS_LOCAL" >"$root/etc/systemd/system/docker.service.d/fmblocks.conf"
}

gpu_jobs() { # dcgm-exporter reads which job has which GPU; newer images bring this themselves
  local when
  if compgen -G "$slurm/etc/prolog.d/*dcgm*" >/dev/null; then
    log "the image maps GPUs to jobs"
    return 0
  fi
  for when in prolog epilog; do
    mkdir -p "$slurm/etc/$when.d" &&
      cp "$here/gpu-jobs.sh" "$slurm/etc/$when.d/700_fmblocks_gpu_jobs_$when.sh" &&
      chmod 0755 "$slurm/etc/$when.d/700_fmblocks_gpu_jobs_$when.sh" || return 1
  done
}

launch_profiles() { # the environment of jobs
  local token type
  [[ -d $here/profiles ]] || return 0
  mkdir -p "$root/etc/fmblocks" && cp "$here"/profiles/*.sh "$root/etc/fmblocks/" || return 1
  [[ $role == compute ]] || return 0
  token=$(retry 5 2 curl -sf -X PUT -H 'X-aws-ec2-metadata-token-ttl-seconds: 60' http://169.254.169.254/latest/api/token) &&
    type=$(retry 5 2 curl -sf -H "X-aws-ec2-metadata-token: $token" http://169.254.169.254/latest/meta-data/instance-type) ||
    return 1
  [[ -e $root/etc/fmblocks/launch-profile-$type.sh ]] || return 0
  ln -sfn "launch-profile-$type.sh" "$root/etc/fmblocks/launch-profile.sh"
}

own_script() {
  [[ -n ${FMBLOCKS_OWN:-} ]] || return 0
  # As HyperPod would start it; the bucket knows no permissions of files.
  (cd "$here/own" && chmod +x "$FMBLOCKS_OWN" && "./$FMBLOCKS_OWN")
}

failed=0
try() { # try NAME FUNCTION: what is told, and does not keep the node from working
  log "$1"
  "$2" || log "failed: $1"
}
must() { # must NAME FUNCTION
  log "$1"
  "$2" && return 0
  log "failed: $1"
  failed=1
}

must "users" add_users
if [[ $role == controller ]]; then
  try "directories for everybody" open_directories
  try "accounts" accounts
fi
if [[ $role == compute ]]; then
  try "room for containers" room_for_containers
  try "map of GPUs to jobs" gpu_jobs
fi
try "launch profiles" launch_profiles
must "the project's own script" own_script
if ((failed)); then
  # The node goes with its log: what is not sent by then is lost.
  sync
  sleep 60
  exit 1
fi
log "done"
