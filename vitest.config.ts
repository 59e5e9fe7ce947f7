import { configDefaults, defineConfig } from 'vitest/config';

const conditions = ['dragoman-source'];

/** Files that look at no process as such and replace no module: they share three processes, so that each need not load the program again, which costs two seconds. */
const together = ['src/{config,core,dialects}/**', 'test/{cross,examples,gateway,matrix,sdk,support,vendors}/**', 'test/api/{embeddings,http}/**'];

/** `npm test` runs the `*.test.ts`; `npm run test:long` the `*.long.test.ts`, which take too long for every change. */
export default defineConfig(({ mode }) => {
  const name = mode === 'long' ? '*.long.test.ts' : '*.test.ts';
  const exclude = [...configDefaults.exclude, 'test/walls/planted/**', ...(mode === 'long' ? [] : ['**/*.long.test.ts'])];
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
        { ...resolved, test: { ...common, name: 'together', isolate: false, include: together.map((folder) => `${folder}/${name}`), exclude } },
        { ...resolved, test: { ...common, name: 'alone', include: [`{src,test}/**/${name}`], exclude: [...exclude, ...together] } },
      ],
    },
  };
});
