// Builds dist/ from src/: the server with the packages that are JavaScript alone, in a few files, which start in half the time that a thousand take; each
// worker in a file of its own, with what it loads late beside it; and the files that are read at run time (SQL, catalogues).
import { cpSync, existsSync, globSync, readdirSync, readFileSync, realpathSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { basename, dirname, join, posix, relative } from 'node:path';
import { fileURLToPath } from 'node:url';
import { isCurrent, sourceStamp } from './stamp.js';

const root = realpathSync(fileURLToPath(new URL('../', import.meta.url)));
const source = join(root, 'src');
const dist = join(root, 'dist');
const made = join(root, `dist.new-${process.pid}`);
const old = join(root, `dist.old-${process.pid}`);

if (process.argv.includes('--unless-current') && isCurrent()) process.exit(0);
const { rolldown } = await import('rolldown');
const { parseAst } = await import('rolldown/parseAst');

/** Packages that are native, or find files of their own beside their code; and packages that Fastify loads only for route schemas or tests. */
const external =
  /^(node:|@electric-sql\/|@energetic-ai\/|@napi-rs\/|@tesseract|tesseract\.js|@echogarden\/|quickjs-wasi|gpt-tokenizer|officeparser|unpdf|file-type|pg-native|@fastify\/(ajv|fast-json-stringify)-compiler|light-my-request)/;

/** Rewrites `import.meta.url`, `.filename` and `.dirname`, so that bundled modules find the files that lay beside them in src/. */
const places = {
  name: 'places',
  transform(code, id) {
    if (!id.startsWith(source) || !code.includes('import.meta')) return null;
    const place = relative(source, id).replace(/\.ts$/, '.js');
    return {
      code: code
        .replaceAll('import.meta.url', `placeOf("${place}").href`)
        .replaceAll('import.meta.filename', `fileAt("${place}")`)
        .replaceAll('import.meta.dirname', `fileAt("${posix.dirname(place)}")`),
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

/** Modules of undici that the server imports, by exported name. All of undici, with WebSocket, caches and mocks, takes 3 MB of memory more. */
const undiciModules = {
  buildConnector: './lib/core/connect',
  Client: './lib/dispatcher/client',
  EnvHttpProxyAgent: './lib/dispatcher/env-http-proxy-agent',
  errors: './lib/core/errors',
  Pool: './lib/dispatcher/pool',
  ProxyAgent: './lib/dispatcher/proxy-agent',
};

const undici = realpathSync(join(root, 'node_modules/undici/index.js'));

const lightUndici = {
  name: 'light-undici',
  load(id) {
    if (id !== undici) return null;
    const members = Object.entries(undiciModules).map(([name, path]) => `get ${name}() { return require('${path}'); }`);
    const fetch = `get fetch() { return require('./lib/web/fetch').fetch; }`;
    // Undici's own index gives dispatchers these methods, of which its proxies use one.
    const methods = `Object.assign(require('./lib/dispatcher/dispatcher').prototype, require('./lib/api'));`;
    return `${methods} module.exports = { ${[...members, fetch].join(', ')} };`;
  },
};

/** Fails on an import from undici that is missing from the table: it would be undefined in dist/. */
function checkUndiciImports() {
  for (const path of globSync('**/*.ts', { cwd: source }).filter((one) => !one.endsWith('.test.ts'))) {
    const text = readFileSync(join(source, path), 'utf8');
    const imported = [...text.matchAll(/^import (type )?\{([^}]*)\} from 'undici';/gm)];
    if (imported.length !== text.split("'undici'").length - 1) throw new Error(`src/${path} must import from undici by name.`);
    for (const [, isType, names] of imported)
      for (const name of names.split(',').map((one) => one.trim()))
        if (!isType && name && !name.startsWith('type ') && name !== 'fetch' && !(name in undiciModules))
          throw new Error(`src/${path} imports ${name} from undici: add its module to bin/build.js.`);
  }
}

/** The folders of the packages whose code is in dist/. */
const bundled = new Set();

async function bundle(names, output) {
  const building = await rolldown({
    input: Object.fromEntries(names.map((name) => [name, join(source, `${name}.ts`)])),
    cwd: root,
    platform: 'node',
    external,
    resolve: { conditionNames: ['dragoman-source', 'node'] },
    transform: { target: 'esnext' },
    plugins: [places, lightUndici],
    checks: { eval: false },
  });
  const written = await building.write({ dir: made, format: 'esm', entryFileNames: '[name].js', comments: false, ...output });
  await building.close();
  for (const { fileName, modules = {} } of written.output) {
    inOneByte(join(made, fileName));
    for (const id of Object.keys(modules)) {
      const [folder] = /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+/.exec(id) ?? [];
      if (folder) bundled.add(folder);
    }
  }
}

/** Node may keep a source in two bytes a character as soon as one of them is beyond ASCII: 2 MB of memory for the server. */
function inOneByte(file) {
  const text = readFileSync(file, 'utf8');
  if (/(?<!\\)\\(?:\\\\)*[^\0-\x7F]|\.raw`[^`]*[^\0-\x7F]/.test(text))
    throw new Error(`${file}: a character beyond ASCII stands behind a backslash or in String.raw, where an escape would mean something else.`);
  const escaped = (character) => `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
  const ascii = text.replaceAll(/[^\0-\x7F]/g, escaped);
  parseAst(ascii); // throws where an escape is no syntax
  writeFileSync(file, ascii);
}

/** Entry points of worker threads and child processes, which are started by path: `new URL('./name-worker${…}')`. */
function workerEntries() {
  const found = new Set();
  for (const path of globSync('**/*.ts', { cwd: source }).filter((one) => !one.endsWith('.test.ts')))
    for (const [, name] of readFileSync(join(source, path), 'utf8').matchAll(/[`'](?:\.\/)?([\w-]*worker)\$\{/g)) found.add(join(dirname(path), name));
  return [...found];
}

/** Their licences want to go with their code. */
function licences() {
  const texts = Array.from(bundled, (folder) => {
    const { name, version, license } = JSON.parse(readFileSync(join(folder, 'package.json'), 'utf8'));
    const files = readdirSync(folder).filter((file) => /^(licen[cs]e|copying|notice)/i.test(file));
    return `${name} ${version} (${license})\n\n${files.map((file) => readFileSync(join(folder, file), 'utf8').trim()).join('\n\n')}\n`;
  });
  return texts.toSorted().join(`\n${'-'.repeat(80)}\n\n`);
}

function isShipped(path) {
  const isTestMaterial = basename(path) === 'recordings' || basename(dirname(path)) === 'recordings';
  return !isTestMaterial && !/\.(ts|md)$/.test(path);
}

checkUndiciImports();
const stamp = sourceStamp();
process.on('exit', () => [made, old].forEach((folder) => rmSync(folder, { recursive: true, force: true })));
cpSync(source, made, { recursive: true, filter: isShipped });
const ofServer = ['main', 'process/worker'];
await bundle(ofServer, { chunkFileNames: 'chunks/[name]-[hash].js' });
// In one file with the worker, what it loads late would have its packages loaded at the start. It lies beside the worker, which may be able to read no other folder.
for (const name of workerEntries().filter((one) => !ofServer.includes(one))) await bundle([name], { chunkFileNames: `${dirname(name)}/[name]-[hash].js` });
writeFileSync(join(made, 'licences.txt'), licences());
if (sourceStamp() === stamp) writeFileSync(join(made, 'sources'), stamp); // else they were changed meanwhile
if (existsSync(dist)) renameSync(dist, old); // a build that is ended here leaves no half of it
renameSync(made, dist);
