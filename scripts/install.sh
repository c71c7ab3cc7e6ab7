#!/bin/sh
# Installs prime-agent for the current user:
#
#   curl -fsSL https://HOST/install.sh | sh
#   wget -qO- https://HOST/install.sh | sh -s -- --version 0.1.0
#
# Nothing is replaced before the download has the right checksum and runs here.
# Needs curl or wget, and tar with xz or python3; never root.
#
#   PRIME_AGENT_INSTALL_DIR   where to (default: ~/.local/bin)
#   PRIME_AGENT_VERSION       which version (default: the latest; --version wins)
#   PRIME_AGENT_RELEASE_URL   where from
set -eu

# Filled in by scripts/release.
default_url=

main() {
  url=${PRIME_AGENT_RELEASE_URL:-$default_url}
  version=${PRIME_AGENT_VERSION:-}
  while [ $# -gt 0 ]; do
    case "$1" in
    --version)
      [ $# -ge 2 ] || fail "--version needs a version"
      version=$2
      shift 2
      ;;
    --version=*)
      version=${1#--version=}
      shift
      ;;
    *) fail "unknown option $1 (known: --version VERSION)" ;;
    esac
  done
  url=${url%/}
  [ -n "$url" ] || fail "set PRIME_AGENT_RELEASE_URL to the address of the releases"
  folder=${PRIME_AGENT_INSTALL_DIR:-${HOME:+$HOME/.local/bin}}
  [ -n "$folder" ] || fail "HOME is not set; set PRIME_AGENT_INSTALL_DIR to where it should go"

  target=$(find_target)
  stage=$(make_stage "$folder")
  trap 'rm -rf "$stage"' EXIT
  trap 'exit 130' INT
  trap 'exit 143' HUP TERM

  if [ -z "$version" ]; then
    download "$url/latest" "$stage/latest" || fail "can't reach $url/latest ($reason)"
    version=$(head -n 1 "$stage/latest")
  fi
  version=${version#v}
  case "$version" in
  '' | *[!0-9A-Za-z.+-]*) fail "$url/latest does not hold a version" ;;
  esac
  archive=prime-agent-$version-$target.tar.xz

  echo "Downloading prime-agent $version for $target"
  download "$url/$version/SHA256SUMS" "$stage/SHA256SUMS" ||
    fail "there is no version $version at $url ($reason)"
  wanted=$(sed -n "s/^\([0-9a-f]\{64\}\) [ *]$archive\$/\1/p" "$stage/SHA256SUMS")
  [ -n "$wanted" ] || fail "version $version was not built for $target"
  download "$url/$version/$archive" "$stage/$archive" ||
    fail "can't download $url/$version/$archive ($reason)"
  found=$(checksum "$stage/$archive")
  [ "$found" = "$wanted" ] || fail "the checksum of $archive is wrong; nothing was installed"

  unpack "$stage/$archive" "$stage" || fail "can't unpack $archive; install xz or python3"
  chmod 755 "$stage/prime-agent"
  said=$("$stage/prime-agent" --version 2>&1) ||
    fail "the program does not run on this machine$(advice): $(printf '%s' "$said" | head -n 1)"
  mv -f "$stage/prime-agent" "$folder/prime-agent" || fail "can't write to $folder"

  echo "Installed $said as $folder/prime-agent"
  case ":$PATH:" in
  *":$folder:"*) echo "Next: prime-agent demo" ;;
  *) echo "Next: add $folder to your PATH, then: prime-agent demo" ;;
  esac
}

fail() {
  echo "install: $*" >&2
  exit 1
}

advice() {
  case "$target" in
  *-musl*) echo " (Alpine needs: apk add libstdc++)" ;;
  esac
}

# The name of the build for this machine; see scripts/lib/targets.ts.
find_target() {
  system=$(uname -s)
  machine=$(uname -m)
  case "$machine" in
  x86_64 | amd64) machine=x64 ;;
  aarch64 | arm64) machine=arm64 ;;
  *) fail "there is no build for $system on $machine" ;;
  esac
  case "$system" in
  Linux) system=linux ;;
  Darwin)
    # A shell that runs translated says x86_64 on an arm64 machine.
    if [ "$(sysctl -n sysctl.proc_translated 2>/dev/null || true)" = 1 ]; then machine=arm64; fi
    echo "darwin-$machine"
    return
    ;;
  *) fail "there is no build for $system; Linux and macOS are supported" ;;
  esac
  libc=
  if is_musl; then libc=-musl; fi
  baseline=
  if [ "$machine" = x64 ] && ! grep -qw avx2 /proc/cpuinfo 2>/dev/null; then
    baseline=-baseline
  fi
  echo "$system-$machine$libc$baseline"
}

is_musl() {
  for loader in /lib/ld-musl-*; do
    # Debian has this file too when musl is installed beside its own C library.
    if [ -e "$loader" ] && ! [ -e /lib/ld-linux-aarch64.so.1 ] && ! [ -e /lib64/ld-linux-x86-64.so.2 ]; then
      return 0
    fi
  done
  return 1
}

# Beside the program's place, so that putting it there is one rename.
make_stage() {
  mkdir -p "$1" 2>/dev/null || fail "can't make the folder $1; set PRIME_AGENT_INSTALL_DIR"
  mktemp -d "$1/.prime-agent-install.XXXXXX" 2>/dev/null ||
    fail "can't write to $1; set PRIME_AGENT_INSTALL_DIR"
}

# download URL FILE: on failure `reason` says why.
download() {
  if command -v curl >/dev/null 2>&1; then
    if reason=$(curl -fsSL --retry 2 -o "$2" "$1" 2>&1); then return 0; fi
  elif command -v wget >/dev/null 2>&1; then
    if reason=$(wget -q -O "$2" "$1" 2>&1); then return 0; fi
  else
    fail "curl or wget is needed"
  fi
  reason=$(printf '%s' "$reason" | tail -n 1)
  reason=${reason:-no answer}
  return 1
}

checksum() {
  if command -v sha256sum >/dev/null 2>&1; then
    sha256sum "$1" | cut -d ' ' -f 1
  elif command -v shasum >/dev/null 2>&1; then
    shasum -a 256 "$1" | cut -d ' ' -f 1
  elif command -v openssl >/dev/null 2>&1; then
    openssl dgst -sha256 -r "$1" | cut -d ' ' -f 1
  else
    fail "sha256sum, shasum or openssl is needed to check the download"
  fi
}

unpack() {
  if tar -xJf "$1" -C "$2" 2>/dev/null; then return 0; fi
  command -v python3 >/dev/null 2>&1 && python3 -m tarfile -e "$1" "$2" >/dev/null 2>&1
}

# The last line, so that a download of this script that was cut off does nothing.
main "$@"
