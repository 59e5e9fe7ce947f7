import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { parentPort } from 'node:worker_threads';
import { EvalFlags, QuickJS, type Deferred, type JSValueHandle } from 'quickjs-wasi';

/** A run of a script. */
export interface ScriptJob {
  readonly type: 'run';
  /** A module whose default export is a function. */
  readonly code: string;
  /** JSON of what the function is given, beside the calls. */
  readonly given: string;
  /** Names of the calls that it may make. */
  readonly calls: readonly string[];
}

/** What a call gave: JSON, or why it failed. */
export interface CallDone {
  readonly type: 'answer';
  readonly call: number;
  readonly json?: string;
  readonly error?: string;
}

/** `waiting`: nothing goes on until a call is answered. */
export type ScriptEvent =
  | { readonly type: 'ready' | 'waiting' }
  | { readonly type: 'call'; readonly call: number; readonly name: string; readonly json: string }
  | { readonly type: 'done'; readonly text: string }
  | { readonly type: 'failed'; readonly message: string };

/** Bytes of all values of a script, and of its stack. */
const memoryBytes = 16 * 2 ** 20;
const stackBytes = 256 * 1024;
/** Characters of the arguments of a call, of a result, and of a message of an error. */
const [mostJson, mostText, mostMessage] = [1_000_000, 1_048_576, 500];
/** Calls that are not answered yet. */
const mostCalls = 20;

const port = parentPort!;
const wasm = readFileSync(createRequire(import.meta.url).resolve('quickjs-wasi/quickjs.wasm'));
const compiled = new (WebAssembly as unknown as { readonly Module: new (bytes: Uint8Array) => object }).Module(wasm);
const tell = (event: ScriptEvent) => port.postMessage(event);

/** Made before the script is read, so that it cannot replace what these functions use. */
const prelude = `((call, begun, failed) => {
  const { parse, stringify } = JSON;
  const then = Function.prototype.call.bind(Promise.prototype.then);
  const text = String;
  const says = (error) => { try { return text(error && error.message || error); } catch { return 'Something was thrown.'; } };
  return {
    given: (json, names) => {
      const given = parse(json);
      for (const name of parse(names)) given[name] = (...args) => then(call(name, stringify(args)), parse);
      return given;
    },
    start: (script, given) => {
      if (typeof script !== 'function') return failed('The default export of the script must be a function.');
      then((async () => script(given))(), (value) => begun(typeof value === 'string' ? value : stringify(value) ?? ''), (error) => failed(says(error)));
    },
    says,
  };
})`;

async function run({ code, given, calls }: ScriptJob): Promise<void> {
  const vm = await QuickJS.create({ wasm: compiled as never, memoryLimit: memoryBytes, maxStackSize: stackBytes });
  const open = new Map<number, Deferred>();
  let made = 0;
  let isOver = false;
  const end = (event: ScriptEvent) => {
    if (isOver) return;
    isOver = true;
    tell(event);
  };
  const fail = (message: string) => end({ type: 'failed', message: message.slice(0, mostMessage) });

  const call = vm.newFunction('call', (name, json) => {
    const [what, args] = [name!.toString(), json!.toString()];
    if (args.length > mostJson || open.size >= mostCalls) {
      const refused = vm.newPromise();
      refused.reject(vm.newError(new Error(args.length > mostJson ? 'The arguments of the call are too long.' : 'Too many calls at once.')));
      return refused.handle;
    }
    const deferred = vm.newPromise();
    open.set(made, deferred);
    tell({ type: 'call', call: made++, name: what, json: args });
    return deferred.handle;
  });
  const begun = vm.newFunction('begun', (value) => {
    const text = value.toString();
    if (text.length > mostText) fail('The result of the script is longer than 1 MB.');
    else end({ type: 'done', text });
    return vm.undefined;
  });
  const failed = vm.newFunction('failed', (message) => {
    fail(message.toString());
    return vm.undefined;
  });

  /** Goes on until nothing can. */
  const settle = () => {
    vm.executePendingJobs();
    if (isOver) return;
    if (open.size === 0) fail('The script waits for something that never comes.');
    else tell({ type: 'waiting' });
  };
  const answer = ({ call: at, json, error }: CallDone) => {
    const deferred = open.get(at);
    if (!deferred || isOver) return;
    open.delete(at);
    if (error === undefined) deferred.resolve(vm.newString(json ?? 'null'));
    else deferred.reject(vm.newError(new Error(error)));
    settle();
  };
  const guarded =
    <Args extends readonly unknown[]>(work: (...args: Args) => void) =>
    (...args: Args) => {
      try {
        work(...args);
      } catch (error) {
        fail(error instanceof Error ? error.message : 'The script failed.');
      }
    };

  current = guarded(answer);
  guarded(() => {
    const own = vm.callFunction(vm.evalCode(prelude, '<prelude>'), vm.undefined, call, begun, failed);
    const made = vm.evalCode(code, 'script.js', EvalFlags.TYPE_MODULE);
    const values = vm.callFunction(own.getProp('given'), vm.undefined, vm.newString(given), vm.newString(JSON.stringify(calls)));
    begin(vm, own, made, values);
    settle();
  })();

  function begin(machine: QuickJS, own: JSValueHandle, module: JSValueHandle, values: JSValueHandle): void {
    const loaded = machine.newFunction('loaded', (namespace) =>
      machine.callFunction(own.getProp('start'), machine.undefined, namespace.getProp('default'), values),
    );
    const broken = machine.newFunction('broken', (error) =>
      machine.callFunction(failed, machine.undefined, machine.callFunction(own.getProp('says'), machine.undefined, error)),
    );
    machine.callFunction(module.getProp('then'), module, loaded, broken);
  }
}

let current: ((answer: CallDone) => void) | undefined;

port.on('message', (message: ScriptJob | CallDone) => {
  if (message.type === 'answer') return current?.(message);
  run(message).catch((error: unknown) =>
    tell({ type: 'failed', message: error instanceof Error ? error.message.slice(0, mostMessage) : 'The script failed.' }),
  );
});
tell({ type: 'ready' });
