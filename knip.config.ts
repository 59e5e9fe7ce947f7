import type { KnipConfig } from 'knip';

const config: KnipConfig = {
  entry: [
    'src/main.ts!',
    'src/**/{worker,*-worker}.ts!', // started by path, whose ending depends on where they stand
    'bin/*.js',
    'src/**/*.test.ts',
    'test/**/*.{test,long}.ts',
    'bench/*.ts',
  ],
  project: ['src/**/*.ts!', 'test/**/*.ts', 'bench/**/*.ts', 'bin/*.js', '*.ts'],
  ignore: ['test/walls/planted/**'],
  ignoreDependencies: [
    'node-.*', // the four Nodes: the launcher finds them by name
    'oxlint-tsgolint', // oxlint finds it by name
  ],
};

export default config;
