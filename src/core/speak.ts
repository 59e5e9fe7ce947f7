import type { Context } from './context.ts';
import type { JsonObject } from './json.ts';
import type { Counts } from './price.ts';

/** A text to be spoken. */
export interface SpeakCall {
  /** As the client wrote it. */
  readonly model: string;
  readonly text: string;
  /** The name of a voice, or what a provider has in its place; absent: the target's first one. */
  readonly voice?: string | JsonObject;
  /** How it is to be spoken, in words. */
  readonly instructions?: string;
  /** BCP 47: of the text, for those that speak one language only. */
  readonly language?: string;
  /** 1 is the voice's own. */
  readonly speed?: number;
  /** The file format of the sound; absent: the target's own. */
  readonly format?: string;
  /** The sound is to come as server-sent events. */
  readonly asEvents?: true;
  /** Present where the client's bytes may be forwarded unparsed: one JSON object with the places of its members (kit/json/scan). */
  readonly passthrough?: { readonly bytes: Uint8Array; readonly places: readonly number[] };
}

export interface SoundSink {
  /** Called when the sound begins, with its content type, the model that speaks, and the fields of the call that it ignores, as `field: reason`. */
  open(head: { readonly contentType: string; readonly model: string; readonly ignored: readonly string[] }): void;
  /** @returns false when the client reads slowly: wait for `drained` before the next. */
  write(bytes: Uint8Array): boolean;
  drained(): Promise<void>;
}

/** Resolves when the sound has been written. @throws Fault */
export type Speak = (call: SpeakCall, sound: SoundSink, context: Context) => Promise<void>;

/** Characters that are spoken in a second. */
const charactersPerSecond = 15;

/** What speaking a text costs that is not counted in tokens. */
export function countsOfSpeech(text: string): Counts {
  let characters = 0;
  for (const _ of text) characters++;
  return { characters, spokenSeconds: characters / charactersPerSecond };
}
