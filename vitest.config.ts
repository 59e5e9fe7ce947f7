import { configDefaults, defineConfig } from 'vitest/config';

const conditions = ['source'];

/** `npm test` runs the `*.test.ts`; `npm run test:long` the `*.long.test.ts`, which take too long for every change. */
export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    pool: 'forks',
    maxWorkers: 2, // most tests wait for processes and databases
    execArgv: ['--conditions=source'],
    include: mode === 'long' ? ['{src,test}/**/*.long.test.ts'] : ['{src,test}/**/*.test.ts'],
    exclude: [...configDefaults.exclude, 'test/walls/planted/**', ...(mode === 'long' ? [] : ['**/*.long.test.ts'])],
    globalSetup: ['test/support/postgres.ts'],
    passWithNoTests: mode === 'long',
    testTimeout: mode === 'long' ? 3_600_000 : 20_000,
    hookTimeout: 60_000,
  },
}));
