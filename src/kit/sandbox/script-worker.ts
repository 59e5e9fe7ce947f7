import { readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import { constants, getPriority, setPriority } from 'node:os';
import { parentPort } from 'node:worker_threads';
import { EvalFlags, QuickJS, type Deferred, type JSValueHandle } from 'quickjs-wasi';

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

/** `waiting`: after `answers` answers, nothing goes on until a further call is answered. */
export type ScriptEvent =
  | { readonly type: 'ready' }
  | { readonly type: 'waiting'; readonly answers: number }
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

// Scripts give way to requests, whatever the priority of the server. On Linux 0 is the thread that asks; elsewhere it would be the whole process.
// https://man7.org/linux/man-pages/man2/setpriority.2.html
try {
  const { PRIORITY_BELOW_NORMAL: lower, PRIORITY_LOW: lowest } = constants.priority;
  if (process.platform === 'linux') setPriority(0, Math.min(lowest, getPriority(0) + lower));
} catch {
  // where that is not allowed, it has the priority that it has
}

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
      const shown = then((async () => script(given))(), (value) => typeof value === 'string' ? value : stringify(value) ?? '');
      then(shown, begun, (error) => failed(says(error)));
    },
    says,
  };
})`;

class Run {
  readonly #vm: QuickJS;
  readonly #own: JSValueHandle;
  readonly #failed: JSValueHandle;
  readonly #open = new Map<number, Deferred>();
  #made = 0;
  #answers = 0;
  #isOver = false;

  constructor(vm: QuickJS) {
    this.#vm = vm;
    const call = vm.newFunction('call', (name, json) => this.#called(name.toString(), json.toString()));
    const begun = vm.newFunction('begun', (value) => this.#ended(value.toString()));
    this.#failed = vm.newFunction('failed', (message) => this.#fail(message.toString()));
    this.#own = vm.callFunction(vm.evalCode(prelude, '<prelude>'), vm.undefined, call, begun, this.#failed);
  }

  begin({ code, given, calls }: ScriptJob): void {
    this.#guarded(() => {
      const [vm, own, failed] = [this.#vm, this.#own, this.#failed];
      const module = vm.evalCode(code, 'script.js', EvalFlags.TYPE_MODULE);
      const values = vm.callFunction(own.getProp('given'), vm.undefined, vm.newString(given), vm.newString(JSON.stringify(calls)));
      const loaded = vm.newFunction('loaded', (namespace) => vm.callFunction(own.getProp('start'), vm.undefined, namespace.getProp('default'), values));
      const broken = vm.newFunction('broken', (error) => vm.callFunction(failed, vm.undefined, vm.callFunction(own.getProp('says'), vm.undefined, error)));
      vm.callFunction(module.getProp('then'), module, loaded, broken);
      this.#settle();
    });
  }

  answer({ call, json, error }: CallDone): void {
    const deferred = this.#open.get(call);
    if (!deferred || this.#isOver) return;
    this.#open.delete(call);
    this.#answers++;
    this.#guarded(() => {
      if (error === undefined) deferred.resolve(this.#vm.newString(json ?? 'null'));
      else deferred.reject(this.#vm.newError(new Error(error)));
      this.#settle();
    });
  }

  #called(name: string, json: string): JSValueHandle {
    const deferred = this.#vm.newPromise();
    if (json.length > mostJson || this.#open.size >= mostCalls) {
      deferred.reject(this.#vm.newError(new Error(json.length > mostJson ? 'The arguments of the call are too long.' : 'Too many calls at once.')));
      return deferred.handle;
    }
    this.#open.set(this.#made, deferred);
    tell({ type: 'call', call: this.#made++, name, json });
    return deferred.handle;
  }

  /** Goes on until nothing can. */
  #settle(): void {
    this.#vm.executePendingJobs();
    if (this.#isOver) return;
    if (this.#open.size === 0) this.#fail('The script waits for something that never comes.');
    else tell({ type: 'waiting', answers: this.#answers });
  }

  #ended(text: string): JSValueHandle {
    if (text.length > mostText) return this.#fail('The result of the script is longer than 1 MB.');
    return this.#end({ type: 'done', text });
  }

  #fail(message: string): JSValueHandle {
    return this.#end({ type: 'failed', message: message.slice(0, mostMessage) });
  }

  #end(event: ScriptEvent): JSValueHandle {
    if (!this.#isOver) tell(event);
    this.#isOver = true;
    return this.#vm.undefined;
  }

  #guarded(work: () => void): void {
    try {
      work();
    } catch (error) {
      this.#fail(error instanceof Error ? error.message : 'The script failed.');
    }
  }
}

// all that can be done before there is a script, so that one begins at once
const run = new Run(await QuickJS.create({ wasm: compiled as never, memoryLimit: memoryBytes, maxStackSize: stackBytes }));
port.on('message', (message: ScriptJob | CallDone) => (message.type === 'answer' ? run.answer(message) : run.begin(message)));
tell({ type: 'ready' });
