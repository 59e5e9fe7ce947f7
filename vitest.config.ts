import { configDefaults, defineConfig } from 'vitest/config';

/**
 * Files that look at no process as such and replace no module, or all the same one. Those of a project share four processes, so that each need not load the
 * program again, which costs a second; the next project has new ones, so that none of them grows without end.
 */
const together: Readonly<Record<string, readonly string[]>> = {
  accounting: ['test/accounting/**/*'],
  api: ['test/api/{admin,chat,gencompat,idempotency,mcp,media,messages,models,responses}/**/*'],
  gateway: ['test/{cross,examples,gateway,matrix,sdk,support}/**/*'],
  http: ['test/api/{embeddings,http}/**/*'],
  native: ['test/api/native/!(machines|many-sign-ins|sessions|sign-up|tokens)'],
  'sign-in': ['test/api/native/{machines,sessions,sign-up,tokens}'],
  security: [
    'test/security/{foreign-ids,foreign-things,hostile-documents,hostile-mcp,item-references,kept-runs,odd-text,odd-values}',
    'test/security/{revocations,route-rights,shared-datasets}',
  ],
  src: [
    'src/{config,core,dialects,faces,gateway,http,ledger,providers,telemetry}/**/*',
    'src/resources/!(stored-responses)/**/*', // those hold 56 MiB and see how long the collector takes
    'src/kit/{async,crypto,ipc,json,net,patterns,text,tokens,upstream}/**/*',
  ],
  vendors: ['test/vendors/**/*'],
};

/** Files alone in their process that replace a module. */
const replacing: readonly string[] = ['test/security/{canaries,guard-is-needed,work-in-progress}'];

/**
 * Node loads the modules itself, as it loads the program, and finds them compiled; only a module that is replaced needs a loader in between. Vite's own way
 * costs each process two more seconds.
 */
const loading = (replaces: boolean) => ({ experimental: { viteModuleRunner: false, nodeLoader: replaces } });

/** `npm test` runs the `*.test.ts`; `npm run test:long` the `*.long.test.ts`, which take too long for every change. */
export default defineConfig(({ mode }) => {
  const ending = mode === 'long' ? '.long.test.ts' : '.test.ts';
  const exclude = [...configDefaults.exclude, 'test/walls/planted/**', ...(mode === 'long' ? [] : ['**/*.long.test.ts'])];
  const files = (names: readonly string[]) => names.map((name) => name + ending);
  const common = {
    pool: 'forks' as const,
    execArgv: ['--conditions=dragoman-source'],
    testTimeout: mode === 'long' ? 3_600_000 : 120_000,
    hookTimeout: 120_000,
    setupFiles: ['test/support/one-day.ts'],
    expect: { poll: { timeout: 30_000 } },
  };
  const inCompany = Object.values(together).flatMap(files);
  return {
    test: {
      maxWorkers: 4, // on two cores: most tests wait for processes and databases, and three leave a sixth of the time unused
      globalSetup: ['test/support/temporary.ts', 'test/support/postgres.ts'],
      passWithNoTests: mode === 'long',
      projects: [
        {
          test: {
            ...common,
            ...loading(false),
            name: 'alone',
            include: files(['{src,test}/**/*']),
            exclude: [...exclude, ...inCompany, ...files(replacing)],
          },
        },
        { test: { ...common, ...loading(true), name: 'replacing', include: files(replacing), exclude } },
        ...Object.entries(together).map(([name, names]) => ({
          test: { ...common, ...loading(name === 'sign-in'), name, isolate: false, include: files(names), exclude },
        })),
      ],
    },
  };
});
