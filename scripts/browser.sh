# Sourced after debian.sh: installs the browser in which the page is tested.
# shellcheck shell=bash

# Playwright's own browsers are in no package registry; the distribution's serves.
setup_browser() {
  install_debian_package chromium chromium
}
