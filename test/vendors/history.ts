/** What a request tells a model of a conversation, whatever the wire. */
import type { WireName } from '../support/fakes/vendors/vendor.ts';

// oxlint-disable-next-line typescript/no-explicit-any -- bodies of four wires
type Any = any;

export interface Told {
  readonly kind: 'system' | 'user' | 'model' | 'call' | 'result' | 'image' | 'file';
  /** A call as `name {arguments}`, a result as its call and `=> text`, media as base64. */
  readonly text: string;
}

export const historyOf = (wire: WireName, body: Any): readonly Told[] => joined({ chat, responses, messages, gemini }[wire](body));

/** Neighbouring texts of one speaker are one. */
function joined(told: readonly Told[]): readonly Told[] {
  const all: Told[] = [];
  for (const one of told) {
    const last = all.at(-1);
    if (last?.kind === one.kind && ['system', 'user', 'model'].includes(one.kind)) all[all.length - 1] = { ...last, text: last.text + one.text };
    else all.push(one);
  }
  return all;
}

const list = (value: Any): Any[] => (Array.isArray(value) ? value : []);
const textsIn = (content: Any): string =>
  typeof content === 'string'
    ? content
    : list(content)
        .map(({ text }) => text ?? '')
        .join('');
const inDataUrl = (url: string): string => /^data:[^,]*;base64,(.*)$/s.exec(url)?.[1] ?? url;

/** Results with the calls that they answer. */
class Calls {
  readonly #open: { readonly id: string | undefined; readonly name: string; readonly text: string }[] = [];

  called(name: string, args: string, id?: string): Told {
    const text = `${name} ${args}`;
    this.#open.push({ id, name, text });
    return { kind: 'call', text };
  }

  /** @param key the id of the call; its name where calls have no ids */
  answered(key: string, result: string): Told {
    const at = this.#open.findIndex(({ id, name }) => (id ?? name) === key);
    const [call] = at < 0 ? [] : this.#open.splice(at, 1);
    return { kind: 'result', text: `${call?.text ?? `nothing of ${key}`} => ${outputIn(result)}` };
  }
}

/** A client of Gemini gives objects back: `{"output": "text"}`. */
function outputIn(text: string): string {
  try {
    const { output, error } = JSON.parse(text);
    return typeof (output ?? error) === 'string' ? (output ?? error) : text;
  } catch {
    return text;
  }
}

function chat({ messages }: Any): readonly Told[] {
  const calls = new Calls();
  const parts = (content: Any, kind: Told['kind']): Told[] =>
    typeof content === 'string'
      ? [{ kind, text: content }]
      : list(content).map((part) => {
          if (part.type === 'image_url') return { kind: 'image', text: inDataUrl(part.image_url.url) };
          return part.type === 'file' ? { kind: 'file', text: inDataUrl(part.file.file_data) } : { kind, text: part.text };
        });
  return list(messages).flatMap(({ role, content, tool_calls, tool_call_id }): Told[] => {
    if (role === 'tool') return [calls.answered(tool_call_id, textsIn(content))];
    if (role === 'user') return parts(content, 'user');
    if (role !== 'assistant') return parts(content, 'system');
    return [...parts(content, 'model'), ...list(tool_calls).map(({ id, function: one }) => calls.called(one.name, one.arguments, id))];
  });
}

function responses({ instructions, input }: Any): readonly Told[] {
  const calls = new Calls();
  const parts = (content: Any, kind: Told['kind']): Told[] =>
    list(content).map((part) => {
      if (part.type === 'input_image') return { kind: 'image', text: inDataUrl(part.image_url) };
      return part.type === 'input_file' ? { kind: 'file', text: inDataUrl(part.file_data) } : { kind, text: part.text };
    });
  const told = list(input).flatMap((item): Told[] => {
    if (item.type === 'function_call') return [calls.called(item.name, item.arguments, item.call_id)];
    if (item.type === 'function_call_output')
      return [calls.answered(item.call_id, textsIn(item.output)), ...parts(item.output, 'result').filter(({ kind }) => kind !== 'result')];
    if (item.type === 'reasoning') return [];
    const kind = item.role === 'assistant' ? 'model' : item.role === 'user' ? 'user' : 'system';
    return typeof item.content === 'string' ? [{ kind, text: item.content }] : parts(item.content, kind);
  });
  return instructions ? [{ kind: 'system', text: instructions }, ...told] : told;
}

function messages({ system, messages: all }: Any): readonly Told[] {
  const calls = new Calls();
  const parts = (content: Any, kind: Told['kind']): Told[] =>
    typeof content === 'string'
      ? [{ kind, text: content }]
      : list(content).flatMap((block): Told[] => {
          switch (block.type) {
            case 'image':
            case 'document':
              return [{ kind: block.type === 'image' ? 'image' : 'file', text: block.source.data }];
            case 'tool_use':
              return [calls.called(block.name, JSON.stringify(block.input), block.id)];
            case 'tool_result':
              return [calls.answered(block.tool_use_id, textsIn(block.content)), ...parts(block.content, 'result').filter((one) => one.kind !== 'result')];
            default:
              return block.type === 'text' ? [{ kind, text: block.text }] : [];
          }
        });
  const kinds: Readonly<Record<string, Told['kind']>> = { user: 'user', assistant: 'model' };
  return [...parts(system, 'system'), ...list(all).flatMap(({ role, content }) => parts(content, kinds[role] ?? 'system'))];
}

function gemini({ systemInstruction, contents }: Any): readonly Told[] {
  const calls = new Calls();
  const media = ({ inlineData: { mimeType, data } }: Any): Told => ({ kind: mimeType.startsWith('image/') ? 'image' : 'file', text: data });
  const told = list(contents).flatMap(({ role, parts }) =>
    list(parts).flatMap((part): Told[] => {
      const { functionCall: call, functionResponse: result } = part;
      if (call) return [calls.called(call.name, JSON.stringify(call.args), call.id)];
      if (result) return [calls.answered(result.id ?? result.name, JSON.stringify(result.response)), ...list(result.parts).map(media)];
      if (part.inlineData) return [media(part)];
      return part.thought || part.text === undefined ? [] : [{ kind: role === 'model' ? 'model' : 'user', text: part.text }];
    }),
  );
  return [...list(systemInstruction?.parts).map(({ text }): Told => ({ kind: 'system', text })), ...told];
}
