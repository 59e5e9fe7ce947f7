/**
 * The mechanisms of Dragoman that can be switched off while it runs. Each is replaced by the least that still answers the requests of `npm run bench -- chat`:
 * the difference is what the mechanism costs. Loaded into the server under test before its own code; never part of the product.
 */
import { ServerResponse } from 'node:http';
import type { Context } from '#core/context';
import type { GenerateEvent } from '#core/event';
import type { Pipeline } from '#gateway/pipeline';
import type { Upstreams } from '#kit/upstream/pool';
import type { UpstreamResponse } from '#kit/upstream/response';

/** The names of those that are off now. */
export const off = new Set<string>();

/** Functions of modules, by file and name: made from the original. */
export const replaced: Readonly<Record<string, Readonly<Record<string, (original: never) => unknown>>>> = {
  'src/app/request-log.ts': { requestLine: (original: Any) => unless('log', original, () => {}) },
  'src/kit/async/turn-end.ts': { afterPoll: (original: Any) => unless('cohorts', original, (run: () => void) => run()) },
  'src/http/write-together.ts': { writeTogether: (original: Any) => unless('together', original, () => {}) },
  'src/kit/json/scan.ts': { readJson: (original: Any) => unless('request', original, lastOf(original)) },
  'src/dialects/openai/chat/decode-request.ts': { decodeRequest: (original: Any) => unless('request', original, lastOf(original)) },
  'src/providers/openai/passthrough.ts': { passWhole: (original: Any) => unless('result', original, passed) },
  'src/gateway/pipeline.ts': { openPipeline: withDirect },
  'src/kit/upstream/pool.ts': { openUpstreams: withCanned },
  'src/app/prompt-log.ts': { openPrompts: withDeafPrompts },
  'src/resources/stored-responses/store.ts': { openStoredResponses: withoutKeeping },
};

type Any = (...words: never[]) => unknown;

const unless = (name: string, original: Any, least: (...words: never[]) => unknown): Any =>
  function (this: unknown, ...words: never[]) {
    return off.has(name) ? least(...words) : original.apply(this, words);
  };

/** All requests are the same. */
function lastOf(original: Any): Any {
  let last: unknown;
  return (...words) => (last ??= original(...words));
}

function passed(bytes: Uint8Array, _: unknown, model: string, { passthrough }: { passthrough: { write(bytes: Uint8Array): boolean } }): GenerateEvent[] {
  passthrough.write(bytes);
  return [
    { type: 'started', model, ignored: [] },
    { type: 'passed', tokens: 0 },
    { type: 'finished', candidate: 0, reason: 'stop', raw: 'stop' },
    { type: 'usage', usage: { input: 200, output: 200, source: 'provider' } },
  ];
}

/** `rules`: the first target of the model is asked at once, and nothing is booked. */
function withDirect(original: (deps: { models: (caller: unknown) => { find(name: string): unknown } }) => Pipeline) {
  return (deps: Parameters<typeof original>[0]): Pipeline => {
    const pipeline = original(deps);
    const { chatcompat } = pipeline;
    const answer: NonNullable<typeof chatcompat.answer> = (call, context: Context) => {
      if (!off.has('rules')) return chatcompat.answer!(call, context);
      const { targets } = deps.models(context.caller).find(call.model) as { targets: [{ target: { answer: typeof answer } }] };
      return targets[0].target.answer(call, { ...context, patience: { head: 60, firstByte: 60, idle: 60 } } as Context);
    };
    return { ...pipeline, chatcompat: Object.assign((...words: Parameters<typeof chatcompat>) => chatcompat(...words), { answer }) };
  };
}

/** `upstream`: the provider's last answer is given again, without asking it. */
function withCanned(original: (settings: unknown) => Upstreams) {
  return (settings: unknown): Upstreams => {
    const upstreams = original(settings);
    let canned: UpstreamResponse | undefined;
    return {
      ...upstreams,
      async post(request) {
        if (canned && off.has('upstream')) return canned;
        const response = await upstreams.post(request);
        if (!canned && off.has('upstream')) {
          const { status, headers } = response;
          const bytes = await response.whole(1_000_000);
          canned = { status, headers, whole: () => Promise.resolve(bytes), leave: () => {} } as unknown as UpstreamResponse;
          return canned;
        }
        return response;
      },
    };
  };
}

/** `prompts`: nobody is told what was asked and answered. */
function withDeafPrompts(original: (deps: unknown) => { written: { tell(told: never): void } }) {
  return (deps: unknown) => {
    const prompts = original(deps);
    const { tell } = prompts.written;
    prompts.written.tell = (told) => void (off.has('prompts') || tell(told));
    return prompts;
  };
}

/** `keeping`: a response that is to be stored is not. */
function withoutKeeping(original: (deps: unknown) => { keep: Any }) {
  return (deps: unknown) => {
    const stored = original(deps);
    return { ...stored, keep: unless('keeping', stored.keep, () => Promise.resolve()) };
  };
}

/** Methods of classes. The names that they are switched off by stand in front. */
export async function patchClasses(): Promise<void> {
  const [{ SegmentWriter }, { RecentRows }] = await Promise.all([import('#ledger/journal/segment-writer'), import('#ledger/journal/recent-rows')]);
  const done = Promise.resolve();
  patch(SegmentWriter.prototype, 'journal', { began: () => done, settled: () => done });
  patch(RecentRows.prototype, 'shipping', { add: () => {} });
  patch(ServerResponse.prototype, 'headers', {
    writeHead(this: ServerResponse, status: number, headers?: readonly string[]) {
      if (!Array.isArray(headers)) return writeHead.call(this, status); // that of the switch itself
      const at = headers.indexOf('content-length');
      return writeHead.call(this, status, ['content-type', 'application/json', 'content-length', headers[at + 1]!]);
    },
  });
}

const { writeHead } = ServerResponse.prototype;

function patch(prototype: object, name: string, methods: Record<string, Any>): void {
  const own = prototype as Record<string, Any>;
  for (const [method, least] of Object.entries(methods)) {
    const original = own[method]!;
    own[method] = function (this: unknown, ...words) {
      return (off.has(name) ? least : original).apply(this, words);
    };
  }
}
