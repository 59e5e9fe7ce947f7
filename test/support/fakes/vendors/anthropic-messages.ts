/** What Claude's messages refuse. */
import { claudeOf } from './anthropic-models.ts';
import { unfitForClaude } from './anthropic-schema.ts';
import { others } from './chat-rules.ts';
import { first, has, list, rule, type Any, type Refusal, type Rule, words } from './vendor.ts';

/** What every signature of ours begins with. */
export const mark = 'EqQBclaude-signed-';

// https://platform.claude.com/docs/en/api/messages
const fields = words(`
  cache_control container context_management inference_geo max_tokens mcp_servers messages metadata model output_config output_format
  service_tier speed stop_sequences stream system temperature thinking tool_choice tools top_k top_p
`);
const toolFields = words('name description input_schema cache_control type strict defer_loading allowed_callers input_examples eager_input_streaming');
const blockFields: Readonly<Record<string, readonly string[]>> = {
  text: ['type', 'text', 'cache_control', 'citations'],
  image: ['type', 'source', 'cache_control'],
  document: ['type', 'source', 'title', 'context', 'citations', 'cache_control'],
  tool_use: ['type', 'id', 'name', 'input', 'cache_control', 'caller'],
  tool_result: ['type', 'tool_use_id', 'content', 'is_error', 'cache_control'],
  thinking: ['type', 'thinking', 'signature'],
  redacted_thinking: ['type', 'data'],
};

const reference = 'https://platform.claude.com/docs/en/api/messages';
const thinkingDocs = 'Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking';
const extra = (at: string) => `${at}: Extra inputs are not permitted`;
const blocks = (content: Any): Any[] => (typeof content === 'string' ? [{ type: 'text', text: content }] : list(content));
const forces = ({ tool_choice: choice }: Any) => choice?.type === 'any' || choice?.type === 'tool';

