import cluster, { type Worker } from 'node:cluster';
import { openChannel, type Answers, type Channel } from '#kit/ipc/channel';
import { refusals, type WorkerAnswers } from './ipc.ts';

export interface WorkerHandle {
  /** Unique for the life of this process. */
  readonly name: string;
  readonly channel: Channel<WorkerAnswers>;
  /** True once its channel is closed, and before it is open. */
  readonly isGone: boolean;
  /** Kills it; the pool replaces it. */
  kill(): void;
}

/** The answers of the parent to a worker of this name. The channel is open by the time of the first request. */
export type AnswersFor = (name: string, channel: () => Channel<WorkerAnswers>) => Answers;

/** Forks a worker of the program that `setupPrimary` named. */
export function forkWorker(name: string, answersFor: AnswersFor): { readonly handle: WorkerHandle; readonly worker: Worker } {
  const worker = cluster.fork();
  const channel: Channel<WorkerAnswers> = openChannel(
    wireTo(worker),
    answersFor(name, () => channel),
    refusals,
  );
  const handle: WorkerHandle = {
    name,
    channel,
    get isGone() {
      return !worker.isConnected();
    },
    kill: () => void worker.process.kill('SIGKILL'),
  };
  return { handle, worker };
}

function wireTo(worker: Worker) {
  worker.on('error', () => {}); // an error of its channel, which then closes
  return {
    send: (message: object) => void worker.send(message, undefined, () => undefined),
    onMessage: (listen: (message: unknown) => void) => void worker.on('message', listen),
    onClose: (listen: () => void) => void worker.once('disconnect', listen),
  };
}
