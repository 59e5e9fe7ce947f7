import { Type, type TSchema } from 'typebox';

/** How the answer of an operation is wrapped: `{response, status}`, as recorded clients know it. */
export interface Envelope {
  /** Of some operations it is a text. */
  readonly status: 200 | '200' | 202;
  /** The `response`; absent: what the operation answers. */
  readonly says?: string;
  /** Where it says something itself: what the operation answers stands beside that. */
  readonly beside?: true;
  /** Its whole answer is sent as plain text, as its clients know it. */
  readonly isText?: true;
  /** It answers with bytes, such as a sound, in no envelope. */
  readonly isBytes?: true;
  /** What it answers may be megabytes of text: it is written in several turns of the event loop. */
  readonly large?: true;
}

/** By the first address of each operation. */
export const envelopes: Readonly<Record<string, Envelope>> = {
  'POST /user/get-token-with-api-key': { status: '200' },
  'POST /user/get-token': { status: '200' },
  'POST /user/get-user-logins': { status: '200' },
  'POST /user/get-user-logs': { status: '200' },
  'POST /user/get-user-api-keys': { status: '200' },
  'POST /user/user-api-key': { status: 200, says: 'Success', beside: true },
  'DELETE /user/user-api-key': { status: '200', says: 'OK' },
  'POST /server/count-monthly-tokens': { status: 200 },
  'POST /server/count-monthly-teach-tokens': { status: 200 },
  'POST /server/count-monthly-tokens-left-with-org': { status: 200 },
  'POST /user/validate_token_with_full_user': { status: 200 },
  'POST /server/get-models': { status: 200, beside: true },
  'POST /server/tokenizer': { status: 200, beside: true },
  'POST /server/get-personas': { status: 200 },
  'POST /server/get-secrets': { status: 200 },
  'POST /server/add-mcp-server': { status: 200, beside: true },
  'PUT /server/update-mcp-server': { status: 200, says: 'MCP server updated successfully' },
  'DELETE /server/delete-mcp-server': { status: 200, says: 'MCP server deleted successfully' },
  'POST /server/list-mcp-servers': { status: 200, beside: true },
  'POST /server/list-mcp-whitelisted-servers': { status: 200 },
  'POST /server/list-mcp-tools': { status: 200, beside: true, large: true },
  'POST /server/file': { status: 200, says: 'OK', beside: true, large: true },
  'POST /server/query': { status: 200, says: 'OK', beside: true },
  'POST /server/query_stream': { status: 200, says: 'OK', beside: true },
  'POST /server/query_with_file': { status: 200, says: 'OK', beside: true },
  'POST /server/query-plugin': { status: 200, says: 'OK', beside: true },
  'POST /server/get-plugins': { status: 200 },
  'POST /server/execute-plugin': { status: 200, says: 'OK', beside: true, isText: true },
  'POST /server/execute-plugin-with-file': { status: 200, says: 'OK', beside: true },
  'POST /server/list-agents': { status: 200, beside: true },
  'POST /server/execute-agent': { status: 200, beside: true },
  'POST /server/get-deep-agent': { status: 200, isBytes: true },
  'POST /server/get-text-to-speech': { status: 200, isBytes: true },
  'POST /server/list-tts-voices': { status: 200, beside: true },
  'POST /server/follow-up-questions': { status: 200, says: 'OK', beside: true },
  'POST /user/get-chats': { status: 200, beside: true },
  'POST /user/get-chat-session': { status: 200, beside: true, large: true },
  'POST /user/delete-chat-session': { status: 200, says: 'Chat session deleted' },
  'POST /user/create-chat-session': { status: 200, beside: true },
  'POST /user/append-chat': { status: 200, beside: true },
  'POST /user/update-chat-session-json': { status: 200, says: 'Chat content updated' },
  'POST /user/update-chat-session-title': { status: 200, says: 'Title updated' },
  'POST /user/copy-chat': { status: 200, says: 'Chats copied' },
  'POST /server/vote-down': { status: 200, says: 'OK' },
  'POST /server/get-dataset-results': { status: 200, beside: true },
  'POST /user/admin-get-all-users-with-tokens': { status: 200, beside: true },
  'POST /user/admin-update-user-tokens': { status: 200, says: 'OK' },
  'POST /user/admin-update-user-train-tokens': { status: 200, says: 'OK' },
  'POST /user/add-dataset': { status: 200, says: 'OK', beside: true },
  'POST /user/delete-dataset': { status: 200, says: 'OK' },
  'POST /user/get-datasets-with-permissions': { status: 200 },
  'POST /user/assign-dataset': { status: 200, says: 'OK' },
  'POST /user/update-permission-dataset': { status: 200, says: 'OK' },
  'POST /user/deassign-dataset': { status: 200, says: 'OK' },
  'POST /server/get-datasets': { status: 200 },
  'POST /server/get-dataset-info': { status: 200 },
  'POST /server/get-all-files-ingested': { status: 200 },
  'POST /server/delete-filename-from-dataset': { status: 200, says: 'OK' },
  'POST /server/copy-files-dataset': { status: 200 },
  'POST /server/train': { status: 200, beside: true },
  'POST /server/train-with-file': { status: 200, beside: true, large: true },
  'POST /server/train-with-array': { status: 200, beside: true, large: true },
  'POST /server/train-with-file-status': { status: 200 },
};

/** @param value what the operation answers; beside: an object, which has a `response` where the envelope does not say one */
export function wrapped({ status, says, beside }: Envelope, value: unknown): object {
  if (beside) return { ...(says === undefined ? {} : { response: says }), ...(value as object), status };
  return { response: says ?? value, status };
}

/** The same, of what the document says. */
export function wrappedSchema({ status, says, beside }: Envelope, output: (TSchema & { readonly properties?: Record<string, TSchema> }) | undefined): TSchema {
  const own = { status: Type.Literal(status) };
  const said = says === undefined ? {} : { response: Type.Literal(says) };
  if (beside) return Type.Object({ ...said, ...output?.properties, ...own });
  return Type.Object({ response: says === undefined ? (output ?? Type.Unknown()) : Type.Literal(says), ...own });
}
