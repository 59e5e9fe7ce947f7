import { encodeRequest } from '#dialects/openai-embeddings/request';
import { decodeResult } from '#dialects/openai-embeddings/result';
import { splice } from '#kit/json-scan';
import type { EmbedCall, Embedded } from '#model/embed';
import type { TargetContext } from '#model/generate';
import { whole } from '../asking.ts';
import { post, type Place } from './place.ts';

/** Vectors, with the client's own bytes where it speaks this dialect: only the model's name is put in. @throws Fault */
export async function embed(place: Place, call: EmbedCall, context: TargetContext): Promise<Embedded> {
  const { model } = place;
  const { lane } = call;
  const isPassed = lane?.dialect === 'openai-embeddings';
  const body = isPassed ? splice(lane.body, lane.places, { model: JSON.stringify(model) }) : JSON.stringify(encodeRequest(call, model));
  const answering = await post(place, 'embeddings', body, context);
  try {
    return decodeResult(await whole(answering), call, model, isPassed);
  } finally {
    answering.leave();
  }
}
