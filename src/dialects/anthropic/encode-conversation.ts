import type { Turn } from '#core/conversation';
import { Fault } from '#core/fault';
import { own, textOf, type Json, type JsonObject } from '#core/json';
import { cacheBreakpoint, encodeParts, shortened, withBreakpoint, type Notes } from './encode-messages.ts';
import type { Quirks } from './quirks.ts';
import { dialect } from './wire.ts';

/** Messages, and the system text before them. */
interface Encoded {
  readonly system?: Json;
  readonly messages: readonly JsonObject[];
}

interface Conversation extends Pick<Quirks, 'innerSystem' | 'withoutPrefill'> {
  readonly turns: readonly Turn[];
  /** What the gateway has to tell the model besides. */
  readonly instructions: readonly string[];
}

interface Draft {
  readonly role: 'system' | 'user' | 'assistant';
  readonly content: JsonObject[];
  readonly carried: JsonObject;
  /** A client of this wire put the system message here: it stays unchanged. */
  readonly isFixed: boolean;
  /** Its client wrote it without content. */
  readonly isBare?: boolean;
  /** What of it cannot be sent, as a sentence. */
  lost?: string | undefined;
}

/**
 * Turns → `system` and `messages`. System turns at the front are the system text; a later one stays in its place, as a system message where the model accepts
 * that and else as text of the user. Consecutive turns of one role become one message, with tool results first, as the wire requires.
 * https://platform.claude.com/docs/en/build-with-claude/mid-conversation-system-messages
 * @throws Fault `invalid` where nothing of a message can be sent
 */
export function encodeConversation({ turns, instructions, innerSystem, withoutPrefill }: Conversation, notes: Notes): Encoded {
  const drafts = turns
    .map((turn) => draftOf(turn, innerSystem !== false, notes))
    .filter(({ role, content, isFixed }) => role === 'user' || isFixed || content.length > 0);
  const system: JsonObject[] = [];
  const messages = placed(drafts, innerSystem === true, system, notes);
  if (notes.isTranslated) finishPrefill(messages, withoutPrefill === true, notes);
  if (messages.length === 0) messages.push(newDraft('user', system.splice(0)));
  system.push(...instructions.map((text) => ({ type: 'text', text })));
  return { ...(system.length > 0 ? { system: shortened(system) } : {}), messages: messages.map(messageOf) };
}

const newDraft = (role: Draft['role'], content: JsonObject[]): Draft => ({ role, content, carried: {}, isFixed: false });

function draftOf(turn: Turn, mayBeFixed: boolean, notes: Notes): Draft {
  const { '.message': isOwn, ...carried } = own(turn.extra, dialect);
  notes.lost = undefined;
  const content = withBreakpoint(encodeParts(turn, notes), cacheBreakpoint(turn.extra, notes));
  const role = turn.role === 'model' ? 'assistant' : turn.role;
  return { role, content, carried, isFixed: isOwn !== undefined && mayBeFixed, isBare: isOwn === 'bare', lost: notes.lost };
}

/** The drafts as messages, neighbours of one role together. @param system takes the system text at the front */
function placed(drafts: readonly Draft[], acceptsSystem: boolean, system: JsonObject[], { ignored }: Notes): Draft[] {
  const messages: Draft[] = [];
  const following = rolesAfter(drafts);
  for (const [at, draft] of drafts.entries()) {
    const last = messages.at(-1);
    if (draft.role !== 'system' || draft.isFixed) {
      if (last?.role === draft.role && !draft.isFixed) {
        last.content.push(...draft.content);
        last.lost ??= draft.lost;
      } else messages.push({ ...draft, content: [...draft.content] });
    } else if (!last) system.push(...draft.content);
    else if (acceptsSystem && (last.role === 'user' || (last.role === 'system' && !last.isFixed)) && following[at] !== 'user') {
      if (last.role === 'system') last.content.push(...draft.content);
      else messages.push(newDraft('system', [...draft.content]));
    } else {
      ignored.add('system: a system message in the middle is sent as text of the user.');
      if (last.role === 'user') last.content.push(...draft.content);
      else messages.push(newDraft('user', [...draft.content]));
    }
  }
  return messages;
}

/** The role of the next message after each, system messages aside: a system message must not stand before one of the user. */
function rolesAfter(drafts: readonly Draft[]): readonly (Draft['role'] | undefined)[] {
  const roles: (Draft['role'] | undefined)[] = [];
  let next: Draft['role'] | undefined;
  for (let at = drafts.length - 1; at >= 0; at--) {
    roles[at] = next;
    if (drafts[at]!.role !== 'system') next = drafts[at]!.role;
  }
  return roles;
}

/** An answer that was begun must not end with white space; newer models do not go on with one. https://github.com/vercel/ai/issues/12296 */
function finishPrefill(messages: Draft[], isRefused: boolean, { ignored }: Notes): void {
  const last = messages.at(-1);
  const end = last?.content.at(-1);
  if (last?.role !== 'assistant' || end?.['type'] !== 'text') return;
  const text = textOf(end['text']);
  const trimmed = text.trimEnd();
  if (isRefused) {
    ignored.add('messages: this model does not continue an answer that was begun, so the user asks it to go on.');
    messages.push(newDraft('user', [{ type: 'text', text: 'Continue.' }]));
  } else if (trimmed.length < text.length) {
    ignored.add('messages: the provider accepts no white space at the end of an answer that was begun.');
    last.content[last.content.length - 1] = { ...end, text: trimmed };
  }
}

/** The wire refuses a message without content, and white space is none: a user that said nothing says a full stop. */
function messageOf({ role, content, carried, isFixed, isBare, lost }: Draft): JsonObject {
  const results = content.filter((block) => block['type'] === 'tool_result');
  const blocks = results.length === 0 ? content : [...results, ...content.filter((block) => block['type'] !== 'tool_result')];
  if (blocks.length > 0) return { ...carried, role, content: shortened(blocks) };
  if (isFixed) return { ...carried, role, ...(isBare ? {} : { content: [] }) };
  if (lost !== undefined) throw new Fault('invalid', `A message has nothing that the provider accepts: ${lost}`, { field: 'turns', elsewhere: true });
  return { ...carried, role, content: '.' };
}
