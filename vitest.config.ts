import { configDefaults, defineConfig } from 'vitest/config';

const conditions = ['dragoman-source'];

/**
 * Files that look at no process as such and replace no module, or all the same one. Those of a project share three processes, so that each need not load the
 * program again, which costs two seconds; the next project has new ones, so that none of them grows without end.
 */
const together: Readonly<Record<string, readonly string[]>> = {
  api: ['test/api/{admin,chat,gencompat,idempotency,mcp,media,messages,models,responses}/**/*'],
  gateway: ['test/{cross,examples,gateway,matrix,sdk,support}/**/*'],
  http: ['test/api/{embeddings,http}/**/*'],
  native: ['test/api/native/!(machines|many-sign-ins|sessions|sign-up|tokens)'],
  'sign-in': ['test/api/native/{machines,sessions,sign-up,tokens}'],
  src: [
    'src/{config,core,dialects,faces,gateway,http,ledger,providers,telemetry}/**/*',
    'src/resources/!(stored-responses)/**/*', // those hold 56 MiB and see how long the collector takes
    'src/kit/{async,crypto,ipc,json,net,patterns,text,tokens,upstream}/**/*',
  ],
  vendors: ['test/vendors/**/*'],
};

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
    expect: { poll: { timeout: 30_000 } },
  };
  const resolved = { resolve: { conditions }, ssr: { resolve: { conditions } } };
  return {
    ...resolved,
    test: {
      maxWorkers: 3, // on two cores: most tests wait for processes and databases
      globalSetup: ['test/support/temporary.ts', 'test/support/postgres.ts'],
      passWithNoTests: mode === 'long',
      fsModuleCache: true,
      projects: [
        {
          ...resolved,
          test: { ...common, name: 'alone', include: files(['{src,test}/**/*']), exclude: [...exclude, ...Object.values(together).flatMap(files)] },
        },
        ...Object.entries(together).map(([name, names]) => ({ ...resolved, test: { ...common, name, isolate: false, include: files(names), exclude } })),
      ],
    },
  };
});
