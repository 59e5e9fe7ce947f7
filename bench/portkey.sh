#!/bin/sh
# Installs Portkey's gateway outside the project, so that it can be measured beside ours. It never becomes a dependency.
# The two hono packages are pinned: newer ones break this release.
set -eu
folder=${DRAGOMAN_BENCH_PORTKEY:-${XDG_CACHE_HOME:-$HOME/.cache}/dragoman-bench/portkey}
mkdir -p "$folder"
cd "$folder"
[ -f package.json ] || echo '{ "private": true }' > package.json
exec npm install --ignore-scripts --omit=dev --save-exact --no-audit --no-fund @portkey-ai/gateway@1.15.2 hono@4.9.7 @hono/node-server@1.13.7
