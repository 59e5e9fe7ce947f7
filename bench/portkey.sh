#!/bin/sh
# Installs Portkey's gateway outside the project, so that it can be measured beside ours. It never becomes a dependency.
# Two packages below it are held back: with newer ones this release answers every stream with 500 ("TypeError: immutable").
set -eu
folder=${DRAGOMAN_BENCH_PORTKEY:-${XDG_CACHE_HOME:-$HOME/.cache}/dragoman-bench/portkey}
mkdir -p "$folder"
cd "$folder"
cat > package.json <<'JSON'
{
  "private": true,
  "dependencies": { "@portkey-ai/gateway": "1.15.2", "hono": "4.9.7", "@hono/node-server": "1.13.7" },
  "overrides": { "hono": "4.9.7", "@hono/node-server": "1.13.7" }
}
JSON
rm -rf node_modules package-lock.json
exec npm install --ignore-scripts --omit=dev --legacy-peer-deps --no-audit --no-fund
