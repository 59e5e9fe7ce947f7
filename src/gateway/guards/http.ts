import { parseJson } from '#kit/json/scan';
import type { Upstreams } from '#kit/upstream/pool';
import { Fault } from '#core/fault';
import { isObject } from '#core/json';
import type { CheckSettings, Evaluate, EvaluationContext, Verdict } from './check.ts';

/** Longest wait in seconds, for the head of the response and between its pieces. */
const patience = 5;
/** Concurrent requests per call. */
const atOnce = 8;
/** Most texts per call; each is a request of its own. */
const mostTexts = 1000;
const answerBytes = 67_108_864;

/**
 * Sends each text to an address of the operator: `{when, text, model, user}`, answered by `{action?, text?}`. `action` is allow, deny, mask or flag; without
 * one, a changed text means the action of the settings.
 */
export function http({ name, url: address = '', action }: CheckSettings, upstreams: Upstreams): Evaluate {
  const url = new URL(address);
  return async (texts, at) => {
    const pending = [...new Set(texts)];
    if (pending.length > mostTexts) throw new Fault('too-large', `The request has more texts than the check "${name}" accepts (${mostTexts}).`);
    const verdicts = new Map<string, Verdict>();
    const ask = async () => {
      try {
        for (let text = pending.shift(); text !== undefined; text = pending.shift()) if (text !== '') verdicts.set(text, await about(text, at));
      } catch (error) {
        pending.length = 0; // the outcome is known: the remaining texts are skipped
        throw error;
      }
    };
    await Promise.all(Array.from({ length: atOnce }, ask));
    return texts.map((text) => verdicts.get(text));
  };

  async function about(text: string, { when, call, context }: EvaluationContext): Promise<Verdict> {
    const response = await upstreams.post({
      url,
      path: url.pathname,
      headers: { 'content-type': 'application/json', accept: 'application/json', 'accept-encoding': 'identity', 'x-request-id': context.requestId },
      body: JSON.stringify({ when, text, model: call.model, user: context.caller.email }),
      signal: context.signal,
      headSeconds: patience,
      quietSeconds: patience,
    });
    try {
      if (!response.ok) throw new Error(`The check's address answered with status ${response.status}.`);
      return verdictOf(parseJson(await response.whole(answerBytes)), text);
    } finally {
      response.leave();
    }
  }

  function verdictOf(answer: unknown, text: string): Verdict {
    if (!isObject(answer)) throw new Error("The check's address answered with something else than an object.");
    const { action: chosen = null, text: left = null } = answer;
    if (left !== null && typeof left !== 'string') throw new Error("The check's address answered with a text that is none.");
    const effective = chosen ?? (left === null || left === text ? 'allow' : action);
    if (effective === 'allow') return undefined;
    if (effective === 'deny' || effective === 'flag') return { action: effective };
    if (effective === 'mask' && left !== null) return { action: effective, text: left };
    throw new Error("The check's address answered with an action that it cannot mean.");
  }
}
