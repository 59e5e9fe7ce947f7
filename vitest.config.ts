import { configDefaults, defineConfig } from 'vitest/config';

const conditions = ['source'];

/** `npm test` runs the `*.test.ts`; `npm run test:long` the `*.long.test.ts`, which take too long for every change. */
export default defineConfig(({ mode }) => ({
  resolve: { conditions },
  ssr: { resolve: { conditions } },
  test: {
    pool: 'forks',
    execArgv: ['--conditions=source'],
    include: ['src/**/*.test.ts', 'test/**/*.test.ts'],
    exclude: [...configDefaults.exclude, ...(process.env['LONG'] ? [] : ['**/*.long.test.ts'])],
    globalSetup: ['test/postgres.ts'],
    testTimeout: 20_000,
    hookTimeout: 60_000,
  },
}));