export const messagesRules: readonly Rule[] = [
  rule('max_tokens is required', reference, ({ body }) => !has(body.max_tokens) && 'max_tokens: Field required'),
  rule('unknown fields', reference, ({ body }) => {
    const [name] = others(body, fields);
    if (name !== undefined) return extra(name);
    const [inMetadata] = others(body.metadata, ['user_id']);
    return inMetadata !== undefined && extra(`metadata.${inMetadata}`);
  }),
  rule('unknown members of messages and blocks', reference, ({ body }) =>
    first<Any, string>(body.messages, (message, at) => {
      const [name] = others(message, ['role', 'content', 'output_config']);
      if (name !== undefined) return extra(`messages.${at}.${name}`);
      return first<Any, string>(blocks(message.content), (block, place) => {
        const [stranger] = others(block, blockFields[block.type] ?? Object.keys(block));
        return stranger !== undefined && extra(`messages.${at}.content.${place}.${block.type}.${stranger}`);
      });
    }),
  ),
  rule('unknown members of tools', reference, ({ body }) =>
    first<Any, string>(body.tools, (tool, at) => {
      const [name] = others(tool, has(tool.type) && tool.type !== 'custom' ? Object.keys(tool) : toolFields);
      return name !== undefined && extra(`tools.${at}.custom.${name}`);
    }),
  ),
  rule('there is a message', 'BerriAI/litellm#13769', ({ body }) => list(body.messages).length === 0 && 'messages: at least one message is required'),
  rule('roles', 'anomalyco/opencode#43180', ({ model, body }) =>
    first<Any, string>(body.messages, (message, at) => strangeRole(model, list(body.messages), message, at)),
  ),
  rule('something is said', 'BerriAI/litellm#13769', ({ body }) =>
    first<Any, string>(body.messages, (message, at) => nothingSaid(message, at, list(body.messages).length)),
  ),
  rule('something is said by the system', reference, ({ body: { system } }) =>
    Array.isArray(system) && system.some(({ text }) => String(text ?? '').trim() === '') ? 'system: text content blocks must be non-empty' : undefined,
  ),
  rule('no whitespace at the end of what the model is to go on from', 'vercel/ai#12296', ({ body }) => {
    const last = list(body.messages).at(-1);
    const block = last?.role === 'assistant' ? blocks(last.content).at(-1) : undefined;
    return block?.type === 'text' && /\s$/.test(block.text) && 'messages: final assistant content cannot end with trailing whitespace';
  }),
  rule('no prefill', 'vercel/ai#12296', ({ model, body }) => {
    const isPrefill = list(body.messages).findLast(({ role }) => role !== 'system')?.role === 'assistant';
    return isPrefill && !claudeOf(model).prefill && 'This model does not support assistant message prefill. The conversation must end with a user message.';
  }),
  rule('each tool_use has its tool_result at the front of the next message', reference, ({ body }) => unanswered(list(body.messages))),
  rule('ids of calls', 'maximhq/bifrost#5097', ({ body }) =>
    first<Any, string>(body.messages, ({ content }, at) =>
      first<Any, string>(list(content), ({ type, id }, place) => {
        if (type !== 'tool_use' || /^[a-zA-Z0-9_-]+$/.test(String(id))) return undefined;
        return `messages.${at}.content.${place}.tool_use.id: String should match pattern '^[a-zA-Z0-9_-]+$'`;
      }),
    ),
  ),
  rule('sources of documents and images', 'BerriAI/litellm#13769', ({ body }) =>
    first<Any, Refusal | string>(body.messages, ({ content }, at) =>
      first<Any, Refusal | string>(list(content), (block, place) => strangeSource(block, `messages.${at}.content.${place}`)),
    ),
  ),
  rule('temperature to 1', reference, ({ body: { temperature } }) => has(temperature) && (temperature < 0 || temperature > 1) && 'temperature: range: 0..1'),
  rule('no sampling, or not both', 'BerriAI/litellm#15097', ({ model, body }) => {
    const { sampling } = claudeOf(model);
    if (sampling === 'one' && has(body.temperature) && has(body.top_p))
      return '`temperature` and `top_p` cannot both be specified for this model. Please use only one.';
    const field = sampling === 'none' && ['temperature', 'top_p', 'top_k'].find((name) => has(body[name]));
    return field && `\`${field}\` is deprecated for this model.`;
  }),
  rule('stop sequences say something', 'BerriAI/litellm#3286', ({ body }) =>
    list(body.stop_sequences).some((text) => String(text).trim() === '') ? 'stop_sequences: each stop sequence must contain non-whitespace' : undefined,
  ),
  rule('thinking as the model can', 'vercel/ai#15674', ({ model, body: { thinking } }) => {
    const { disabled, budgets, adaptive } = claudeOf(model);
    const instead = 'Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.';
    if (thinking?.type === 'disabled' && !disabled) return `"thinking.type.disabled" is not supported for this model. ${instead}`;
    if (thinking?.type === 'enabled' && !budgets) return `"thinking.type.enabled" is not supported for this model. ${instead}`;
    return thinking?.type === 'adaptive' && !adaptive && 'adaptive thinking is not supported on this model';
  }),
  rule('efforts', 'TauricResearch/TradingAgents#831', ({ model, body: { output_config: output } }) => {
    const { efforts } = claudeOf(model);
    if (!has(output?.effort) || efforts.includes(output.effort)) return undefined;
    if (efforts.length === 0) return 'This model does not support the effort parameter.';
    return `output_config.effort: Input should be ${efforts
      .map((one) => `'${one}'`)
      .join(', ')
      .replace(/, (?='\w+'$)/, ' or ')}`;
  }),
  rule('budgets', 'https://platform.claude.com/docs/en/build-with-claude/extended-thinking', ({ body }) => {
    const { thinking, max_tokens: most, temperature, top_k: topK, top_p: topP } = body;
    if (thinking?.type !== 'enabled') return undefined;
    if (!(thinking.budget_tokens >= 1024)) return 'thinking.enabled.budget_tokens: Input should be greater than or equal to 1024';
    if (thinking.budget_tokens >= most)
      return `\`max_tokens\` must be greater than \`thinking.budget_tokens\`. ${thinkingDocs}#max-tokens-and-context-window-size`;
    if (has(temperature) && temperature !== 1) return `\`temperature\` may only be set to 1 when thinking is enabled. ${thinkingDocs}`;
    if (has(topK)) return `\`top_k\` must be unset when thinking is enabled. ${thinkingDocs}`;
    if (has(topP) && topP < 0.95) return `\`top_p\` must be greater than or equal to 0.95 or unset when thinking is enabled. ${thinkingDocs}`;
    return withoutThought(list(body.messages));
  }),
  rule('no message ends with a thought', 'tailcallhq/forgecode#2107', ({ body }) =>
    first<Any, string>(body.messages, ({ role, content }, at) => {
      const type = list(content).at(-1)?.type;
      return role === 'assistant' && (type === 'thinking' || type === 'redacted_thinking')
        ? `messages.${at}: The final block in an assistant message cannot be \`${type}\`.`
        : undefined;
    }),
  ),
  rule('signatures are our own', reference, ({ body }) =>
    first<Any, string>(body.messages, ({ content }, at) =>
      first<Any, string>(list(content), ({ type, signature }, place) =>
        type === 'thinking' && !String(signature).startsWith(mark) ? `messages.${at}.content.${place}: Invalid \`signature\` in \`thinking\` block` : undefined,
      ),
    ),
  ),
  rule('no forced tool', 'vercel/ai#21364', ({ model, body }) =>
    forces(body) && !claudeOf(model).forced ? 'tool_choice: type "tool" and "any" are not supported for this model.' : undefined,
  ),
  rule('no forced tool while thinking', 'langchain-ai/langchain#35544', ({ body }) => {
    const isThinking = body.thinking?.type === 'enabled' || body.thinking?.type === 'adaptive';
    return forces(body) && isThinking && 'Thinking may not be enabled when tool_choice forces tool use.';
  }),
  rule('a choice needs tools', reference, ({ body }) => {
    const { tool_choice: choice } = body;
    const tools = list(body.tools);
    if (!has(choice) || choice.type === 'none') return undefined;
    if (tools.length === 0) return 'tool_choice: tool_choice may only be specified while providing tools.';
    return choice.type === 'tool' && !tools.some(({ name }) => name === choice.name) && `Tool '${choice.name}' not found in provided tools`;
  }),
  rule('names of tools', 'langchain-ai/langchain-mcp-adapters#343', ({ body }) => {
    const unfit = (name: unknown) => !/^[a-zA-Z0-9_-]{1,128}$/.test(String(name));
    const says = "String should match pattern '^[a-zA-Z0-9_-]{1,128}$'";
    return (
      first<Any, string>(body.tools, ({ name }, at) => unfit(name) && `tools.${at}.custom.name: ${says}`) ??
      first<Any, string>(body.messages, ({ content }, at) =>
        first<Any, string>(
          list(content),
          ({ type, name }, place) => type === 'tool_use' && unfit(name) && `messages.${at}.content.${place}.tool_use.name: ${says}`,
        ),
      )
    );
  }),
  rule('schemas of tools', 'BerriAI/litellm#35808', ({ body }) =>
    first<Any, string>(body.tools, ({ type = 'custom', input_schema: schema, strict }, at) => {
      if (type !== 'custom') return undefined;
      if (schema?.type !== 'object')
        return `tools.${at}.custom.input_schema.type: ${schema?.type === undefined ? 'Field required' : "Input should be 'object'"}`;
      const unfit = strict === true && unfitForClaude(schema);
      return unfit && `tools.${at}.custom: ${unfit}`;
    }),
  ),
  rule('schema of the answer', 'BerriAI/litellm#35808', ({ body: { output_config: output } }) => {
    const unfit = output?.format?.type === 'json_schema' && unfitForClaude(output.format.schema);
    return unfit && `output_config.format.schema: ${unfit}`;
  }),
  rule('at most four cache breakpoints', 'https://platform.claude.com/docs/en/build-with-claude/prompt-caching', ({ body }) => {
    const found = [body, ...list(body.system), ...list(body.tools), ...list(body.messages).flatMap(({ content }) => list(content))].filter(
      ({ cache_control }) => has(cache_control),
    );
    return found.length > 4 && `A maximum of 4 blocks with cache_control may be provided. Found ${found.length}.`;
  }),
];

