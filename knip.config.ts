import type { KnipConfig } from 'knip';

const config: KnipConfig = {
  entry: [
    'src/main.ts!',
    'src/**/{worker,*-worker}.ts!', // started by path, whose ending depends on where they stand
    'bin/*.js',
    '.ci/*.js',
    'src/**/*.test.ts',
    'test/**/*.{test,long}.ts',
    'bench/**/*.ts', // what it measures is started by path
  ],
  project: ['src/**/*.ts!', 'test/**/*.ts', 'bench/**/*.ts', 'bin/*.js', '.ci/*.js', '*.ts'],
  ignore: ['test/walls/planted/**'],
  ignoreDependencies: ['oxfmt'], // started by bin/run.js, with a configuration that knip does not know
  ignoreBinaries: ['cc', 'taskset'], // the bench says what it could not measure where they are missing
  ignoreExportsUsedInFile: { interface: true, type: true }, // a type is part of what the exported function says
};

export default config;
