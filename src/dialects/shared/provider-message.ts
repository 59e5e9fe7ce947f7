import { Fault } from '#core/fault';
import { withoutHalf } from '#kit/text/surrogates';
import { outputLimitIn } from './output-limit.ts';

/** The provider's own message about a request that it refused, reduced to what a client may read. */

/** Characters of a provider's message that are scanned, and of its first sentence that are repeated. */
const readCharacters = 2000;
const sentenceCharacters = 300;

/** Statuses whose messages describe the request. Those of 401, 402, 403, 429 and 5xx describe the gateway and its account, and are never repeated. */
const requestStatuses = new Set([400, 404, 413, 422]);

/**
 * Appends the first sentence of the provider's message to a fault, where the status is one whose messages describe the request.
 * @param fault the refusal in the gateway's own words
 * @param status the provider's HTTP status
 * @param message the provider's message, unmasked
 */
export function withProviderMessage(fault: Fault, status: number, message: string): Fault {
  if (!requestStatuses.has(status) || fault.details.key) return fault;
  const sentence = firstSentence(message);
  const maxOutputTokens = fault.details.reason === 'context-length' ? undefined : outputLimitIn(message);
  const details = { ...fault.details, ...(maxOutputTokens === undefined ? {} : { maxOutputTokens }) };
  return sentence === undefined ? fault : new Fault(fault.code, `${fault.message} It says: ${sentence}`, { ...details, said: sentence });
}

/** The first sentence of a message, on one line and at most 300 characters; account ids, keys, e-mail addresses and host names in it are masked. */
export function firstSentence(message: string): string | undefined {
  const words = message
    .slice(0, readCharacters)
    .toWellFormed()
    .replaceAll(/[\p{Cf}\p{Co}\p{Cn}]/gu, '') // invisible characters can split a key in two, or reverse the text
    .trimStart()
    .split(/[\n\r\u2028\u2029]/, 1)[0]!
    .replaceAll(/\p{Cc}/gu, ' ')
    .split(' ')
    .filter((word) => word !== '');
  const end = words.findIndex((word) => endsSentence(word));
  const sentence = masked(end < 0 ? words : words.slice(0, end + 1)).join(' ');
  if (!/[\p{L}\p{N}]/u.test(sentence) || sentence.startsWith('<')) return undefined;
  return sentence.length <= sentenceCharacters ? sentence : `${withoutHalf(sentence.slice(0, sentenceCharacters - 1))}…`;
}

/** A full stop ends a sentence unless it ends an abbreviation. */
const endsSentence = (word: string) => /[.!?]["'`)\]”’]?$/.test(word) && !/^\(?(?:e\.g|i\.e|vs|etc|no|approx)\.$/i.test(word);

/** Words that a name follows: `organization org-x`, `project "x"`. */
const owners = /^(?:organi[sz]ations?|projects?|accounts?|tenants?|subscriptions?|workspaces?|customers?)$/i;
/** Words that may separate the two. */
const between = /^(?:id|ids|number|name|named|with|the|is|of|#)$/i;

function masked(words: readonly string[]): readonly string[] {
  let isOwner = false; // the word before announces a name
  return words.map((word) => {
    let text = '';
    // Even pieces may be a name; odd ones are delimiters.
    for (const [at, piece] of word.split(/([\s"'`“”‘’()[\]{}<>,;|\\]+)/).entries()) {
      const name = piece.slice(0, lengthOf(piece));
      if (name === '' || at % 2 === 1) {
        text += piece;
        continue;
      }
      text += (isOwner && isName(name, /["'`“‘]/.test(text)) ? '[…]' : hidden(name)) + piece.slice(name.length);
      isOwner = owners.test(name) || (isOwner && between.test(name));
    }
    return text;
  });
}

/** The length without trailing punctuation. */
function lengthOf(piece: string): number {
  let length = piece.length;
  while (length > 0 && '.:!?='.includes(piece[length - 1]!)) length--;
  return length;
}

/** Is the word after `project` its name, and not the next word of the sentence? */
const isName = (name: string, isQuoted: boolean) => !between.test(name) && (isQuoted || /[\d_-]/.test(name));

/** Masks addresses, secrets and identifiers in a piece. */
function hidden(piece: string): string {
  if (piece.includes('://')) return '[address]';
  if (/.@./.test(piece)) return '[e-mail address]';
  return piece
    .split('/')
    .map((part, at, parts) => (isSecret(part) || (at > 0 && owners.test(parts[at - 1]!)) ? '[…]' : part))
    .join('/')
    .split('=')
    .map((part, at, parts) => (isSecret(part) || (at > 0 && /(?:key|token|secret|password)$/i.test(parts[at - 1]!)) ? '[…]' : part))
    .join('=');
}

const isSecret = (part: string): boolean => part.length > 64 || keys.test(part) || ids.test(part) || isOpaque(part) || isHost(part);

const keys = /^(?:sk|pk|rk|gsk|xai|dgm|csk|hf|r8|fw|nvapi|pplx|ghp|tgp)[-_]|^(?:AIza|AKIA|ASIA|ya29|eyJ)/;
/** Ids of organisations, projects, accounts, users and keys, where a word begins like them (`user_id`, `org-level`) those with a digit; account numbers; UUIDs. */
const ids =
  /^(?:org-(?!(?:ids?|admin|scoped|based|roles?|policy|level|wide|owned|specific)$)|(?:proj|acct)_(?!(?:ids?|name|number|quota|limit|status)$))[A-Za-z0-9]|^(?:org|organization|proj|project|acct|account|user|cus|key|tenant)[-_](?=[^]{0,60}\d)|^\d{9,}$|:\d{9,}:|^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** A run of at least sixteen letters and digits, with both in it: no word of any language. */
const isOpaque = (part: string) => (part.match(/[A-Za-z0-9]{16,}/g) ?? []).some((run) => /\d/.test(run) && /[A-Za-z]/.test(run));

/** Top-level labels of host names. Field paths (`messages.0.content`) and model names (`gpt-4.1`) contain dots too. */
const topLevels = new Set(
  'com net org io ai dev app cloud edu gov int info biz xyz tech co me us uk de fr nl eu ch at se es it pl ru cn jp kr au ca br local localhost localdomain internal intranet lan corp home private svc cluster arpa example test invalid onion'.split(
    ' ',
  ),
);

function isHost(part: string): boolean {
  const [name = '', port] = part.split(':');
  if (/^\d{1,3}(?:\.\d{1,3}){3}$/.test(name) || /^localhost$/i.test(name)) return true;
  if (/^[0-9a-f:]{3,45}$/i.test(part) && part.split(':').length > 3) return true;
  const labels = name.split('.');
  if (labels.length < 2) return port !== undefined && /^\d{2,5}$/.test(port) && name.includes('-');
  if (!labels.every((label) => /^[A-Za-z0-9-]{1,63}$/.test(label))) return false;
  const last = labels.at(-1)!.toLowerCase();
  return topLevels.has(last) || (port !== undefined && /^\d{2,5}$/.test(port)) || (/^[a-z]{2,}$/.test(last) && labels.some((label) => label.includes('-')));
}
