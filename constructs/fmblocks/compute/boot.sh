# Run once by cloud-init. FMBLOCKS_… are set above this line. Every step can be repeated, and none keeps the node from
# starting: what failed is in the journal (journalctl -t fmblocks) and in /var/log/fmblocks-boot.log.
set -uo pipefail

log() {
  printf '%s %s\n' "$(date -u +%FT%TZ)" "$*" >>"${FMBLOCKS_ROOT:-}/var/log/fmblocks-boot.log"
  logger -t fmblocks -- "$*" || true
}

retry() { # retry TIMES SECONDS COMMAND…
  local times=$1 pause=$2 attempt
  shift 2
  for ((attempt = 1; attempt <= times; attempt++)); do
    "$@" && return 0
    log "attempt $attempt of $times failed: $*"
    ((attempt == times)) || sleep "$pause"
  done
  return 1
}

instance_store() { # one volume of all instance-store disks, for containers and scratch
  local root=${FMBLOCKS_ROOT:-} disks=() link disk
  local -A seen=()
  if mountpoint -q "$root/opt/dlami/nvme"; then # the Deep Learning AMI has made it already
    FMBLOCKS_LOCAL=/opt/dlami/nvme
    return 0
  fi
  for link in "$root"/dev/disk/by-id/nvme-Amazon_EC2_NVMe_Instance_Storage_*; do
    [[ -e $link && $link != *-part* ]] || continue
    disk=$(readlink -f "$link") # one disk has several names
    [[ -n ${seen[$disk]:-} ]] || disks+=("$disk")
    seen[$disk]=1
  done
  ((${#disks[@]})) || return 1
  FMBLOCKS_LOCAL=/local
  mkdir -p "$root$FMBLOCKS_LOCAL"
  mountpoint -q "$root$FMBLOCKS_LOCAL" && return 0
  local volume=${disks[0]}
  if ((${#disks[@]} > 1)); then
    volume=$root/dev/md/fmblocks
    [[ -e $volume ]] || mdadm --create "$volume" --level=0 --force --run --raid-devices=${#disks[@]} "${disks[@]}" || return 1
  fi
  # Instance store is empty after a stop, so there is nothing to keep.
  blkid "$volume" >/dev/null 2>&1 || mkfs.xfs -q -f "$volume" || return 1
  mount -o noatime "$volume" "$root$FMBLOCKS_LOCAL"
}

containers() { # images of tens of GB would fill the root volume
  local root=${FMBLOCKS_ROOT:-} settings
  command -v docker >/dev/null || return 0
  settings=$root/etc/docker/daemon.json
  mkdir -p "$root$FMBLOCKS_LOCAL/docker" "$root/etc/docker"
  [[ -s $settings ]] || echo '{}' >"$settings"
  python3 - "$settings" "$FMBLOCKS_LOCAL/docker" <<'PYTHON' || return 1
import json, os, sys
path, root = sys.argv[1:]
with open(path) as file:
    settings = json.load(file)
if settings.get("data-root") != root:
    settings["data-root"] = root
    with open(path + ".new", "w") as file:
        json.dump(settings, file, indent=1)
    os.replace(path + ".new", path)
PYTHON
  systemctl restart docker
}

lustre_over_efa() { # source: FSx for Lustre User Guide, Configuring EFA clients
  local root=${FMBLOCKS_ROOT:-} interface device devices=() chosen=()
  interface=$(ip -o -4 route show default | awk '{print $5; exit}')
  for device in "$root"/sys/class/infiniband/*; do
    [[ -e $device ]] && devices+=("${device##*/}")
  done
  if ((${#devices[@]} == 0)) || [[ -z $interface ]]; then
    log "no EFA device: Lustre is mounted over TCP"
    return 1
  fi
  # One device of every four where there are 32, else the first and the last: as AWS's own client set-up does.
  if ((${#devices[@]} >= 32)); then
    for ((at = 0; at < ${#devices[@]}; at += 4)); do chosen+=("${devices[at]}"); done
  else
    chosen=("${devices[0]}")
    ((${#devices[@]} > 1)) && chosen+=("${devices[-1]}")
  fi
  modprobe lnet && modprobe kefalnd "ipif_name=$interface" && modprobe ksocklnd && lnetctl lnet configure || return 1
  lnetctl net show --net tcp 2>/dev/null | grep -q "$interface" || lnetctl net add --net tcp --if "$interface" || return 1
  for device in "${chosen[@]}"; do
    lnetctl net show --net efa 2>/dev/null | grep -q "$device" && continue
    lnetctl net add --net efa --if "$device" --peer-credits 32 || return 1
  done
  lnetctl set discovery 1 && lnetctl udsp add --src efa --priority 0 || true
  log "Lustre talks over EFA: ${chosen[*]}"
}

mount_lustre() {
  local root=${FMBLOCKS_ROOT:-} source
  source=$FMBLOCKS_LUSTRE_DNS@tcp:/$FMBLOCKS_LUSTRE_NAME
  if ! command -v mount.lustre >/dev/null; then
    retry 5 20 dnf install -y -q lustre-client || return 1
  fi
  if [[ $FMBLOCKS_LUSTRE_EFA == true ]]; then
    lustre_over_efa || log "EFA for Lustre could not be set up: it is mounted over TCP"
  fi
  mkdir -p "$root$FMBLOCKS_LUSTRE_PATH"
  grep -qs "^$source " "$root/etc/fstab" ||
    echo "$source $FMBLOCKS_LUSTRE_PATH lustre noatime,flock,lazystatfs,_netdev,x-systemd.requires=network-online.target 0 0" \
      >>"$root/etc/fstab"
  mountpoint -q "$root$FMBLOCKS_LUSTRE_PATH" || retry 10 15 mount "$FMBLOCKS_LUSTRE_PATH"
}

launch_profile() {
  local root=${FMBLOCKS_ROOT:-} folder
  mkdir -p "$root/etc/fmblocks"
  printf '%s\n' "$FMBLOCKS_LAUNCH_PROFILE" >"$root/etc/fmblocks/launch-profile.sh"
  mountpoint -q "$root${FMBLOCKS_LUSTRE_PATH:-/nowhere}" || return 0
  # On the file system too, where jobs of other nodes read it; written beside and moved, since many nodes boot at once.
  folder=$root$FMBLOCKS_LUSTRE_PATH/fmblocks/launch-profiles
  mkdir -p "$folder" && cp "$root/etc/fmblocks/launch-profile.sh" "$folder/.$HOSTNAME" &&
    mv -f "$folder/.$HOSTNAME" "$folder/$FMBLOCKS_INSTANCE_TYPE.sh"
}

main() {
  log "booting $FMBLOCKS_INSTANCE_TYPE"
  if instance_store; then
    containers || log "containers stay on the root volume"
  fi
  if [[ -n ${FMBLOCKS_LUSTRE_DNS:-} ]]; then
    mount_lustre || log "Lustre is not mounted"
  fi
  launch_profile || log "the launch profile was not written"
  log "done"
}

main
