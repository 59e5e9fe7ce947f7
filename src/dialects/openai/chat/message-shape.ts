import { isTranslated, type GenerateCall } from '#core/call';
import type { FaultDetails } from '#core/fault';
import type { Turn } from '#core/conversation';
import { isObject, own, type Json, type JsonObject } from '#core/json';
import { dialect } from './wire.ts';

/** The shape of messages that a provider or a chat template demands, whatever they say: their order, and how their text is written. */
export interface ShapeQuirks {
  /** `system-first`: one system message at the most, before all others. `roles-alternate`: besides, the user and the model take turns. Absent: any order. */
  readonly roleOrder?: RoleOrder;
  /** It accepts no system message. */
  readonly noSystem?: true;
  /** It accepts the texts of a message only as one string, and not as a list of parts. Clients of this wire have theirs sent as they wrote them. */
  readonly stringContent?: true;
}

type RoleOrder = 'system-first' | 'roles-alternate';

/** Learns from a refusal of messages in their shape. The texts of a client of this wire stay as it wrote them. */
export function shapeLearned<Known extends ShapeQuirks & { readonly developer?: boolean }>(
  details: FaultDetails,
  call: GenerateCall,
  known: Known,
): Known | undefined {
  const { reason } = details;
  const hasDeveloper = known.developer !== false && call.turns.some(isDeveloper);
  if (reason === 'roles-alternate' && known.roleOrder !== reason && (known.noSystem || !isInTurn(call.turns))) return { ...known, roleOrder: reason };
  const isInPlace = reason === 'system-first' && isInRoleOrder(call.turns, { roleOrder: reason });
  if (reason === 'system-first' && known.roleOrder === undefined && !(hasDeveloper && isInPlace)) return { ...known, roleOrder: reason };
  const isAboutRoles = reason === 'system-first' || reason === 'no-system' || reason === 'roles-alternate';
  if (isAboutRoles && hasDeveloper) return { ...known, developer: false }; // to templates it is no role, or one that they count among others
  const isAboutSystem = reason === 'no-system' || reason === 'roles-alternate'; // a template may count one among those that alternate: microsoft/autogen#1037
  if (isAboutSystem && !known.noSystem && call.turns.some(({ role }) => role === 'system')) return { ...known, noSystem: true };
  return known.stringContent === undefined && isTranslated(call, dialect) && refusesParts(details) ? { ...known, stringContent: true } : undefined;
}

/** Was the message sent with the role `developer`? */
export const isDeveloper = ({ extra }: Pick<Turn, 'extra'>): boolean => own(extra, dialect)['.role'] === 'developer';

/** Do the user and the model take turns, without tools, behind one system message at the most? */
const isInTurn = (turns: readonly Turn[]): boolean =>
  isInRoleOrder(turns, { roleOrder: 'roles-alternate' }) && !turns.some(({ parts }) => parts.some(({ type }) => type === 'tool-result'));

/** In the words of Groq, of servers in Rust, Go and TypeScript, and of pydantic, which says the same of any field: OpenHands/OpenHands#4643, musistudio/llms#25, 0x676e67/duckai#16 */
function refusesParts({ said = '', field = '', place = field }: FaultDetails): boolean {
  if (/content' : value must be a string|invalid type: sequence, expected a string|cannot unmarshal array into .{1,80}content of type string/i.test(said))
    return true;
  return (
    /^messages\b.{1,40}\bcontent\b/.test(place) && /should be a valid string|must be a string|expected (?:a )?string\b.{1,20}\b(?:array|list)\b/i.test(said)
  );
}

/** Are the turns of a client of this wire in the order that the provider demands? */
export const isInRoleOrder = (turns: readonly Turn[], { roleOrder, noSystem }: ShapeQuirks): boolean =>
  turns.every(({ role, parts }, at) => {
    if (role === 'system') return !noSystem && (roleOrder === undefined || at === 0);
    return roleOrder !== 'roles-alternate' || role !== turns[at - 1]?.role || parts.every(({ type }) => type === 'tool-result');
  });

/**
 * The messages in the roles and the order that the provider demands: system messages at the front as one, later ones, or all, as text of the user in their place
 * and, where roles alternate, neighbours of the user as one. What was joined has the other members of the first.
 */
export function inRoleOrder(messages: readonly JsonObject[], { roleOrder, noSystem }: ShapeQuirks, ignored: Set<string>): readonly JsonObject[] {
  if (!roleOrder && !noSystem) return messages;
  const runs: JsonObject[][] = [];
  for (const message of messages) {
    const last = runs.at(-1);
    const isRefused = isSystem(message) && (noSystem || (last !== undefined && !isSystem(last[0]!)));
    if (isRefused) ignored.add(`system: a system message${noSystem ? '' : ' in the middle'} is sent as text of the user.`);
    const one = isRefused ? { role: 'user', content: message['content']! } : message;
    if (last && (isSystem(one) || (roleOrder === 'roles-alternate' && isUser(one) && isUser(last[0]!)))) last.push(one);
    else runs.push([one]);
  }
  if (runs.some(hasOtherMembers)) ignored.add('messages: neighbours of one role are sent as one, which has the name and other members of the first.');
  return runs.map((run) => (run.length === 1 ? run[0]! : { ...run[0], content: joinedContent(run) }));
}

const isSystem = ({ role }: JsonObject): boolean => role === 'system' || role === 'developer';

/** Do later ones of what becomes one message have members that the first has not? What becomes of their roles and contents is known. */
const hasOtherMembers = ([first, ...others]: readonly JsonObject[]): boolean =>
  others.some((one) => Object.keys(one).some((name) => name !== 'role' && name !== 'content' && one[name] !== first![name]));

const isUser = ({ role }: JsonObject): boolean => role === 'user';

function joinedContent(run: readonly JsonObject[]): Json {
  const contents = run.map(({ content }) => content!);
  if (contents.every((content) => typeof content === 'string')) return paragraphs(contents);
  return contents.flatMap((content) => {
    if (Array.isArray(content)) return content as readonly Json[];
    return typeof content === 'string' && content !== '' ? [{ type: 'text', text: content }] : [];
  });
}

/** The messages with their texts as one string, where they have nothing else, such as an image or a cache breakpoint. */
export const withStrings = (messages: readonly JsonObject[]): readonly JsonObject[] =>
  messages.map((message) => {
    const { role, content } = message;
    if (!Array.isArray(content)) return message;
    const texts = textsAlone(content as readonly Json[]);
    return texts ? { ...message, content: role === 'tool' ? texts.join('\n') : paragraphs(texts) } : message;
  });

function textsAlone(content: readonly Json[]): readonly string[] | undefined {
  const texts: string[] = [];
  for (const part of content) {
    if (!isObject(part) || part['type'] !== 'text' || typeof part['text'] !== 'string' || Object.keys(part).length > 2) return undefined;
    texts.push(part['text']);
  }
  return texts;
}

const paragraphs = (texts: readonly string[]): string => texts.filter((text) => text !== '').join('\n\n');
