# Sourced by the other scripts: checks the tools, sets up what the project needs, puts it on PATH.
# Safe to run again; each step is skipped while what it was made from has not changed.
# shellcheck shell=bash
set -euo pipefail

root=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
cd "$root"
cache=${TARDIS_FAST_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tardis-fast}
protoc_gen_prost_version=0.5.0

say() { printf '\033[1m==> %s\033[0m\n' "$*"; }
fail() {
  printf 'error: %s\n' "$*" >&2
  exit 1
}

# need NAME FOUND WANTED REMEDY: stops unless version FOUND is at least WANTED.
need() {
  [ -n "$2" ] || fail "$1 $3 or newer is needed and none was found on PATH. $4"
  [ "$(printf '%s\n%s\n' "$3" "$2" | sort -V | head -n1)" = "$3" ] ||
    fail "$1 $3 or newer is needed, found $2. $4"
}

# version COMMAND...: the first number a tool prints; empty if there is no such tool or it fails.
# Maven prints colours even into a pipe, and these are made of numbers too.
version() {
  command -v "$1" >/dev/null || return 0
  { "$@" 2>&1 || true; } | sed 's/\x1b\[[0-9;]*m//g' | grep -oE '[0-9]+(\.[0-9]+)*' | head -n1 || true
}

check_tools() {
  need Rust "$(version rustc --version)" 1.94.1 "Install it with rustup."
  need Python "$(version python3 --version)" 3.10 "Install Python with its venv module."
  need Java "$(version java -version)" 17 "Install a JDK or JRE: Spark and two of the brokers run on it."
  need Node.js "$(version node --version)" 20 "Install Node.js with npm: Buf comes from npm."
  command -v npm >/dev/null || fail "npm is needed and was not found on PATH. It comes with Node.js."
  command -v cc >/dev/null || fail "A C compiler (cc) is needed to link and was not found on PATH."
  command -v make >/dev/null || fail "make is needed to build librdkafka and was not found on PATH."
  command -v perl >/dev/null || fail "perl is needed to build OpenSSL and was not found on PATH."
}

# once STAMP INPUT... -- COMMAND...: runs COMMAND unless STAMP was made from the same inputs.
once() {
  local stamp=$1 inputs=() sum
  shift
  while [ "$1" != -- ]; do
    inputs+=("$1")
    shift
  done
  shift
  sum=$(cat "${inputs[@]}" | cksum)
  if [ "$(cat "$stamp" 2>/dev/null)" != "$sum" ]; then
    "$@"
    mkdir -p "$(dirname "$stamp")"
    printf '%s\n' "$sum" >"$stamp"
  fi
}

make_venv() {
  say "Python environment in .venv"
  python3 -m venv --clear .venv
  .venv/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
}

install_buf() {
  say "Buf"
  (cd schemas && npm ci --silent --no-audit --no-fund)
}

install_protoc_gen_prost() {
  say "protoc-gen-prost $protoc_gen_prost_version"
  cargo install --quiet --locked --root "$cache/protoc-gen-prost-$protoc_gen_prost_version" \
    "protoc-gen-prost@$protoc_gen_prost_version"
}

setup_python() {
  once .venv/.stamp requirements.lock -- make_venv
  export VIRTUAL_ENV=$root/.venv PATH=$root/.venv/bin:$PATH
}

setup_schemas() {
  once schemas/node_modules/.stamp schemas/package-lock.json -- install_buf
  local prost=$cache/protoc-gen-prost-$protoc_gen_prost_version/bin
  [ -x "$prost/protoc-gen-prost" ] || install_protoc_gen_prost
  export PATH=$root/schemas/node_modules/.bin:$prost:$PATH
}

# build_extension [OPTION...]: builds it as maturin is told, by default for use.
build_extension() {
  say "Build the extension"
  PIP_QUIET=1 maturin develop --quiet "${@:---release}"
}

check_tools
