#!/bin/sh
# Runs a command in a minimal Debian root as a container would: the root is
# read-only except /tmp, the command is process 1, there is no network unless
# CONTAINER_NETWORK=host, and no variable is set but PATH.
# Usage: container.sh ROOT PROGRAM UID COMMAND [ARGUMENT...]
# ROOT is made by scripts/container-root; PROGRAM is its /usr/local/bin/prime-agent.
set -eu
if [ -z "${CONTAINER_INSIDE:-}" ]; then
  net=--net
  if [ "${CONTAINER_NETWORK:-}" = host ]; then net=; fi
  CONTAINER_INSIDE=1 exec unshare --mount --pid $net --ipc --uts --fork --kill-child -- "$0" "$@"
fi
root=$1 program=$2 user=$3
shift 3
mount --make-rprivate /
mount --bind "$root" "$root"
mount --bind "$program" "$root/usr/local/bin/prime-agent"
mount -t proc proc "$root/proc"
mount -t tmpfs -o mode=1777 tmpfs "$root/tmp"
mount -o remount,bind,ro "$root"
ip link set lo up
exec env -i PATH=/usr/local/bin:/usr/bin:/bin "$(command -v chroot)" "$root" \
  setpriv --reuid "$user" --regid "$user" --clear-groups --no-new-privs "$@"
