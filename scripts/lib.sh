# Shared by the scripts of this repository: saying what is being done, installing Debian packages, the cache.
# Meant to be sourced by bash; it runs nothing by itself.

# Everything that is downloaded or built for the tests lives here, outside the repository.
CANALIS_CACHE="${CANALIS_CACHE:-${HOME:-/root}/.cache/canalis}"
export CANALIS_CACHE

# What building needs beside Rust: a C compiler (SQLite, compression, the Kafka client), OpenSSL for the Kafka client, protoc for
# the Pulsar client.
BUILD_PACKAGES="build-essential pkg-config libssl-dev protobuf-compiler"

say() { printf '\n==> %s\n' "$*" >&2; }
note() { printf '    %s\n' "$*" >&2; }
fail() { printf 'error: %s\n' "$*" >&2; exit 1; }

is_debian() { [ -e /etc/debian_version ] && command -v apt-get >/dev/null 2>&1; }

is_installed() { dpkg-query -W -f '${db:Status-Status}' "$1" 2>/dev/null | grep -qx installed; }

# Puts the names of those of the given Debian packages that are not installed on one line.
missing_packages() {
    local package missing=()
    for package in "$@"; do
        is_installed "$package" || missing+=("$package")
    done
    printf '%s' "${missing[*]:-}"
}

# Runs apt-get without questions, one caller at a time, and once more when it fails: mirrors have bad moments.
apt_get() {
    local attempt
    for attempt in 1 2; do
        DEBIAN_FRONTEND=noninteractive apt-get -y -q -o DPkg::Lock::Timeout=600 "$@" </dev/null >&2 && return 0
        note "apt-get $1 failed (attempt $attempt of 2)"
    done
    return 1
}

# Installs the given Debian packages where they are missing; services of theirs are not started.
install_packages() {
    local missing
    missing=$(missing_packages "$@")
    if [ -z "$missing" ]; then
        note "already installed: $*"
        return 0
    fi
    is_debian || fail "these are needed and can be installed by this script on Debian only: $missing"
    [ "$(id -u)" = 0 ] || fail "installing $missing needs root"
    note "installing: $missing"
    # A source of packages that has nothing to do with ours may be unreachable: only the installation decides.
    apt_get update || note "apt-get update reports a failure; going on"
    without_services apt_get install --no-install-recommends $missing
}

# Runs a command while invoke-rc.d is told to start no service, so that the tests' servers are the only ones.
without_services() {
    local policy=/usr/sbin/policy-rc.d made='' status=0
    if [ ! -e "$policy" ]; then
        printf '#!/bin/sh\nexit 101\n' >"$policy" && chmod 755 "$policy" && made=yes
    fi
    "$@" || status=$?
    [ -z "$made" ] || rm -f "$policy"
    return "$status"
}