function strangeRole(model: string, all: readonly Any[], { role }: Any, at: number): string | undefined {
  if (role === 'user' || role === 'assistant') return undefined;
  if (role !== 'system') return `messages.${at}.role: Input should be 'user' or 'assistant'`;
  if (!claudeOf(model).system)
    return `messages.${at}.role: Unexpected role "system". The Messages API accepts a top-level \`system\` parameter, not "system" as an input message role.`;
  if (at === 0) return 'messages.0.role: "system" messages may not be first. Use the top-level `system` parameter.';
  const next = all[at + 1]?.role;
  if (all[at - 1].role === 'user' && (next === undefined || next === 'assistant')) return undefined;
  return `messages.${at}.role: "system" messages must follow a user turn, at the end or before an assistant turn`;
}

function nothingSaid({ role, content }: Any, at: number, count: number): string | undefined {
  const all = blocks(content);
  if (role === 'user' && (content === '' || all.length === 0)) return `messages.${at}: user messages must have non-empty content`;
  if (role === 'assistant' && all.length === 0 && at < count - 1)
    return `messages.${at}: all messages must have non-empty content except for the optional final assistant message`;
  const texts = all.flatMap((block) => (block.type === 'text' ? [String(block.text ?? '')] : []));
  if (texts.includes('') && Array.isArray(content)) return 'messages: text content blocks must be non-empty';
  return texts.some((text) => text.trim() === '') && all.length > 0 && content !== ''
    ? 'messages: text content blocks must contain non-whitespace text'
    : undefined;
}

