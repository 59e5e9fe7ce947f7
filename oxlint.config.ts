import { defineConfig } from 'oxlint';
import { walls } from './walls.ts';

/** Files of `src/` with a function of more than 80 lines, each with the reason. Whoever splits the function takes the line out. */
const longFunctions: Readonly<Record<string, string>> = {
  'src/kit/json/scan.ts': 'one pass over the bytes of a body, whose state is in local variables: a method call a byte is many times the cost',
  'src/kit/upstream/sse.ts': 'one pass over the bytes of a stream, whose state is in local variables',
  'src/resources/users/routes.ts': 'a list of routes, read from top to bottom',
};

export default defineConfig({
  options: { typeAware: true, reportUnusedDisableDirectives: 'error' },
  plugins: ['typescript', 'unicorn', 'oxc', 'import', 'promise', 'node', 'vitest'],
  categories: { correctness: 'error', suspicious: 'error', perf: 'error' },
  ignorePatterns: ['node_modules', 'dist', 'data', 'test/walls/planted'],
  rules: {
    eqeqeq: ['error', 'always', { null: 'ignore' }],
    'import/no-cycle': ['error', { ignoreTypes: false }],
    'no-unused-vars': ['error', { argsIgnorePattern: '^_', varsIgnorePattern: '^_' }],
    'no-var': 'error',
    'prefer-const': 'error',
    'typescript/consistent-type-imports': 'error', // also refuses the type import('…').Name, which the walls would not see
    'typescript/no-deprecated': 'error',
    'typescript/no-explicit-any': 'error',
    'typescript/no-import-type-side-effects': 'error', // its module would be loaded for nothing
    'typescript/no-misused-promises': 'error',
    'typescript/no-require-imports': 'error',
    'typescript/only-throw-error': ['error', { allowThrowingAny: true, allowThrowingUnknown: true }], // a signal's reason
    'typescript/prefer-optional-chain': 'error',
    'typescript/return-await': ['error', 'error-handling-correctness-only'],
    'typescript/switch-exhaustiveness-check': ['error', { considerDefaultExhaustiveForUnions: true }],
    'unicorn/prefer-node-protocol': 'error',

    'import/no-named-as-default-member': 'off', // fc.property and OpenAI.APIError are how their authors write it
    'no-await-in-loop': 'off', // streams are read one piece after the other
    'no-new': 'off', // a metric registers itself when it is made
    'no-shadow': 'off',
    'no-unmodified-loop-condition': 'off', // a flag that another turn of the event loop sets
    'no-underscore-dangle': 'off',
    'oxc/no-map-spread': 'off',
    'promise/always-return': 'off',
    'require-yield': 'off', // a generator that only throws is a fine fake
    'typescript/no-meaningless-void-operator': 'off',
    'typescript/no-misused-spread': 'off', // [...text] is how code points are counted
    'typescript/no-unsafe-type-assertion': 'off', // JSON.parse(text) as Something stands where a check has looked, or nobody looks
    'typescript/no-unnecessary-type-conversion': 'off', // what comes from a database may be less than its type says
    'typescript/unbound-method': 'off', // our objects are closures
    'unicorn/consistent-function-scoping': 'off',
    'unicorn/require-post-message-target-origin': 'off', // for windows, not for workers
    'vitest/valid-title': 'off', // proves(…) is one
    'vitest/expect-expect': 'off', // a test may end in a helper that expects
    'vitest/no-conditional-expect': 'off',
    'vitest/require-to-throw-message': 'off',
  },
  overrides: [
    {
      files: ['src/**/*.ts'],
      rules: {
        'max-lines': ['error', { max: 400, skipBlankLines: true, skipComments: true }],
        'max-lines-per-function': ['error', { max: 80, skipBlankLines: true, skipComments: true }],
        'node/no-process-env': 'error', // config reads the environment, nobody else
        'typescript/no-unsafe-argument': 'error',
        'typescript/no-unsafe-assignment': 'error',
        'typescript/no-unsafe-call': 'error',
        'typescript/no-unsafe-member-access': 'error',
      },
    },
    { files: ['src/*/**/*.ts'], rules: { 'no-console': 'error' } },
    { files: ['src/cli/**/*.ts', 'src/process/**/*.ts'], rules: { 'no-console': 'off' } }, // what a command prints is its output; a process that ends says why
    {
      files: ['src/config/**/*.ts', 'src/**/*.test.ts'],
      rules: { 'node/no-process-env': 'off' },
    },
    {
      files: ['src/**/*.test.ts'],
      rules: {
        'typescript/no-unsafe-argument': 'off',
        'typescript/no-unsafe-assignment': 'off',
        'typescript/no-unsafe-call': 'off',
        'typescript/no-unsafe-member-access': 'off',
        'max-lines': 'off',
        'max-lines-per-function': 'off',
      },
    },
    { files: Object.keys(longFunctions), rules: { 'max-lines-per-function': 'off' } },
    ...walls(import.meta.dirname),
  ],
});
