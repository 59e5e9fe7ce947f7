// Builds dist/ from src/: the program with the packages that are JavaScript alone, in few files, which start in half the time that a thousand take; each
// program of a thread or process in one of its own; and the files that are read at run time (SQL, catalogues).
import { cpSync, globSync, readFileSync, realpathSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { rolldown } from 'rolldown';
import { isCurrent, sourceStamp, stampFile } from './stamp.js';

const root = realpathSync(fileURLToPath(new URL('../', import.meta.url)));
const source = join(root, 'src');
const dist = join(root, 'dist');

if (process.argv.includes('--unless-current') && isCurrent()) process.exit(0);

/** Packages that are native, or find files of their own beside their code. */
const external =
  /^(node:|@electric-sql\/|@energetic-ai\/|@napi-rs\/|@tesseract|tesseract\.js|@echogarden\/|quickjs-wasi|gpt-tokenizer|officeparser|unpdf|file-type|pg-native)/;

/** What modules know of their places is written for the places that they have in dist/. */
const places = {
  name: 'places',
  transform(code, id) {
    if (!id.startsWith(source) || !code.includes('import.meta')) return null;
    const place = JSON.stringify(relative(source, id).replace(/\.ts$/, '.js'));
    return {
      code: code
        .replaceAll('import.meta.url', `placeOf(${place}).href`)
        .replaceAll('import.meta.filename', `fileAt(${place})`)
        .replaceAll('import.meta.dirname', `fileAt(${JSON.stringify(posix.dirname(JSON.parse(place)))})`),
    };
  },
  renderChunk(code, { fileName }) {
    const from = (place) => JSON.stringify(posix.relative(posix.dirname(fileName), place) || '.');
    return {
      code: code
        .replaceAll(/\bplaceOf\("([^"]+)"\)/g, (_, place) => `new URL(${from(place)}, import.meta.url)`)
        .replaceAll(/\bfileAt\("([^"]+)"\)/g, (_, place) => `process.getBuiltinModule('node:path').join(import.meta.dirname, ${from(place)})`),
    };
  },
};

async function bundle(input, output) {
  const building = await rolldown({
    input,
    cwd: root,
    platform: 'node',
    external,
    resolve: { conditionNames: ['dragoman-source', 'node'] },
    transform: { target: 'esnext' },
    plugins: [places],
    checks: { eval: false },
  });
  await building.write({ dir: dist, format: 'esm', entryFileNames: '[name].js', comments: false, ...output });
  await building.close();
}

/** Programs of threads and processes are started by path: `new URL('./name-worker${…}')`. */
function programs() {
  const found = new Set();
  for (const path of globSync('**/*.ts', { cwd: source }).filter((one) => !one.endsWith('.test.ts')))
    for (const [, name] of readFileSync(join(source, path), 'utf8').matchAll(/[`'](?:\.\/)?([\w-]*worker)\$\{/g)) found.add(join(dirname(path), name));
  return [...found];
}

const inputOf = (names) => Object.fromEntries(names.map((name) => [name, join(source, `${name}.ts`)]));
const ofServer = ['main', 'process/worker'];

rmSync(dist, { recursive: true, force: true });
cpSync(source, dist, { recursive: true, filter: isShipped });
await bundle(inputOf(ofServer), { chunkFileNames: 'chunks/[name]-[hash].js' });
for (const name of programs().filter((one) => !ofServer.includes(one))) await bundle(inputOf([name]), { codeSplitting: false });
writeFileSync(stampFile, sourceStamp());

function isShipped(path) {
  const isTestMaterial = basename(path) === 'recordings' || basename(dirname(path)) === 'recordings';
  return !isTestMaterial && !/\.(ts|md)$/.test(path);
}
