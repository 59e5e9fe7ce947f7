import { Fault } from '#core/fault';

/** A provider's own sentence about a request that it refused, as far as a client may read it. */

/** Of a provider's message so many characters are looked at, and so many of its first sentence are told. */
const readCharacters = 2000;
const toldCharacters = 300;

/** Statuses whose messages are about the request. Those of 401, 402, 403, 429 and 5xx are about us and our account, and are never passed on. */
const about = new Set([400, 404, 413, 422]);

/**
 * A refusal in our sentence, followed by the first sentence of the provider's own message.
 *
 * @param fault what the refusal means, in our sentence
 * @param status what the provider answered
 * @param message its own prose
 */
export function inOwnWords(fault: Fault, status: number, message: string): Fault {
  if (!about.has(status) || fault.details.key) return fault;
  const said = firstSentence(message);
  return said === undefined ? fault : new Fault(fault.code, `${fault.message} It says: ${said}`, { ...fault.details, said });
}

/** The first sentence of a message on one line, at most 300 characters, with what names accounts, keys, people and machines masked. */
export function firstSentence(message: string): string | undefined {
  const words = message
    .slice(0, readCharacters)
    .toWellFormed()
    .replaceAll(/[\p{Cf}\p{Co}\p{Cn}]/gu, '') // invisible ones could stand in the middle of a key, or turn the text around
    .trimStart()
    .split(/[\n\r\u2028\u2029]/, 1)[0]!
    .replaceAll(/\p{Cc}/gu, ' ')
    .split(' ')
    .filter((word) => word !== '');
  const end = words.findIndex((word) => endsSentence(word));
  const sentence = masked(end < 0 ? words : words.slice(0, end + 1)).join(' ');
  if (!/[\p{L}\p{N}]/u.test(sentence) || sentence.startsWith('<')) return undefined;
  return sentence.length <= toldCharacters ? sentence : `${sentence.slice(0, toldCharacters - 1).replace(/[\ud800-\udbff]$/, '')}…`;
}

/** A full stop ends a sentence unless it ends a short form. */
const endsSentence = (word: string) => /[.!?]["'`)\]”’]?$/.test(word) && !/^\(?(?:e\.g|i\.e|vs|etc|no|approx)\.$/i.test(word);

/** Words whose next one is a name: `organization org-x`, `project "x"`. */
const owners = /^(?:organi[sz]ations?|projects?|accounts?|tenants?|subscriptions?|workspaces?|customers?)$/i;
/** What may stand between the two. */
const between = /^(?:id|ids|number|name|named|with|the|is|of|#)$/i;

function masked(words: readonly string[]): readonly string[] {
  let isOwner = false; // the word before says whose name this is
  return words.map((word) => {
    let text = '';
    // Pieces of a word: what a name can be made of, and what stands between.
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

/** Without the punctuation at its end. */
function lengthOf(piece: string): number {
  let length = piece.length;
  while (length > 0 && '.:!?='.includes(piece[length - 1]!)) length--;
  return length;
}

/** Does the word behind `project` name one, rather than go on with the sentence? */
const isName = (name: string, isQuoted: boolean) => !between.test(name) && (isQuoted || /[\d_-]/.test(name));

/** A piece with what it names masked, if it names something. */
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

function isSecret(part: string): boolean {
  return part.length > 64 || keys.test(part) || ids.test(part) || isOpaque(part) || isHost(part);
}

const keys = /^(?:sk|pk|rk|gsk|xai|dgm|csk|hf|r8|fw|nvapi|pplx|ghp|tgp)[-_]|^(?:AIza|AKIA|ASIA|ya29|eyJ)/;
/** Of an account, an organisation, a project, a user, and of an account as a number. */
const ids =
  /^(?:org|organization|proj|project|acct|account|user|cus|key|tenant)[-_](?=[^]{0,60}\d)|^\d{9,}$|:\d{9,}:|^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/i;

/** Nobody makes up words like this: sixteen letters and digits in a row. */
const isOpaque = (part: string) => (part.match(/[A-Za-z0-9]{16,}/g) ?? []).some((run) => /\d/.test(run) && /[A-Za-z]/.test(run));

/** Last labels of names of machines. Paths of fields (`messages.0.content`) and names of models (`gpt-4.1`) have dots too. */
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
