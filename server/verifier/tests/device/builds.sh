#!/bin/sh
# Extensions built both ways on a machine with a GPU; see builds.py. OUT keeps what was done, so that a second call goes on.
#   builds.sh BUILDER OUT [SECONDS] [EXTENSIONS.json]
# BUILDER is the verifier's example `torch_builds`; SECONDS (220) end the beginning of new ones.
set -e
here=$(dirname "$0")
builder=$1 out=$2 seconds=${3:-220}
[ -n "$4" ] && others="--others $4"
command -v ninja >/dev/null || python3 -m pip install -q ninja || true
cores=$(nproc)
# nvcc with torch's headers keeps one core busy for most of an extension's time.
exec python3 "$here/builds.py" "$out" --builder "$builder" --seconds "$seconds" --at-once "$cores" $others
