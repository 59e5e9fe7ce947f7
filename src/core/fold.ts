import type { Citation, ForeignPart, MediaPart, Part, SearchPart } from './conversation.ts';
import type { FinishReason, GenerateEvent, Started, TokenLogprob, Usage } from './event.ts';
import type { Extra } from './json.ts';

/** A whole answer. */
export interface GenerateResult {
  readonly started: Started;
  readonly candidates: readonly Candidate[];
  readonly usage?: Usage;
}

export interface Candidate {
  readonly parts: readonly Part[];
  readonly reason: FinishReason;
  /** The provider's own finish reason. */
  readonly raw: string;
  readonly logprobs?: readonly TokenLogprob[];
  readonly extra?: Extra;
}

/** Folds the events of an answer. Adjacent pieces of the same kind become one part; the reason of a candidate without `finished` is `stop`. */
export function fold(events: Iterable<GenerateEvent>): GenerateResult {
  let started: Started = { type: 'started', model: '', ignored: [] };
  let usage: Usage | undefined;
  const drafts: Draft[] = [];
  const draft = (candidate: number) => (drafts[candidate] ??= { parts: [], calls: [], reason: 'stop', raw: '' });
  for (const event of events) {
    switch (event.type) {
      case 'started':
        started = event.usage ? begun(event) : event;
        break;
      case 'text':
      case 'thought':
      case 'refusal':
        say(draft(event.candidate), event);
        break;
      case 'tool-call': {
        const { calls, parts } = draft(event.candidate);
        const open = calls[event.call];
        if (open) open.json += event.json;
        else {
          const { id, name = '', json, custom, extra } = event;
          const call: Open<'tool-call'> = { type: 'tool-call', id, name, json, ...(custom ? { custom } : {}), ...(extra ? { extra } : {}) };
          calls[event.call] = call;
          parts.push(call);
        }
        break;
      }
      case 'part':
        if (!event.progress) addPart(draft(event.candidate).parts, event.part);
        break;
      case 'finished':
        Object.assign(draft(event.candidate), { reason: event.reason, raw: event.raw, ...(event.extra ? { extra: event.extra } : {}) });
        break;
      case 'usage':
        usage = event.usage;
        break;
      case 'passed':
        break;
      default:
        return event satisfies never;
    }
  }
  const candidates = Array.from(drafts, (one): Draft => one ?? { parts: [], calls: [], reason: 'stop', raw: '' }).map(
    ({ parts, reason, raw, logprobs, extra }) => ({
      parts,
      reason,
      raw,
      ...(logprobs ? { logprobs } : {}),
      ...(extra ? { extra } : {}),
    }),
  );
  return { started, candidates, ...(usage ? { usage } : {}) };
}

/** The usage at the beginning does not hold for a whole answer. */
const begun = ({ usage: _, ...started }: Started): Started => started;

type Open<Type extends Part['type']> = { -readonly [Key in keyof Extract<Part, { type: Type }>]: Extract<Part, { type: Type }>[Key] };

interface Draft {
  parts: (Open<'text'> | Open<'thought'> | Open<'refusal'> | Open<'tool-call'> | MediaPart | SearchPart | ForeignPart)[];
  calls: Open<'tool-call'>[];
  reason: FinishReason;
  raw: string;
  logprobs?: TokenLogprob[];
  extra?: Extra;
}

function say(draft: Draft, event: Extract<GenerateEvent, { type: 'text' | 'thought' | 'refusal' }>): void {
  if (event.type === 'text' && event.logprobs) (draft.logprobs ??= []).push(...event.logprobs);
  const extra: Extra | undefined = event.type === 'refusal' ? undefined : event.extra;
  const citations: readonly Citation[] | undefined = event.type === 'text' ? event.citations : undefined;
  const last = draft.parts.at(-1);
  if (last?.type === event.type && !('extra' in last) && !('citations' in last)) {
    last.text += event.text;
    if (extra && last.type !== 'refusal') last.extra = extra;
    if (citations && last.type === 'text') last.citations = citations;
  } else if (event.text !== '' || extra)
    draft.parts.push({ type: event.type, text: event.text, ...(citations ? { citations } : {}), ...(extra ? { extra } : {}) });
}

/** The second part of a search replaces the first. */
function addPart(parts: Draft['parts'], part: MediaPart | SearchPart | ForeignPart): void {
  const before = part.type === 'search' ? parts.findIndex((one) => one.type === 'search' && one.id === part.id) : -1;
  if (before < 0) parts.push(part);
  else parts[before] = part;
}
