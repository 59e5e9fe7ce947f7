/** `node --import`: makes the mechanisms of the server that starts after it switchable, by a POST of their names to the port `DRAGOMAN_BENCH_ABLATION`. */
import { createServer } from 'node:http';
import { registerHooks } from 'node:module';
import { text } from 'node:stream/consumers';
import { isMainThread } from 'node:worker_threads';
import { off, patchClasses, replaced } from './mechanisms.ts';

const mechanisms = new URL('mechanisms.ts', import.meta.url).href;

registerHooks({
  load(url, context, next) {
    const file = Object.keys(replaced).find((one) => url.endsWith(`/${one}`));
    if (file === undefined) return next(url, context);
    const original = JSON.stringify(`${url}?original`);
    const names = Object.keys(replaced[file]!);
    const source = [
      `export * from ${original};`,
      `import * as original from ${original};`,
      `import { replaced } from ${JSON.stringify(mechanisms)};`,
      ...names.map((name) => `export const ${name} = replaced[${JSON.stringify(file)}].${name}(original.${name});`),
    ].join('\n');
    return { format: 'module', source, shortCircuit: true };
  },
});

await patchClasses();

// The embedded database's thread loads this file too.
if (isMainThread)
  createServer((request, response) => {
    void text(request).then((names) => {
      off.clear();
      for (const name of names.split('+')) if (name !== '') off.add(name);
      response.end();
    });
  })
    .listen(Number(process.env['DRAGOMAN_BENCH_ABLATION']), '127.0.0.1')
    .unref();
