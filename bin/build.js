// Builds dist/ from src/: JavaScript, and the files that the program reads at run time (SQL, catalogues), without tests and recordings.
import { spawnSync } from 'node:child_process';
import { cpSync, rmSync } from 'node:fs';
import { basename, dirname } from 'node:path';
import { fileURLToPath } from 'node:url';

const root = new URL('../', import.meta.url);
const at = (path) => fileURLToPath(new URL(path, root));

rmSync(at('dist'), { recursive: true, force: true });
const { status } = spawnSync(process.execPath, [at('node_modules/typescript/bin/tsc'), '--project', at('tsconfig.build.json')], { stdio: 'inherit' });
if (status !== 0) process.exit(1);
cpSync(at('src'), at('dist'), { recursive: true, filter: isShipped });

function isShipped(path) {
  const isTestMaterial = basename(path) === 'recordings' || basename(dirname(path)) === 'recordings';
  return !isTestMaterial && !/\.(ts|md)$/.test(path);
}