function unanswered(all: readonly Any[]): string | undefined {
  const idsOf = (message: Any) => list(message?.content).flatMap(({ type, id }) => (type === 'tool_use' ? [id] : []));
  const merged = all.filter(({ role }) => role !== 'system');
  for (const [at, message] of merged.entries()) {
    const calls = idsOf(message);
    const next = list(merged[at + 1]?.content);
    const end = next.findIndex(({ type }) => type !== 'tool_result');
    const answered = new Set((end < 0 ? next : next.slice(0, end)).map(({ tool_use_id: id }) => id as unknown));
    const left = calls.filter((id) => !answered.has(id));
    if (left.length > 0)
      return `messages.${at}: \`tool_use\` ids were found without \`tool_result\` blocks immediately after: ${left.join(', ')}. Each \`tool_use\` block must have a corresponding \`tool_result\` block in the next message.`;
    const before = idsOf(merged[at - 1]);
    const unasked = list(message.content).findIndex(({ type, tool_use_id: id }) => type === 'tool_result' && !before.includes(id));
    if (unasked >= 0)
      return `messages.${at}.content.${unasked}: unexpected \`tool_use_id\` found in \`tool_result\` blocks: ${message.content[unasked].tool_use_id}. Each \`tool_result\` block must have a corresponding \`tool_use\` block in the previous message.`;
  }
  return undefined;
}

function withoutThought(all: readonly Any[]): string | undefined {
  const last = all.findLastIndex(({ role }) => role === 'assistant');
  const begins = list(all[last]?.content)[0]?.type;
  const isLoop = list(all.at(-1)?.content).some(({ type }) => type === 'tool_result') || last === all.length - 1;
  if (last < 0 || !isLoop || begins === 'thinking' || begins === 'redacted_thinking') return undefined;
  return `messages.${last}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${begins ?? 'text'}\`. When \`thinking\` is enabled, a final \`assistant\` message must start with a thinking block (preceeding the lastmost set of \`tool_use\` and \`tool_result\` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable \`thinking\`.`;
}

function strangeSource({ type, source, content }: Any, at: string): Refusal | string | undefined {
  if (type === 'tool_result') return first<Any, Refusal | string>(list(content), (block, place) => strangeSource(block, `${at}.content.${place}`));
  if (type !== 'document' && type !== 'image') return undefined;
  if (source?.type === 'file' && !String(source.file_id).startsWith('file_')) return { status: 404, message: `File not found: ${source.file_id}` };
  if (source?.type !== 'base64') return undefined;
  const images = ['image/jpeg', 'image/png', 'image/gif', 'image/webp'];
  if (type === 'document' && source.media_type !== 'application/pdf') return `${at}.document.source.base64.media_type: Input should be 'application/pdf'`;
  if (type === 'image' && !images.includes(source.media_type))
    return `${at}.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'`;
  return undefined;
}
