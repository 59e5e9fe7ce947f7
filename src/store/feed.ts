import type { Json } from '#core/json';
import type { StoreLog } from '#store/log';

/** `reset`: changes may have been missed, so what was kept by hearsay is to be read again. */
export type Change = { readonly type: 'change'; readonly payload: Json } | { readonly type: 'reset' };
export type Listener = (change: Change) => void;

/** The subscriptions of this process to the change feed, by topic. */
export interface Feed {
  subscribe(topic: string, listener: Listener): () => void;
  tell(topic: string, payload: Json): void;
  reset(): void;
}

export function feed(log: StoreLog): Feed {
  const topics = new Map<string, Set<Listener>>();
  const say = (topic: string, listeners: Iterable<Listener>, change: Change) => {
    for (const listener of Array.from(listeners)) {
      try {
        listener(change);
      } catch (error) {
        log.error({ err: error, topic }, 'a listener of the change feed failed');
      }
    }
  };
  return {
    subscribe(topic, listener) {
      const mine: Listener = (change) => listener(change);
      const listeners = topics.get(topic) ?? new Set();
      topics.set(topic, listeners.add(mine));
      return () => void listeners.delete(mine);
    },
    tell: (topic, payload) => say(topic, topics.get(topic) ?? [], { type: 'change', payload }),
    reset() {
      for (const [topic, listeners] of topics) say(topic, listeners, { type: 'reset' });
    },
  };
}
