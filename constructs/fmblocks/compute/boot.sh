# Run by cloud-init at the first start and by a unit of systemd at every further one. FMBLOCKS_… are set above this
# line. Every step can be repeated, and none keeps the node from starting: what failed is in the journal (journalctl
# -t fmblocks) and in /var/log/fmblocks-boot.log.
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

every_start() { # cloud-init runs user data once; LNet, /local and bind mounts are gone after a reboot
  local root=${FMBLOCKS_ROOT:-} own
  own=$root/usr/local/sbin/fmblocks-boot
  [[ $0 != "$own" ]] || return 0
  mkdir -p "$root/usr/local/sbin" "$root/etc/systemd/system"
  cp "$0" "$own.new" && chmod 0755 "$own.new" && mv -f "$own.new" "$own" || return 1
  cat >"$root/etc/systemd/system/fmblocks-boot.service" <<'UNIT' || return 1
[Unit]
Description=Instance store, containers and Lustre of this node
Wants=network-online.target
After=network-online.target dlami-nvme.service
Before=containerd.service docker.service slurmd.service

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/fmblocks-boot

[Install]
WantedBy=multi-user.target
UNIT
  systemctl daemon-reload && systemctl enable fmblocks-boot.service
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
    [[ -e $volume ]] || mdadm --create "$volume" --level=0 --force --run --raid-devices=${#disks[@]} "${disks[@]}" || return 2
  fi
  # Instance store is empty after a stop, so there is nothing to keep.
  blkid "$volume" >/dev/null 2>&1 || mkfs.xfs -q -f "$volume" || return 2
  mount -o noatime "$volume" "$root$FMBLOCKS_LOCAL" || return 2
}

containers() { # images of tens of GB would fill the root volume
  local root=${FMBLOCKS_ROOT:-} settings service running=()
  command -v docker >/dev/null || return 0
  settings=$root/etc/docker/daemon.json
  # At a later start both wait for this script: they do not run, and starting them here would wait for itself.
  for service in docker containerd; do
    systemctl is-active -q "$service" && running+=("$service")
  done
  ((${#running[@]} == 0)) || systemctl stop docker.socket "${running[@]}"
  mkdir -p "$root$FMBLOCKS_LOCAL/docker" "$root$FMBLOCKS_LOCAL/containerd" "$root/var/lib/containerd" "$root/etc/docker"
  # Newer engines keep images with containerd, whatever docker's data-root says.
  mountpoint -q "$root/var/lib/containerd" ||
    mount --bind "$root$FMBLOCKS_LOCAL/containerd" "$root/var/lib/containerd" || log "containerd stays on the root volume"
  [[ -s $settings ]] || echo '{}' >"$settings"
  python3 - "$settings" "$FMBLOCKS_LOCAL/docker" <<'PYTHON' || log "docker stays on the root volume"
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
  ((${#running[@]} == 0)) || systemctl start containerd docker
}

lustre_over_efa() { # source: FSx for Lustre User Guide, Configuring EFA clients
  local root=${FMBLOCKS_ROOT:-} interface device devices=() chosen=()
  interface=$(ip -o -4 route show default | awk '{print $5; exit}')
  for device in "$root"/sys/class/infiniband/*; do # beside EFA there may be NVIDIA's own devices, which are not for it
    [[ $(readlink -f "$device/device/driver") == */efa ]] && devices+=("${device##*/}")
  done
  if ((${#devices[@]} == 0)) || [[ -z $interface ]]; then
    log "no EFA device: Lustre is mounted over TCP"
    return 1
  fi
  # Eight where there are as many, spread over the buses, else the first and the last: as AWS's own client set-up does.
  if ((${#devices[@]} >= 8)); then
    for ((at = 0; at < 8; at++)); do chosen+=("${devices[at * ${#devices[@]} / 8]}"); done
  else
    chosen=("${devices[0]}")
    ((${#devices[@]} > 1)) && chosen+=("${devices[-1]}")
  fi
  modprobe lnet && modprobe kefalnd "ipif_name=$interface" && modprobe ksocklnd && lnetctl lnet configure || return 1
  lnetctl net show --net tcp 2>/dev/null | grep -q "$interface" || lnetctl net add --net tcp --if "$interface" || return 1
  for device in "${chosen[@]}"; do
    lnetctl net show --net efa 2>/dev/null | grep -q "$device" && continue
    lnetctl net add --net efa --if "$device" --peer-credits 32 || log "Lustre does without the EFA device $device"
  done
  lnetctl net show --net efa 2>/dev/null | grep -q efa || return 1
  lnetctl set discovery 1 && lnetctl udsp add --src efa --priority 0 || true
  log "Lustre talks over EFA: ${chosen[*]}"
}

lustre_client() { # source: FSx for Lustre User Guide, Installing the Lustre client
  local root=${FMBLOCKS_ROOT:-} key=/usr/share/keyrings/fsx-ubuntu-public-key.asc from release
  if command -v dnf >/dev/null; then
    retry 5 20 dnf install -y -q lustre-client
    return
  fi
  release=$(awk -F= '$1 == "VERSION_CODENAME" {print $2}' "$root/etc/os-release")
  from=https://fsx-lustre-client-repo
  mkdir -p "$root/usr/share/keyrings" "$root/etc/apt/sources.list.d"
  retry 5 20 curl -fsS -o "$root$key" "$from-public-keys.s3.amazonaws.com/fsx-ubuntu-public-key.asc" || return 1
  echo "deb [signed-by=$key] $from.s3.amazonaws.com/ubuntu $release main" \
    >"$root/etc/apt/sources.list.d/fsxlustreclientrepo.list"
  apt_install "lustre-client-modules-$(uname -r)"
}

apt_install() { # apt_install PACKAGE
  command -v apt-get >/dev/null || return 1
  retry 5 20 apt-get update -q || return 1
  DEBIAN_FRONTEND=noninteractive retry 5 20 apt-get install -y -q "$1"
}

mount_lustre() {
  local root=${FMBLOCKS_ROOT:-} source
  source=$FMBLOCKS_LUSTRE_DNS@tcp:/$FMBLOCKS_LUSTRE_NAME
  if ! command -v mount.lustre >/dev/null; then
    lustre_client || { log "the image has no Lustre client, and none could be installed"; return 1; }
  fi
  if [[ $FMBLOCKS_LUSTRE_EFA == true ]]; then
    lustre_over_efa || log "EFA for Lustre could not be set up: it is mounted over TCP"
  fi
  mkdir -p "$root$FMBLOCKS_LUSTRE_PATH"
  # Not mounted by systemd: LNet has to be set up before, or Lustre comes back over TCP.
  grep -qs "^$source " "$root/etc/fstab" ||
    echo "$source $FMBLOCKS_LUSTRE_PATH lustre noauto,noatime,flock,lazystatfs,_netdev 0 0" \
      >>"$root/etc/fstab"
  mountpoint -q "$root$FMBLOCKS_LUSTRE_PATH" || retry 10 15 mount "$FMBLOCKS_LUSTRE_PATH"
}

mount_home() { # home directories over NFS; source: FSx for OpenZFS User Guide, Performance
  local root=${FMBLOCKS_ROOT:-} source target aside
  source=$FMBLOCKS_HOME_DNS:/fsx
  target=$root$FMBLOCKS_HOME_PATH
  if ! command -v mount.nfs4 >/dev/null; then
    if command -v dnf >/dev/null; then
      retry 5 20 dnf install -y -q nfs-utils || return 1
    else
      apt_install nfs-common || { log "the image has no NFS client, and none could be installed"; return 1; }
    fi
  fi
  mkdir -p "$target"
  mountpoint -q "$target" && return 0
  aside=$root/run/fmblocks-home
  mkdir -p "$aside"
  mountpoint -q "$aside" || retry 10 15 mount -t nfs4 -o nfsvers=4.2,nconnect=16 "$source" "$aside" || return 1
  # What the image has there (a login's keys) would be hidden; many nodes boot at once, and none overwrites another's.
  cp -an "$target/." "$aside/" || log "not all of $FMBLOCKS_HOME_PATH of the image was copied"
  umount "$aside" || true
  grep -qs "^$source " "$root/etc/fstab" ||
    echo "$source $FMBLOCKS_HOME_PATH nfs4 nfsvers=4.2,nconnect=16,rsize=1048576,wsize=1048576,timeo=600,_netdev,nofail 0 0" \
      >>"$root/etc/fstab"
  retry 10 15 mount "$FMBLOCKS_HOME_PATH"
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
  every_start || log "nothing of this will be done at the next start"
  instance_store
  case $? in
    0) containers || log "containers stay on the root volume" ;;
    2) log "the instance store could not be set up: containers stay on the root volume" ;;
  esac
  if [[ -n ${FMBLOCKS_LUSTRE_DNS:-} ]]; then
    mount_lustre || log "Lustre is not mounted"
  fi
  if [[ -n ${FMBLOCKS_HOME_DNS:-} ]]; then
    mount_home || log "home directories are not mounted: they are this node's own"
  fi
  launch_profile || log "the launch profile was not written"
  log "done"
}

main
