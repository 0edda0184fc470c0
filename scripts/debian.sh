# Sourced after setup.sh: installs what is in no package registry but in the distribution.
# shellcheck shell=bash

# install_debian_package NAME PROGRAM: installs package NAME unless PROGRAM is on PATH.
install_debian_package() {
  command -v "$2" >/dev/null && return
  local remedy="Install it: apt-get install $1." policy='' failed=''
  command -v apt-get >/dev/null && [ "$(id -u)" = 0 ] ||
    fail "$2 is needed and was not found on PATH. $remedy"
  say "Debian package: $1"
  # By this answer Debian's packages leave their services unstarted.
  if [ ! -e /usr/sbin/policy-rc.d ]; then
    policy=/usr/sbin/policy-rc.d
    printf '#!/bin/sh\nexit 101\n' >"$policy"
    chmod +x "$policy"
  fi
  { apt-get update -qq && DEBIAN_FRONTEND=noninteractive \
    apt-get install -qq -y --no-install-recommends "$1" >/dev/null; } || failed=yes
  [ -z "$policy" ] || rm "$policy"
  [ -z "$failed" ] || fail "$1 could not be installed. $remedy"
}
