import type { ToolCallPiece, Usage } from '#core/event';
import { isEmpty } from '#core/json';
import { codePoints } from '#kit/text/surrogates';
import type { Encoder } from '../../dialect.ts';
import { TextEnds } from '../../shared/text-ends.ts';
import { encodePart, encodeCallPiece, finishReasonOf, headOf, isOlderCall, isOwn, urlCitations, finalMembers, type Identity } from './encode-answer.ts';
import { encodeLogprobs } from '../logprobs.ts';
import { encodeUsage } from './usage.ts';

/** What an answer is encoded with in addition to its events. */
export interface ChatAnswer extends Identity {
  /** Did the client ask for the usage chunk of a stream? */
  readonly usageWanted: boolean;
  /** The client asked with `functions`: the first call of an answer is its `function_call`, which has no other. */
  readonly isOlder?: boolean;
}

/** Code points of the text in the finished parts, and in the open one. */
interface Place {
  before: number;
  open: number;
}

function closeText(place: Place | undefined): void {
  if (!place) return;
  place.before += place.open;
  place.open = 0;
}

/** Events → chunks. The first delta of each candidate has the role; usage, where requested, is a separate chunk before `[DONE]`. */
export function encoder(answer: ChatAnswer): Encoder {
  const { usageWanted, isOlder = false } = answer;
  let head = ''; // the start of every chunk, up to its choices
  let first = ''; // members that only the first chunk has
  let usage: Usage | undefined;
  const begun: boolean[] = []; // by candidate, as the next two
  const finished: boolean[] = [];
  const places: Place[] = [];
  const ends = new TextEnds();
  const tail = usageWanted ? ',"usage":null}\n\n' : '}\n\n';

  /** @param delta members of the delta, as JSON text without braces */
  const frame = (candidate: number, delta: string, logprobs = 'null', reason = 'null') => {
    const once = first;
    first = '';
    return `${head}${once},"choices":[{"index":${candidate},"delta":{${delta}},"logprobs":${logprobs},"finish_reason":${reason}}]${tail}`;
  };

  /** The members that a candidate's first delta begins with; '' for later ones. */
  const opening = (candidate: number, content: string) => {
    if (begun[candidate]) return '';
    begun[candidate] = true;
    return `"role":"assistant",${content}"refusal":null,`;
  };
  const openingWithout = (candidate: number) => opening(candidate, '"content":null,');

  return {
    encode(event) {
      if ('candidate' in event && ends.take(event)) closeText(places[event.candidate]);
      switch (event.type) {
        case 'started': {
          const { head: members, others } = headOf(event, answer, 'chat.completion.chunk');
          head = `data: ${JSON.stringify(members).slice(0, -1)}`;
          first = isEmpty(others) ? '' : `,${JSON.stringify(others).slice(1, -1)}`;
          return '';
        }
        case 'text': {
          const place = (places[event.candidate] ??= { before: 0, open: 0 });
          place.open += codePoints(event.text);
          const cited = event.citations && !isOwn(event.extra) ? `"annotations":${JSON.stringify(urlCitations(event.citations, place.before))}` : '';
          if (event.extra || event.citations) {
            closeText(place);
            if (event.text === '') return cited === '' ? '' : frame(event.candidate, openingWithout(event.candidate) + cited); // the end of a part
          }
          const logprobs = event.logprobs && JSON.stringify({ content: encodeLogprobs(event.logprobs, null), refusal: null });
          return frame(event.candidate, `${opening(event.candidate, '')}"content":${JSON.stringify(event.text)}${cited === '' ? '' : `,${cited}`}`, logprobs);
        }
        case 'thought':
          return event.text === '' ? '' : frame(event.candidate, `${openingWithout(event.candidate)}"reasoning_content":${JSON.stringify(event.text)}`);
        case 'refusal': {
          const role = begun[event.candidate] ? '' : '"role":"assistant","content":null,';
          begun[event.candidate] = true;
          return frame(event.candidate, `${role}"refusal":${JSON.stringify(event.text)}`);
        }
        case 'tool-call':
          if (isOlder && event.call > 0) return '';
          return frame(event.candidate, openingWithout(event.candidate) + toolCallDelta(event, isOlder));
        case 'part': {
          const part = event.part.type === 'media' ? encodePart(event.part) : undefined;
          return part ? frame(event.candidate, openingWithout(event.candidate) + JSON.stringify(part).slice(1, -1)) : '';
        }
        case 'finished': {
          if (finished[event.candidate]) return '';
          finished[event.candidate] = true;
          const { message, refusalLogprobs } = finalMembers(event.extra);
          const members = isEmpty(message) ? '' : JSON.stringify(message).slice(1, -1);
          const logprobs = refusalLogprobs === undefined ? undefined : JSON.stringify({ content: null, refusal: refusalLogprobs });
          const delta = opening(event.candidate, '"content":"",') + members;
          return frame(event.candidate, delta.replace(/,$/, ''), logprobs, JSON.stringify(finishReasonOf(event.reason, event.raw, isOlder)));
        }
        case 'usage':
          usage = event.usage;
          return '';
        case 'passed':
          return '';
        default:
          return event satisfies never;
      }
    },
    end: () => (usageWanted && usage ? `${head},"choices":[],"usage":${JSON.stringify(encodeUsage(usage))}}\n\n` : '') + 'data: [DONE]\n\n',
  };
}

function toolCallDelta(piece: ToolCallPiece, isOlder: boolean): string {
  const { name, json } = piece;
  if (isOlder || isOlderCall(piece))
    return `"function_call":{${name === undefined ? '' : `"name":${JSON.stringify(name)},`}"arguments":${JSON.stringify(json)}}`;
  return `"tool_calls":[${JSON.stringify(encodeCallPiece(piece))}]`;
}
